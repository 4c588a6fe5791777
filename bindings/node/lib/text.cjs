'use strict';
// What is given becomes JSON text that the library takes: well-formed, and with nothing left out on the way.

const { types } = require('node:util');

/**
 * What a backslash begins: two halves of a pair, which stay; half a pair, which is captured; anything else, so that a backslash
 * that is escaped itself begins nothing.
 */
const ESCAPE = /\\(?:ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(ud[89a-f][0-9a-f]{2})|[^])/gi;

/**
 * JSON text without escapes for half a surrogate pair, which JSON.stringify writes for strings that were cut there: U+FFFD
 * instead. (Halves that are not escaped become U+FFFD in the addon.)
 */
function wellFormed(text) {
  // Nearly always this is all that is done.
  if (!text.includes('\\ud') && !text.includes('\\uD')) return text;
  return text.replace(ESCAPE, (escape, half) => (half === undefined ? escape : '\ufffd'));
}

/** The bytes of what is bytes: a Uint8Array, a Buffer, an ArrayBuffer. */
function bytesOf(value) {
  if (typeof value !== 'object' || value === null) return undefined;
  const isBuffer = types.isAnyArrayBuffer(value);
  if (!isBuffer && !types.isUint8Array(value)) return undefined;
  // The library reads while nobody may write: what other threads share is copied.
  const isShared = types.isSharedArrayBuffer(isBuffer ? value : value.buffer);
  if (isShared) return new Uint8Array(isBuffer ? new Uint8Array(value) : value);
  return isBuffer ? new Uint8Array(value) : value;
}

/** What JSON.stringify would take for an object without members, or with a member for each byte. */
function isNoJson(value) {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === Array.prototype || prototype === null) return false;
  if (typeof value.toJSON === 'function') return false;
  const { isMap, isSet, isWeakMap, isWeakSet, isPromise, isAnyArrayBuffer } = types;
  return ArrayBuffer.isView(value) || [isMap, isSet, isWeakMap, isWeakSet, isPromise, isAnyArrayBuffer].some((is) => is(value));
}

function check(value, what) {
  if (!isNoJson(value)) return;
  const hint = types.isPromise(value) ? 'await it' : 'make it an object, an array or a text';
  throw new TypeError(`fawn: ${what} is a ${Object.prototype.toString.call(value).slice(8, -1)}, which is no JSON; ${hint}`);
}

/** A value as JSON text. It and its members are looked at; what lies deeper is as JSON.stringify has it. */
function toJson(value, what = 'what was given') {
  check(value, what);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    for (const name of Object.keys(value)) check(value[name], `${what}: the member ${name}`);
  }
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError(`fawn: ${what} is a ${typeof value}, which is no JSON`);
  return wellFormed(text);
}

/** A string is JSON text already, and bytes are; anything else is made JSON. Bytes go to the library as they are. */
function toText(value, absent = '{}') {
  if (value === undefined) return absent;
  if (typeof value === 'string') return wellFormed(value);
  return bytesOf(value) ?? toJson(value);
}

/** The same of a configuration, in which a function that nothing calls is a mistake. */
function toConfigText(value) {
  if (typeof value !== 'object' || value === null || bytesOf(value) !== undefined) return toText(value);
  const text = JSON.stringify(value, (name, member) => {
    // What begins with "x-" is the host's own, whatever it is.
    if (typeof member === 'function' && !name.startsWith('x-')) {
      throw new TypeError(`fawn: ${name} is a function that nothing calls; those of the host are called "execute"`);
    }
    check(member, name || 'the configuration');
    return member;
  });
  return text === undefined ? toText(value) : wellFormed(text);
}

/** The value of JSON text that the library has accepted. */
function fromText(text) {
  return JSON.parse(typeof text === 'string' ? text : Buffer.from(text.buffer, text.byteOffset, text.byteLength));
}

module.exports = { bytesOf, fromText, isNoJson, toConfigText, toJson, toText };
