// The same types through require.
import fawn = require('fawn');

const runtime: fawn.Runtime = new fawn.Runtime({ workers: 0 });
const state: fawn.ThreadState = runtime.thread().state();
console.log(state.values, fawn.version());
