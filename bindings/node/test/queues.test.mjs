// Queues that the host takes from by itself.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { WORKERS, ask, calls, collect, open, scripted, sleep, tool, until } from './support.mjs';

function both(name, body) {
  for (const workers of WORKERS) test(`${name} (workers: ${workers})`, (t) => body(t, open(t, { workers })));
}

both('one queue for several runs, its host calls served by hand or by the assembly', async (t, runtime) => {
  const agent = scripted(runtime, [calls('a', 'b'), { content: 'Done' }], [tool('a', () => 'served'), tool('b', () => 'not called')]);
  const queue = runtime.queue();
  const threads = [1, 2, 3].map((n) => runtime.thread({ thread_id: `t${n}` }));
  const runs = threads.map((thread) => agent.start(thread, ask(), { queue }));
  const results = Promise.all(runs.map((run) => run.result()));
  let open = runs.length;
  while (open > 0) {
    for (const event of await queue.take()) {
      if (event.type === 'run_end') open--;
      if (event.type !== 'host_call') continue;
      const { name, call_id } = event.data;
      if (name === 'a') await agent.serve(event);
      else assert.equal(runtime.finish(call_id, { ok: `by hand in ${event.thread_id}` }), true);
      assert.equal(runtime.finish(call_id, { ok: 'again' }), false);
    }
  }
  for (const { status } of await results) assert.equal(status, 'success');
  for (const thread of threads) {
    const [, , a, b] = thread.state().values.messages;
    assert.equal(a.content, 'served');
    assert.match(b.content, /by hand in t\d/);
  }
  assert.throws(() => runs[0][Symbol.asyncIterator](), TypeError);
});

both('a run with queue null has a result all the same', async (t, runtime) => {
  const agent = scripted(runtime, [{ content: 'Hi', delay_ms: 30 }]);
  const result = await agent.start(runtime.thread(), ask(), { queue: null }).result();
  assert.equal(result.message.content, 'Hi');
  const asking = scripted(runtime, [calls('a')], [tool('a', () => 1)]);
  assert.throws(() => asking.start(runtime.thread(), ask(), { queue: null }), { code: 'no_queue' });
});

both('the result of a run on a queue that nobody takes from', async (t, runtime) => {
  const agent = scripted(runtime, [{ content: 'Hi' }]);
  const queue = runtime.queue();
  const result = await agent.start(runtime.thread(), ask(), { queue }).result();
  assert.equal(result.status, 'success');
  const events = await queue.take({ max: 0 });
  assert.equal(events.at(-1).type, 'run_end');
});

test('events of a later version pass unharmed', () => {
  const { eventsOf, textOf } = createRequire(import.meta.url)('../lib/event.cjs');
  const hostile = ['"}]', '\\', '"type":"run_end"', '{"a":[', '\u2028'];
  const objects = hostile.flatMap((text, n) => [
    { seq: n + 1, run_id: 'r', thread_id: 't', task_id: text, type: 'task_started', at: '2026-01-01T00:00:00Z', data: { task_id: text, deep: [[{ text }]] } },
    { seq: n + 2, type: text, later: { [text]: [text] }, data: [text] },
    { seq: n + 3, type: 'log', task_id: null, later: [], data: text },
  ]);
  const text = JSON.stringify(objects);
  const events = eventsOf(text);
  assert.deepEqual(events.map((event) => ({ ...event })), objects);
  assert.deepEqual(events.map((event) => event.text), objects.map((object) => JSON.stringify(object)));
  assert.equal(textOf(events), text);
});

both('take waits, gives up, and is interrupted', async (t, runtime) => {
  const queue = runtime.queue();
  assert.deepEqual(await queue.take({ timeoutMs: 0 }), []);
  assert.equal(await queue.takeText({ timeoutMs: 0 }), '');
  const begun = performance.now();
  assert.deepEqual(await queue.take({ timeoutMs: 30 }), []);
  assert.ok(performance.now() - begun >= 25);
  const waiting = queue.take();
  await sleep(5);
  queue.interrupt();
  assert.deepEqual(await waiting, []);
  queue.interrupt();
  assert.deepEqual(await queue.take(), [], 'an interrupt is kept for the next take');
  const reason = new Error('no');
  const controller = new AbortController();
  const aborted = queue.take(controller);
  controller.abort(reason);
  await assert.rejects(aborted, reason);
  await assert.rejects(queue.take({ signal: AbortSignal.abort(reason) }), reason);
  const closed = queue.take();
  queue.close();
  assert.equal(await closed, null);
});

