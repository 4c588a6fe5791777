'use strict';
// fawn for Node.js: an agent harness that runs inside this process. Types and documentation are in index.d.ts.

const { Assembly } = require('./lib/assembly.cjs');
const { FawnError } = require('./lib/error.cjs');
const { FawnEvent } = require('./lib/event.cjs');
const { Queue } = require('./lib/queue.cjs');
const { Run } = require('./lib/run.cjs');
const { Runtime } = require('./lib/runtime.cjs');
const { Subagents } = require('./lib/subagents.cjs');
const { Thread } = require('./lib/thread.cjs');

module.exports = { Runtime, Subagents, Assembly, Thread, Queue, Run, FawnEvent, FawnError, ...require('./lib/meta.cjs') };
