'use strict';
// FawnError: an error object of the library as an Error.

const addon = require('./addon.cjs');

/** What a call with a negative status throws. Its members are those of the schema "error". */
class FawnError extends Error {
  /**
   * @param {object} object An error object: what failed calls answer, and what a failed run's result has in `error`.
   * @param {string} [text] The library's own text of it.
   */
  constructor(object, text) {
    super(object.message, object.cause === undefined ? undefined : { cause: object.cause });
    this.code = object.code;
    this.status = object.status;
    this.path = object.path;
    this.retryable = object.retryable === true;
    // Not enumerable: it says the same again.
    Object.defineProperty(this, 'text', { value: text ?? JSON.stringify(object) });
  }
}
Object.defineProperty(FawnError.prototype, 'name', { value: 'FawnError', writable: true, configurable: true });

/** Makes the Error of a negative status; `text` is the error object, or empty where the function has none. */
function makeError(status, text) {
  if (text !== '') return new FawnError(JSON.parse(text), text);
  const name = addon.statusName(status);
  const code = name.replace(/^FAWN_(ERR_)?/, '').toLowerCase();
  return new FawnError({ code, status, message: name, retryable: false });
}

/** Status numbers by code, as the library tells them. */
let statuses;

/** An Error of the binding's own, with one of the library's codes; `path`: where in what was passed. */
function errorOf(code, message, path) {
  statuses ??= new Map(JSON.parse(addon.describe('errors')).errors.map((error) => [error.code, error.status]));
  return new FawnError({ code, status: statuses.get(code) ?? 0, message, path, retryable: false });
}

module.exports = { FawnError, makeError, errorOf };
