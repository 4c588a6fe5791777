'use strict';
// Waiting for what the library does not tell of by itself: asked again and again, without holding up the loop.

const hub = require('./hub.cjs');
const { onAbort } = require('./aborting.cjs');
const { checkOptions, checkSignal, checkTimeout } = require('./check.cjs');
const { after } = require('./timer.cjs');

/**
 * Resolves to the text that `ask` answers once it is one, or to null when the time of the options is up. `owner` is not to be
 * forgotten meanwhile.
 */
function untilText(ask, poller, owner, options) {
  return new Promise((resolve, reject) => {
    checkOptions(options, ['timeoutMs', 'signal']);
    const { timeoutMs = -1, signal } = options ?? {};
    checkTimeout(timeoutMs);
    checkSignal(signal);
    const first = ask();
    if (typeof first === 'string') return resolve(first);
    if (timeoutMs === 0) return resolve(null);
    hub.hold();
    const settle = (how, value) => {
      hub.release();
      poller.remove(item);
      stop();
      unsubscribe?.();
      how(value);
    };
    const item = {
      owner,
      poll() {
        try {
          const text = ask();
          if (typeof text !== 'string') return false;
          settle(resolve, text);
        } catch (error) {
          settle(reject, error);
        }
        return true;
      },
    };
    const stop = after(timeoutMs, () => settle(resolve, null));
    const unsubscribe = signal && onAbort(signal, () => settle(reject, signal.reason));
    poller.add(item);
  });
}

module.exports = { untilText };
