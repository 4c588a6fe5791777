'use strict';
// Arguments of the wrong kind are a TypeError that says which, rather than something else that happens later.

/** An object of options, with no members besides these: a misspelt one does not go unnoticed. */
function checkOptions(options, known) {
  if (options === undefined) return;
  if (typeof options !== 'object' || options === null) throw new TypeError('fawn: options must be an object');
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw new TypeError(`fawn: there is no option ${name} here; there is ${known.join(', ')}`);
  }
}

/** An AbortSignal, if there is one; this program's own or of the same shape. Throws its reason if it has aborted. */
function checkSignal(signal) {
  if (signal === undefined) return;
  if (typeof signal?.aborted !== 'boolean' || typeof signal.addEventListener !== 'function') {
    throw new TypeError('fawn: signal must be an AbortSignal');
  }
  if (signal.aborted) throw signal.reason;
}

/** Milliseconds: 0 not at all, negative or Infinity for ever. */
function checkTimeout(timeoutMs) {
  if (typeof timeoutMs !== 'number' || Number.isNaN(timeoutMs)) throw new TypeError('fawn: timeoutMs must be a number');
}

/** A number of events as the library counts them. */
function checkMax(max) {
  if (!Number.isInteger(max) || max < 0 || max > 0xffff_ffff) throw new TypeError('fawn: max must be a whole number, 0 or more');
}

/** What a value is, for a message. */
function kindOf(value) {
  if (typeof value !== 'object' || value === null) return value === null ? 'null' : typeof value;
  return value.constructor?.name || 'object';
}

module.exports = { checkMax, checkOptions, checkSignal, checkTimeout, kindOf };
