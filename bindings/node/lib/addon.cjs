'use strict';
// Loads the addon: the C functions of src/, one per function of fawn.h, for this environment.

const fs = require('node:fs');
const path = require('node:path');

/** Where build.mjs puts it. */
const file = path.join(__dirname, '..', 'build', 'fawn.node');

if (!fs.existsSync(file)) {
  throw new Error(`fawn: ${file} is missing; build it with: node ${path.join(__dirname, '..', 'build.mjs')}`);
}
module.exports = require(file);
