'use strict';
// Poller: asks again and again, where the library has no way to tell: first in each turn of the loop, then after timers that
// grow to a bound. Two things need it:
//
// - A runtime with `"workers": 0` has no OS thread of its own. It makes progress while somebody is inside a take, so somebody
//   has to take. A take with timeout 0 gives what is ready a turn; this does so often while things move, and each
//   10 milliseconds at the latest while they do not. One item is asked at a time, since each drives the whole runtime.
// - The end of a run that has no queue of its own, and the end of a shutdown or a stop, which send no wake-up.

const hub = require('./hub.cjs');

/** Turns of the loop before timers take over. */
const EAGER = 8;
/** The longest timer, in milliseconds. */
const LONGEST_MS = 10;

class Poller {
  #items = new Set();
  #oneAtATime;
  #idle = 0;
  #timer = undefined;
  #coming = false;

  constructor(oneAtATime) {
    this.#oneAtATime = oneAtATime;
  }

  /** Asks `item.poll()`, which says whether something came of it, until `remove`. */
  add(item) {
    this.#items.add(item);
    this.poke();
  }

  remove(item) {
    this.#items.delete(item);
    if (this.#items.size === 0) this.#cancel();
  }

  /** Something happened: asks in the next turn of the loop. */
  poke() {
    this.#idle = 0;
    if (this.#items.size === 0 || this.#coming) return;
    this.#cancel();
    this.#soon();
  }

  #turn = () => {
    this.#coming = false;
    this.#timer = undefined;
    let progress = false;
    let left = this.#oneAtATime ? 1 : this.#items.size;
    for (const item of this.#items) {
      if (left-- === 0) break;
      // To the end of the line.
      this.#items.delete(item);
      this.#items.add(item);
      if (item.poll()) progress = true;
    }
    this.#idle = progress ? 0 : this.#idle + 1;
    if (this.#items.size === 0 || this.#coming || this.#timer !== undefined) return;
    if (this.#idle < EAGER) this.#soon();
    else this.#timer = setTimeout(this.#turn, Math.min(LONGEST_MS, 2 ** ((this.#idle - EAGER) >> 2))).unref();
  };

  #soon() {
    this.#coming = true;
    hub.later(this.#turn);
  }

  #cancel() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

module.exports = { Poller };
