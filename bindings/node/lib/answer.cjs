'use strict';
// Answers to host calls, as JSON text: of what a function returns, and of what it throws. Whatever that is, there is an answer.

const { errorOf, FawnError } = require('./error.cjs');
const { bytesOf, toJson } = require('./text.cjs');

/** UTF-8 that is none is an error; a mark of the byte order is text like any other. */
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** What was thrown, in words. Never throws, whatever it is. */
function messageOf(thrown) {
  try {
    const isObject = typeof thrown === 'object' && thrown !== null;
    const message = isObject && typeof thrown.message === 'string' ? thrown.message || thrown.name : String(thrown);
    if (typeof message === 'string') return message;
  } catch {
    // It has no text, or its text throws too.
  }
  return 'an error that has no text was thrown';
}

/** Text of bytes; anything else as it is. */
function decoded(value) {
  const bytes = bytesOf(value);
  return bytes === undefined ? value : decoder.decode(bytes);
}

/** Text in place of bytes, as a value and as its content, or the text of a sandbox's file. */
function withText(kind, value) {
  const whole = decoded(value);
  const member = kind === 'sandbox' ? 'text' : 'content';
  const text = typeof whole === 'object' && whole !== null ? whole[member] : undefined;
  return bytesOf(text) === undefined ? whole : { ...whole, [member]: decoded(text) };
}

/** What there must be an answer of, and what that is. Elsewhere none is null. */
const WANTED = { model: 'a reply is a text or an object', middleware: 'a verdict is an object', guardrail: 'a verdict is an object' };

/** Whose answer it is, in words. */
function whose({ kind, name }) {
  return kind === 'sandbox' || kind === 'memory' ? `the ${kind}'s ${name}` : `the ${kind} ${name}`;
}

/** The answer of what a function returned. Throws if there is none. */
function acceptance(call, value) {
  if (value === undefined || value === null) {
    if (!Object.hasOwn(WANTED, call.kind)) return '{"ok":null}';
    throw new TypeError(`the function of ${whose(call)} returned nothing; ${WANTED[call.kind]}`);
  }
  return `{"ok":${toJson(withText(call.kind, value), `what the function of ${whose(call)} returned`)}}`;
}

/** The answer that says why there is none. */
function refusal(thrown) {
  try {
    return `{"error":{"message":${toJson(messageOf(thrown))}}}`;
  } catch {
    // A text near the longest that there may be.
    return '{"error":{"message":"an error whose text is too long was thrown"}}';
  }
}

/** What is to be said of an answer that the library does not take. */
function refused(call, error) {
  const message = `the answer of ${whose(call)} is refused: ${error.message}`;
  if (!(error instanceof FawnError)) return errorOf('internal', message);
  const { code, status, path, retryable, cause } = error;
  return new FawnError({ code, status, message, path, retryable, cause });
}

module.exports = { acceptance, messageOf, refusal, refused, whose };
