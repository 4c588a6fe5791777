'use strict';
// Assembly: a model, a prompt, tools and middleware, composed once; with the functions of the host that it calls.

const addon = require('./addon.cjs');
const forgotten = require('./forgotten.cjs');
const { serve } = require('./call.cjs');
const { startRun } = require('./run.cjs');
const { split } = require('./functions.cjs');
const { functionsFor } = require('./scope.cjs');
const { toConfigText } = require('./text.cjs');
const { kindOf } = require('./check.cjs');
require('./dispose.cjs');

class Assembly {
  #core;
  #runtime;

  /** For Runtime.assembly. */
  constructor(runtimeCore, runtime, config, functions) {
    const { given, ...own } = split(config, functions);
    const text = toConfigText(given);
    const handle = addon.assemblyNew(runtimeCore.handle, text);
    try {
      this.#core = { handle, runtime: runtimeCore, ...functionsFor(config, text, own, runtimeCore.scope) };
    } catch (error) {
      addon.release(handle);
      throw error;
    }
    // The runtime is not forgotten while something of it is in use.
    this.#runtime = runtime;
    forgotten.watch(this, 'Assembly', () => (addon.release(handle), !runtimeCore.wasClosed));
  }

  /** What it turned out to be; null for a bare graph. */
  descriptor() {
    return JSON.parse(this.descriptorText());
  }

  descriptorText() {
    return addon.assemblyDescriptor(this.#core.handle);
  }

  /** Sets the agent to work on a thread. */
  start(thread, request, options) {
    return startRun(this.#core, thread, request, options);
  }

  /** Runs the function that a host call asks for, and answers the call. For events that were taken from a Queue. */
  serve(event) {
    if (event?.type !== 'host_call') {
      throw new TypeError(`fawn: serve takes an event of the type host_call, not ${event?.type ?? kindOf(event)}`);
    }
    return serve(this.#core, event, this.#core.runtime.calls);
  }

  /** Frees it. Runs that were started with it go on. */
  close() {
    forgotten.unwatch(this);
    addon.release(this.#core.handle);
  }

  [Symbol.dispose]() {
    this.close();
  }
}

module.exports = { Assembly };
