'use strict';
// The environment's one meeting point with the library's OS threads: which queues have something to take, when to take
// from them, and whether that keeps the loop alive.
//
// A wake-up starts a tick. A tick pumps the queues that are ready, for a few milliseconds at most, and leaves the rest to the
// next turn of the loop, so that timers, sockets and files have their turn however busy the library is. Ticks go on until
// nothing is ready; then the addon is told to wake us again. No thread of libuv's pool is ever used.
//
// What is pumped is an object with `pump()`, which makes one take of at most BATCH events and answers how many came.

const addon = require('./addon.cjs');
const { makeError } = require('./error.cjs');

/** Most events of one take: some 100 KB of JSON, parsed in well under a millisecond. */
const BATCH = 256;
/** How long one tick may keep the loop, in milliseconds. */
const TICK_MS = 4;

/** Handle of a queue to what pumps it. */
const pumps = new Map();
/** Pumps whose queues may have something. */
const active = new Set();
/** What keeps the loop alive: runs in flight, takes that wait. */
let held = 0;
/** A tick is coming by itself; no wake-up needs to start one. */
let coming = false;
/** The timer that brings it, if it is one. */
let timer;

/** Keeps the loop alive until `release`. */
function hold() {
  if (held++ > 0) return;
  addon.hold(true);
  if (timer === undefined) return;
  // Somebody waits now: the tick need not come as late as a timer.
  clearTimeout(timer);
  timer = undefined;
  setImmediate(tick);
}

function release() {
  if (--held === 0) addon.hold(false);
}

/** Calls `task` in the next turn of the loop. While nothing holds the loop this does not either; then it answers a timer. */
function later(task) {
  // An immediate that does not hold the loop is not run either while the loop sleeps; a timer is.
  if (held === 0) return setTimeout(task, 1).unref();
  setImmediate(task);
  return undefined;
}

function tick() {
  coming = false;
  timer = undefined;
  const handles = addon.ready(active.size === 0);
  for (const handle of handles) {
    const pump = pumps.get(handle);
    if (pump !== undefined) active.add(pump);
  }
  // Nothing was ready: from here on a wake-up starts the next tick. Queues that are gone by now were something.
  if (active.size === 0 && handles.length === 0) return;
  try {
    const until = performance.now() + TICK_MS;
    for (const pump of active) {
      // Taken off first: what pumping sets off may put it on again.
      active.delete(pump);
      if (pump.pump() === BATCH) active.add(pump);
      if (performance.now() > until) break;
    }
  } finally {
    soon();
  }
}

/** Lets a tick come in the next turn of the loop. */
function soon() {
  if (coming) return;
  coming = true;
  timer = later(tick);
}

/** Has a queue pumped when it becomes ready. */
function watch(handle, pump) {
  pumps.set(handle, pump);
}

function unwatch(handle, pump) {
  pumps.delete(handle);
  active.delete(pump);
}

/** Has a queue pumped in the next turn of the loop, ready or not. */
function activate(pump) {
  active.add(pump);
  soon();
}

addon.connect(makeError, () => {
  if (!coming) tick();
});
// The loop turns no more after this; threads of the library may go on for a moment.
process.once('exit', () => addon.stop());

module.exports = { BATCH, hold, release, later, watch, unwatch, activate };
