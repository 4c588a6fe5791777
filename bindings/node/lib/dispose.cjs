'use strict';
// Symbol.dispose and Symbol.asyncDispose, where the engine does not have them yet.

for (const name of ['dispose', 'asyncDispose']) {
  if (Symbol[name] === undefined) Object.defineProperty(Symbol, name, { value: Symbol(`Symbol.${name}`) });
}