both('an aborted take loses nothing', async (t, runtime) => {
  const agent = scripted(runtime, [{ content: 'Hi', delay_ms: 20 }]);
  const queue = runtime.queue();
  agent.start(runtime.thread(), ask(), { queue });
  const seqs = [];
  for (let round = 0; seqs.at(-1)?.type !== 'run_end' && round < 1000; round++) {
    const controller = new AbortController();
    setTimeout(() => controller.abort(), round % 3);
    const events = await queue.take({ max: 1, signal: controller.signal }).catch(() => []);
    seqs.push(...events);
  }
  assert.deepEqual(seqs.map(({ seq }) => seq), seqs.map((_, n) => n + 1));
  assert.equal(seqs.at(-1).type, 'run_end');
});

both('text and events of one queue come in order, and leaving a loop loses none', async (t, runtime) => {
  const agent = scripted(runtime, [{ content: 'é '.repeat(5), chunks: 5 }]);
  const queue = runtime.queue();
  const run = agent.start(runtime.thread(), ask(), { queue });
  await run.result();
  const seqs = [];
  for await (const { seq } of queue) {
    seqs.push(seq);
    if (seq === 2) break;
  }
  for (const { seq } of JSON.parse(await queue.takeText({ max: 2 }))) seqs.push(seq);
  for (const { seq } of await queue.take({ max: 1 })) seqs.push(seq);
  const rest = await queue.takeText();
  seqs.push(...JSON.parse(rest).map(({ seq }) => seq));
  assert.deepEqual(seqs, seqs.map((_, n) => n + 1));
});

both('a cancelled call is told to the function that serves it', async (t, runtime) => {
  let code;
  const agent = scripted(
    runtime,
    [calls('slow')],
    [tool('slow', (args, { signal }) => sleep(60_000, signal).catch((error) => (code = error.code)))],
  );
  const queue = runtime.queue();
  const run = agent.start(runtime.thread(), ask(), { queue });
  for await (const event of queue) {
    if (event.type === 'host_call') {
      void agent.serve(event);
      run.cancel();
    }
    if (event.type === 'run_end') break;
  }
  await until(() => code !== undefined);
  assert.equal(code, 'cancelled');
});

both('freeing a queue fails its host calls and ends the wait for its runs', async (t, runtime) => {
  const agent = scripted(runtime, [calls('a'), { content: 'I see' }], [tool('a', () => 'never')]);
  const queue = runtime.queue();
  const run = agent.start(runtime.thread(), ask(), { queue });
  await until(async () => (await queue.take({ timeoutMs: 5 })).some(({ type }) => type === 'host_call'));
  queue.close();
  const { status } = await run.result();
  assert.ok(['success', 'error'].includes(status), status);
});

both('warnings come to the queues that asked for them', async (t, runtime) => {
  const queue = runtime.queue({ subscribe: ['log'] });
  assert.deepEqual(await queue.take({ timeoutMs: 5 }), []);
  const lossy = runtime.queue({ high_mark_events: 16, lossy: true });
  const agent = scripted(runtime, [{ tool_calls: Array.from({ length: 100 }, () => ({ name: 'none', args: {} })) }, { content: 'x' }]);
  await agent.start(runtime.thread(), ask(), { queue: lossy }).result();
  assert.ok((await lossy.take({ max: 0 })).some(({ type }) => type === 'gap'));
});

both('eight queues that wait keep nobody from reading files', async (t, runtime) => {
  const fs = await import('node:fs/promises');
  const queues = Array.from({ length: 8 }, () => runtime.queue());
  const waiting = queues.map((queue) => collect(queue));
  await sleep(20);
  for (let round = 0; round < 20; round++) {
    const begun = performance.now();
    await fs.readFile(new URL(import.meta.url));
    const took = performance.now() - begun;
    assert.ok(took < 200, `${took} ms`);
  }
  for (const queue of queues) queue.close();
  for (const events of await Promise.all(waiting)) assert.deepEqual(events, []);
});
