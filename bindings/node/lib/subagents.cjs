'use strict';
// Subagents: capacity and limits that assemblies share for their subagents.

const addon = require('./addon.cjs');
const forgotten = require('./forgotten.cjs');
const { untilText } = require('./asking.cjs');
const { toText } = require('./text.cjs');
require('./dispose.cjs');

class Subagents {
  #handle;
  #runtime;
  #poller;

  /** For Runtime.subagents. */
  constructor(runtimeCore, runtime, config) {
    this.#handle = addon.subagentsNew(runtimeCore.handle, toText(config));
    this.#runtime = runtime;
    this.#poller = runtimeCore.poller;
    const handle = this.#handle;
    forgotten.watch(this, 'Subagents', () => (addon.release(handle), !runtimeCore.wasClosed));
  }

  /** Starts what it owns besides its capacity. */
  start() {
    return JSON.parse(this.startText());
  }

  startText() {
    return addon.subagentsStart(this.#handle);
  }

  /** Stops that, and waits without holding up the loop. */
  async stop(options) {
    const text = await this.stopText(options);
    return text === null ? null : JSON.parse(text);
  }

  stopText(options) {
    return untilText(() => addon.subagentsStop(this.#handle, 0), this.#poller, this, options);
  }

  /** How many run and how many wait. */
  stats() {
    return JSON.parse(this.statsText());
  }

  statsText() {
    return addon.subagentsStats(this.#handle);
  }

  /** The number by which an assembly's configuration names it. */
  toJSON() {
    return this.#handle;
  }

  /** Lets go. Assemblies that name it keep it. */
  close() {
    forgotten.unwatch(this);
    addon.release(this.#handle);
  }

  [Symbol.dispose]() {
    this.close();
  }
}

module.exports = { Subagents };
