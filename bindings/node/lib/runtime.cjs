'use strict';
// Runtime: configuration, store, models. Assemblies, subagents objects, threads, queues and runs belong to one.

const addon = require('./addon.cjs');
const status = require('./status.cjs');
const forgotten = require('./forgotten.cjs');
const { untilText } = require('./asking.cjs');
const { Assembly } = require('./assembly.cjs');
const { Poller } = require('./poller.cjs');
const { Queue } = require('./queue.cjs');
const { checkOptions, checkSignal, checkTimeout } = require('./check.cjs');
const { splitApp } = require('./functions.cjs');
const { Scope } = require('./scope.cjs');
const { Subagents } = require('./subagents.cjs');
const { Thread } = require('./thread.cjs');
const { toConfigText, toText } = require('./text.cjs');
require('./dispose.cjs');

/** What a runtime's objects share. It outlives the Runtime that the host holds. */
class RuntimeCore {
  constructor(handle, isDriven, scope) {
    this.handle = handle;
    this.isOpen = true;
    /** Closed by hand: what belongs to it may be left to the garbage collector without a warning. */
    this.wasClosed = false;
    /** Nobody but this thread drives it. */
    this.isDriven = isDriven;
    /** What the configuration says of the host, with its functions. */
    this.scope = scope;
    this.poller = new Poller(isDriven);
    /** Host calls from queues that functions work on, by call id. */
    this.calls = new Map();
    /** Queues and runs that wait for the library; each has `runtimeClosed()`. */
    this.waiting = new Set();
  }

  free() {
    if (!this.isOpen) return;
    this.isOpen = false;
    addon.release(this.handle);
    for (const call of this.calls.values()) call.cancel('closed');
    // No wake-up comes any more: they have to ask.
    for (const waiting of this.waiting) waiting.runtimeClosed();
  }
}

class Runtime {
  #core;

  /** Makes a runtime of its configuration. */
  constructor(config) {
    const text = toConfigText(splitApp(config));
    const handle = addon.runtimeNew(text);
    let core;
    try {
      core = new RuntimeCore(handle, JSON.parse(addon.runtimeStats(handle)).workers === 0, new Scope(config, text));
    } catch (error) {
      addon.release(handle);
      throw error;
    }
    this.#core = core;
    forgotten.watch(this, 'Runtime', () => (core.free(), true));
  }

  /** Composes an agent. */
  assembly(config, functions) {
    return new Assembly(this.#core, this, config, functions);
  }

  /** Makes an object by which assemblies share capacity and limits for their subagents. */
  subagents(config) {
    return new Subagents(this.#core, this, config);
  }

  /** Opens a thread, or begins one. */
  thread(open) {
    return new Thread(this.#core, this, open);
  }

  /** Makes a queue, for events of several runs and of the runtime. */
  queue(config) {
    return new Queue(this.#core, this, config);
  }

  submit(op) {
    return JSON.parse(this.submitText(op));
  }

  submitText(op) {
    return addon.runtimeSubmit(this.#core.handle, toText(op));
  }

  stats() {
    return JSON.parse(this.statsText());
  }

  statsText() {
    return addon.runtimeStats(this.#core.handle);
  }

  /** Adds to the answer of a host call. False: the call is over. */
  emit(callId, part) {
    const done = addon.callEmit(this.#core.handle, callId, toText(part, 'null')) !== status.GONE;
    this.#core.poller.poke();
    return done;
  }

  /** Answers a host call. False: the call is over. */
  finish(callId, answer) {
    const done = addon.callFinish(this.#core.handle, callId, toText(answer, 'null')) !== status.GONE;
    this.#core.poller.poke();
    return done;
  }

  /** Ends all runs and waits for that without holding up the loop. */
  async shutdown(options) {
    const text = await this.shutdownText(options);
    return text === null ? null : JSON.parse(text);
  }

  shutdownText(options) {
    const { handle, poller } = this.#core;
    return untilText(() => addon.runtimeShutdown(handle, 0), poller, this, options);
  }

  /** Frees the runtime at once; runs in flight are cancelled behind the scenes. */
  close() {
    forgotten.unwatch(this);
    this.#core.wasClosed = true;
    this.#core.free();
  }

  [Symbol.dispose]() {
    this.close();
  }

  /** Shuts down, waits for that, and frees. */
  async [Symbol.asyncDispose]() {
    try {
      await this.shutdownText();
    } catch (error) {
      // It was closed by hand already.
      if (error.code !== 'handle') throw error;
    }
    this.close();
  }
}

module.exports = { Runtime };
