'use strict';
// Listening to an AbortSignal: one listener for each signal, however many runs and waits it is given to.

/** Signal to the functions that wait for it. */
const waiting = new WeakMap();

function aborted({ target }) {
  const acts = waiting.get(target);
  waiting.delete(target);
  for (const act of acts) act();
}

/** Calls `act` when the signal aborts. Answers a function that ends this. */
function onAbort(signal, act) {
  let acts = waiting.get(signal);
  if (acts === undefined) {
    acts = new Set();
    waiting.set(signal, acts);
    signal.addEventListener('abort', aborted, { once: true });
  }
  acts.add(act);
  return () => {
    acts.delete(act);
    if (acts.size > 0 || waiting.get(signal) !== acts) return;
    waiting.delete(signal);
    signal.removeEventListener('abort', aborted);
  };
}

module.exports = { onAbort };
