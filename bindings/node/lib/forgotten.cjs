'use strict';
// The net under objects that are dropped without close(): frees what they hold, and says so.

/** Objects that somebody should have closed. What is held must not lead to the object itself. */
const registry = new FinalizationRegistry(({ kind, free }) => {
  if (free()) {
    process.emitWarning(`${kind} dropped without close()`, {
      type: 'FawnWarning',
      code: 'FAWN_FORGOTTEN',
      detail: `Its handle was freed by the garbage collector, which may come late. Call close(), or declare it with "using".`,
    });
  }
});

/** Calls `free` when the object is gone and `close` was not called; it says whether that is worth a warning. */
function watch(object, kind, free) {
  registry.register(object, { kind, free }, object);
}

function unwatch(object) {
  registry.unregister(object);
}

module.exports = { watch, unwatch };
