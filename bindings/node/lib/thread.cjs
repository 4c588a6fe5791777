'use strict';
// Thread: one conversation and its state. (An OS thread is always called that.)

const addon = require('./addon.cjs');
const forgotten = require('./forgotten.cjs');
const { kindOf } = require('./check.cjs');
const { toText } = require('./text.cjs');
require('./dispose.cjs');

class Thread {
  #handle;
  #runtime;
  #id;

  /** For Runtime.thread. */
  constructor(runtimeCore, runtime, open) {
    const handle = addon.threadOpen(runtimeCore.handle, toText(open));
    this.#handle = handle;
    this.#runtime = runtime;
    forgotten.watch(this, 'Thread', () => (addon.release(handle), !runtimeCore.wasClosed));
  }

  /** Its id, also of one that was opened without. */
  get id() {
    this.#id ??= JSON.parse(addon.threadState(this.#handle, '{"channels":[]}')).thread_id;
    return this.#id;
  }

  /** Writes to channels, all or nothing, as one checkpoint. */
  update(update) {
    return JSON.parse(this.updateText(update));
  }

  updateText(update) {
    return addon.threadUpdate(this.#handle, toText(update));
  }

  /** The values of the channels, and the checkpoint they are of. */
  state(query) {
    return JSON.parse(this.stateText(query));
  }

  stateText(query) {
    return addon.threadState(this.#handle, toText(query));
  }

  /** The checkpoints, newest first. */
  history(query) {
    return JSON.parse(this.historyText(query));
  }

  historyText(query) {
    return addon.threadHistory(this.#handle, toText(query));
  }

  /** Reads, sets or clears the goal. */
  goal(op) {
    return JSON.parse(this.goalText(op));
  }

  goalText(op) {
    return addon.threadGoal(this.#handle, toText(op ?? { op: 'get' }));
  }

  /** Lets go. What the store holds stays; a run in flight goes on. */
  close() {
    forgotten.unwatch(this);
    addon.release(this.#handle);
  }

  [Symbol.dispose]() {
    this.close();
  }

  /** The handle of a Thread, for the runs that are started on it. */
  static handleOf(thread) {
    if (typeof thread !== 'object' || thread === null || !(#handle in thread)) {
      throw new TypeError(`fawn: expected a Thread, not ${kindOf(thread)}`);
    }
    return thread.#handle;
  }
}

const { handleOf } = Thread;
delete Thread.handleOf;

module.exports = { Thread, handleOf };
