// Many runs: at once, and one after the other.
// FAWN_SOAK says how many short runs follow each other (default 1500; 10000 to be sure).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import v8 from 'node:v8';
import vm from 'node:vm';
import { WORKERS, ask, calls, collect, living, open, scripted, sleep, tool } from './support.mjs';

const SOAK = Number(process.env.FAWN_SOAK ?? 1500);

v8.setFlagsFromString('--expose-gc');
const gc = vm.runInNewContext('gc');

/** What is in use once the garbage is gone, in bytes. What has to be finalised needs turns of the loop in between. */
async function memory() {
  for (let round = 0; round < 5; round++) {
    gc();
    await sleep(5);
  }
  return process.memoryUsage();
}

const MIB = 1 << 20;

for (const workers of WORKERS) {
  test(`1,000 runs at once, each with host tools, in bounded memory (workers: ${workers})`, async (t) => {
    const runtime = open(t, { workers });
    let inside = 0;
    let most = 0;
    let done = 0;
    const work = async () => {
      most = Math.max(most, ++inside);
      // All runs are in their tool before the first comes out of it.
      while (most < 1000) await sleep(5);
      inside--;
      done++;
      return 'ok';
    };
    const agent = scripted(runtime, [calls('work'), calls('work', 'work'), { content: 'Done' }], [tool('work', work)]);
    const before = (await memory()).rss / MIB;
    let largest = before;
    const watch = setInterval(() => (largest = Math.max(largest, process.memoryUsage().rss / MIB)), 20);
    const threads = Array.from({ length: 1000 }, () => runtime.thread());
    const begun = performance.now();
    const runs = threads.map((thread) => agent.start(thread, ask()));
    const ends = await Promise.all(
      runs.map(async (run, place) => {
        // Half of them are read, the others only awaited.
        if (place % 2) assert.equal((await collect(run)).at(-1).type, 'run_end');
        return (await run.result()).status;
      }),
    );
    clearInterval(watch);
    t.diagnostic(`${Math.round(performance.now() - begun)} ms, ${Math.round(largest - before)} MiB more at the most`);
    assert.deepEqual(new Set(ends), new Set(['success']));
    assert.equal(most, 1000);
    assert.equal(done, 3000);
    assert.ok(largest - before < 250, `${largest - before} MiB`);
    for (const thread of threads) thread.close();
    assert.equal(runtime.stats().queues, 0);
    assert.equal(runtime.stats().open_calls, 0);
  });

  test(`${SOAK} short runs leave nothing behind (workers: ${workers})`, async (t) => {
    const runtime = open(t, { workers });
    const agent = scripted(runtime, [calls('a'), { content: 'Done' }], [tool('a', () => 'ok')]);
    const once = async (n) => {
      const thread = runtime.thread();
      const run = agent.start(thread, ask());
      if (n % 2) await collect(run);
      assert.equal((await run.result()).status, 'success');
      thread.close();
      runtime.submit({ op: 'delete_thread', thread_id: (await run.result()).thread_id });
    };
    for (let n = 0; n < 500; n++) await once(n);
    const before = await memory();
    const handles = living();
    for (let n = 0; n < SOAK; n++) await once(n);
    const after = await memory();
    const heap = (after.heapUsed - before.heapUsed) / MIB;
    const more = (after.rss - before.rss) / MIB;
    t.diagnostic(`${heap.toFixed(2)} MiB of heap more, ${more.toFixed(1)} MiB of memory`);
    // As much for 10,000 runs as for 1,500: what is left is noise.
    assert.ok(heap < 1, `${heap} MiB of heap`);
    assert.ok(more < 30, `${more} MiB`);
    assert.equal(living(), handles);
  });

  test(`the loop stays live while the library is busy (workers: ${workers})`, async (t) => {
    const runtime = open(t, { workers });
    const busy = [{ ...calls(...Array(20).fill('a')) }];
    const agent = scripted(runtime, busy, [tool('a', () => 'ok')], { repeat: true });
    const threads = Array.from({ length: 8 }, () => runtime.thread());
    const runs = threads.map((thread) => agent.start(thread, ask('Go', { recursion_limit: 1000 })));
    let events = 0;
    const readers = runs.map(async (run) => {
      for await (const _ of run) events++;
    });
    let longest = 0;
    for (const end = performance.now() + 500; performance.now() < end; ) {
      const begun = performance.now();
      await sleep(1);
      longest = Math.max(longest, performance.now() - begun);
    }
    for (const run of runs) run.cancel();
    await Promise.all(readers);
    for (const thread of threads) thread.close();
    t.diagnostic(`${events} events, a timer of 1 ms took at most ${longest.toFixed(0)} ms`);
    assert.ok(events > 1000);
    assert.ok(longest < 250, `${longest} ms`);
  });
}

test('a driven runtime that waits costs little', async (t) => {
  const runtime = open(t, { workers: 0 });
  const agent = scripted(runtime, [{ content: 'Hi', delay_ms: 1500 }]);
  const before = process.cpuUsage();
  const thread = runtime.thread();
  await agent.start(thread, ask()).result();
  thread.close();
  const { user, system } = process.cpuUsage(before);
  const share = (user + system) / 1000 / 1500;
  t.diagnostic(`${(share * 100).toFixed(1)} % of a core`);
  assert.ok(share < 0.25, `${share}`);
});
