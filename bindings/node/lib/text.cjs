'use strict';
// What is given becomes JSON text.

/** A string or a Uint8Array is JSON text already and goes to the library as it is; anything else is made JSON. */
function toText(value, absent = '{}') {
  if (value === undefined) return absent;
  if (typeof value === 'string' || value instanceof Uint8Array) return value;
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError('fawn: a value that is no JSON');
  return text;
}

/** The value of JSON text that the library has accepted. */
function fromText(text) {
  return JSON.parse(typeof text === 'string' ? text : Buffer.from(text.buffer, text.byteOffset, text.byteLength));
}

module.exports = { toText, fromText };
