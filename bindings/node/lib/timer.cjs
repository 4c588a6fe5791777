'use strict';
// Timers for any time at all: those of Node fire at once when the time is above 24.8 days.

const LONGEST_MS = 0x7fff_ffff;

/** Calls `act` after so long; never, if that is negative or Infinity. Answers a function that ends this. */
function after(ms, act) {
  if (ms < 0 || ms === Infinity) return () => {};
  const end = performance.now() + ms;
  let timer;
  const wait = (left) => {
    timer = setTimeout(() => (left > LONGEST_MS ? wait(end - performance.now()) : act()), Math.min(left, LONGEST_MS));
  };
  wait(ms);
  return () => clearTimeout(timer);
}

module.exports = { after };
