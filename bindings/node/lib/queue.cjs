'use strict';
// Queue: events of several runs and of the runtime, taken when the host wants them. (A run that is started without one has a
// queue of its own, which run.cjs pumps.)

const addon = require('./addon.cjs');
const status = require('./status.cjs');
const forgotten = require('./forgotten.cjs');
const hub = require('./hub.cjs');
const { onAbort } = require('./aborting.cjs');
const { cancelled } = require('./call.cjs');
const { checkMax, checkOptions, checkSignal, checkTimeout, kindOf } = require('./check.cjs');
const { eventsOf, textOf } = require('./event.cjs');
const { toText } = require('./text.cjs');
const { after } = require('./timer.cjs');
require('./dispose.cjs');

const TAKE_OPTIONS = ['max', 'timeoutMs', 'signal'];

function checkTake(options) {
  checkOptions(options, TAKE_OPTIONS);
  if (options?.max !== undefined) checkMax(options.max);
  if (options?.timeoutMs !== undefined) checkTimeout(options.timeoutMs);
  checkSignal(options?.signal);
}

/** The queue itself and who waits for it. Its takes go one after the other. */
class QueueCore {
  #waiters = [];

  constructor(runtime, handle) {
    this.runtime = runtime;
    this.handle = handle;
    this.isOpen = true;
    /** Runs that were started on it and whose result somebody waits for; each has `poll()`. */
    this.runs = new Set();
    /** Events that an iteration took and did not come to. */
    this.left = [];
    hub.watch(handle, this);
    runtime.waiting.add(this);
  }

  /** Takes for whoever waits. Answers 0: who wants more takes again. */
  pump() {
    while (this.#waiters.length > 0) {
      const waiter = this.#waiters[0];
      let taken;
      try {
        taken = addon.queueTake(this.handle, waiter.max);
      } catch (error) {
        waiter.reject(error);
        continue;
      }
      if (taken === status.TIMEOUT) break;
      if (taken === status.CLOSED) waiter.resolve(null);
      else waiter.resolve(taken === status.INTERRUPTED ? '' : taken);
    }
    return 0;
  }

  /** For the runtime's poller: a take is what drives it. */
  poll() {
    const before = this.#waiters.length;
    this.pump();
    return this.#waiters.length < before;
  }

  /** JSON text of an array of events; '' when none came; null when none will. `owner` is not to be forgotten meanwhile. */
  take({ max = hub.BATCH, timeoutMs = -1, signal } = {}, owner) {
    return new Promise((resolve, reject) => {
      let stop;
      let unsubscribe;
      const settle = (how, value) => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        if (this.#waiters.length === 0) this.runtime.poller.remove(this);
        hub.release();
        stop?.();
        unsubscribe?.();
        how(value);
      };
      const waiter = {
        max,
        owner,
        resolve: (value) => settle(resolve, value),
        reject: (error) => settle(reject, error),
      };
      hub.hold();
      this.#waiters.push(waiter);
      this.pump();
      if (!this.#waiters.includes(waiter)) return;
      if (timeoutMs === 0) return waiter.resolve('');
      stop = after(timeoutMs, () => waiter.resolve(''));
      if (signal !== undefined) unsubscribe = onAbort(signal, () => waiter.reject(signal.reason));
      if (this.runtime.isDriven) this.runtime.poller.add(this);
    });
  }

  /** The same as events. */
  async takeEvents(options, owner) {
    checkTake(options);
    if (this.left.length > 0) return this.left.splice(0, options?.max || this.left.length);
    const text = await this.take(options, owner);
    if (text === null) return null;
    if (text === '') return [];
    const events = eventsOf(text);
    const { calls } = this.runtime;
    for (const event of events) {
      if (event.type === 'host_call_cancelled') {
        cancelled(calls, event.data);
      } else if (event.type === 'run_end') {
        for (const run of this.runs) if (run.id === event.run_id) run.poll();
      }
    }
    return events;
  }

  /** The runtime is closed: what is left can be taken, and the end sends no wake-up. */
  runtimeClosed() {
    if (this.#waiters.length > 0) this.runtime.poller.add(this);
  }

  close() {
    if (!this.isOpen) return false;
    this.isOpen = false;
    hub.unwatch(this.handle, this);
    this.runtime.waiting.delete(this);
    addon.release(this.handle);
    // Host calls that went to this queue have failed.
    while (this.#waiters.length > 0) this.#waiters[0].resolve(null);
    for (const run of this.runs) run.poll();
    return true;
  }
}

class Queue {
  #core;
  #runtime;

  /** For Runtime.queue. */
  constructor(runtimeCore, runtime, config) {
    const core = new QueueCore(runtimeCore, addon.queueNew(runtimeCore.handle, toText(config)));
    this.#core = core;
    this.#runtime = runtime;
    forgotten.watch(this, 'Queue', () => core.close() && !runtimeCore.wasClosed);
  }

  /** Takes at most `max` events (0: all that are there), or waits. No events: the time was up, or interrupt(). null: closed. */
  take(options) {
    return this.#core.takeEvents(options, this);
  }

  /** The same as the library's text of the array, untouched. '': no events. Nothing is looked at: no call is cancelled. */
  async takeText(options) {
    checkTake(options);
    if (this.#core.left.length > 0) return textOf(await this.#core.takeEvents(options, this));
    return this.#core.take(options, this);
  }

  /** Ends one take early: one that waits now, or else the next. */
  interrupt() {
    addon.queueInterrupt(this.#core.handle);
    this.#core.pump();
  }

  /** Events until the queue is closed. What a loop that is left has not come to, the next take gets. */
  async *[Symbol.asyncIterator]() {
    const core = this.#core;
    for (;;) {
      const events = await core.takeEvents(undefined, this);
      if (events === null) return;
      core.left.push(...events);
      while (core.left.length > 0) yield core.left.shift();
    }
  }

  /** Frees it. Its open host calls fail, and runs that need it end. */
  close() {
    forgotten.unwatch(this);
    this.#core.close();
  }

  [Symbol.dispose]() {
    this.close();
  }

  /** What is behind a Queue, for the runs that are started on it. */
  static coreOf(queue) {
    if (typeof queue !== 'object' || queue === null || !(#core in queue)) {
      throw new TypeError(`fawn: expected a Queue, not ${kindOf(queue)}`);
    }
    return queue.#core;
  }
}

const { coreOf } = Queue;
delete Queue.coreOf;

module.exports = { Queue, coreOf };
