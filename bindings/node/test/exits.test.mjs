// How processes and workers end while the library is busy: never by a signal, and never late.
// FAWN_EXITS says how often each way is tried (default 3; 30 or more to be sure).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { child } from './support.mjs';

const REPEAT = Number(process.env.FAWN_EXITS ?? 3);

/** Tries one way of ending again and again. */
function ends(how, expected, name = how) {
  test(`${name}, ${REPEAT} times`, async () => {
    for (let round = 0; round < REPEAT; round++) {
      const { code, signal, stdout, stderr } = await child(['programs/exits.mjs', how]);
      assert.deepEqual({ code, signal, stdout }, { code: 0, signal: null, stdout: '', ...expected }, stderr);
    }
  });
}

ends('idle', {}, 'idle objects keep no process alive');
ends('held', { stdout: 'success\n' }, 'a run in flight keeps the process alive');
ends('held-driven', { stdout: 'success\n' }, 'a driven run in flight keeps the process alive');
ends('held-take', { stdout: '0\n' }, 'a take that waits keeps the process alive');
ends('natural', { stdout: 'the end\n' }, 'natural exit in mid-run');
ends('exit', { code: 3 }, 'process.exit in mid-run');
ends('exit-in-tool', { code: 3 }, 'process.exit in a tool');
ends('uncaught', { code: 1 }, 'an uncaught exception in mid-run');
ends('exit-listener', { stdout: '0\n' }, 'the library in a listener of exit');
ends('workers', { stdout: '[]\n' }, 'workers that are terminated, exit and fail in mid-run');
