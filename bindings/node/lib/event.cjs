'use strict';
// FawnEvent: one event, with its members as plain properties and the library's own text behind them.

/** What one take brought: the text, and where in it the events are once somebody asks. */
class Batch {
  constructor(text) {
    this.text = text;
    this.places = undefined;
  }

  /** The text of the event at a place of the array. */
  at(index) {
    this.places ??= places(this.text);
    return this.text.slice(this.places[2 * index], this.places[2 * index + 1]);
  }
}

/** Where the objects of an array begin and end. The text comes from the library: it is JSON. */
function places(text) {
  const found = [];
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x22: // a string, up to the quote that no backslash precedes
        for (at++; text.charCodeAt(at) !== 0x22; at++) {
          if (text.charCodeAt(at) === 0x5c) at++;
        }
        break;
      case 0x5b: // [
      case 0x7b: // {
        if (++depth === 2) found.push(at);
        break;
      case 0x5d: // ]
      case 0x7d: // }
        if (depth-- === 2) found.push(at + 1);
        break;
    }
  }
  return found;
}

/** An event. Its properties are the members of the schema "event". */
class FawnEvent {
  #batch;
  #index;

  constructor(object, batch, index) {
    Object.assign(this, object);
    this.#batch = batch;
    this.#index = index;
  }

  /** The event's JSON as the library wrote it, byte for byte: to pass on, to store. */
  get text() {
    return this.#batch.at(this.#index);
  }
}

/** The events of what a take answered; `objects`: the same parsed, if it was. They become the events. */
function eventsOf(text, objects = JSON.parse(text)) {
  const batch = new Batch(text);
  for (let at = 0; at < objects.length; at++) objects[at] = new FawnEvent(objects[at], batch, at);
  return objects;
}

/** What a take answered, of events again. */
function textOf(events) {
  return `[${events.map((event) => event.text).join(',')}]`;
}

module.exports = { FawnEvent, eventsOf, textOf };
