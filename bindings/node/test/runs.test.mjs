// Runs: events, results, host tools, host models, cancelling. Each test runs with worker threads and driven by this thread.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FawnEvent, Runtime } from '../index.mjs';
import { WORKERS, ask, calls, collect, open, scripted, sleep, tool, until } from './support.mjs';

/** A test for both ways of driving. */
function both(name, body) {
  for (const workers of WORKERS) test(`${name} (workers: ${workers})`, (t) => body(t, open(t, { workers })));
}

both('a run gives its events and its result', async (t, runtime) => {
  const agent = scripted(runtime, [{ content: 'Hello there', chunks: 3 }]);
  const run = agent.start(runtime.thread(), ask());
  const events = await collect(run);
  assert.equal(events[0].type, 'run_start');
  assert.equal(events.at(-1).type, 'run_end');
  assert.ok(events.every((event, place) => event instanceof FawnEvent && event.seq === place + 1));
  for (const event of events) assert.deepEqual(JSON.parse(event.text), { ...event });
  const text = events.filter(({ type }) => type === 'message_delta').map(({ data }) => data.text);
  assert.equal(text.join(''), 'Hello there');
  const result = await run.result();
  assert.equal(result.status, 'success');
  assert.equal(result.message.content, 'Hello there');
  assert.deepEqual(await run.result(), result, 'a result can be asked for again');
  assert.deepEqual(JSON.parse(await run.resultText()), events.at(-1).data);
  assert.equal(run.cancel(), false);
});

both('an iteration may come late, and a result may be asked for before it', async (t, runtime) => {
  const agent = scripted(runtime, [{ content: 'Hi' }], [], { repeat: true });
  const thread = runtime.thread();
  const run = agent.start(thread, ask());
  await until(() => runtime.stats().runs.active === 0);
  const result = run.result();
  const events = await collect(run);
  assert.equal((await result).status, 'success');
  assert.equal(events[0].seq, 1);
  assert.equal(events.at(-1).type, 'run_end');
  assert.deepEqual(await collect(run), [], 'each event comes once');
});

both('a run that fails is a result', async (t, runtime) => {
  const agent = scripted(runtime, []);
  const { status, error } = await agent.start(runtime.thread(), ask()).result();
  assert.equal(status, 'error');
  assert.equal(error.code, 'script_exhausted');
});

both('tools are functions: values, promises, objects, nothing', async (t, runtime) => {
  const seen = [];
  const agent = scripted(
    runtime,
    [{ tool_calls: [{ name: 'echo', args: { n: 1, text: 'é' } }, { name: 'later', args: {} }] }, calls('object', 'nothing'), { content: 'Done' }],
    [
      tool('echo', (args, context) => {
        seen.push({ args, ...context });
        return `${args.n} ${args.text}`;
      }),
      tool('later', async () => {
        await sleep(5);
        return 'later';
      }),
      tool('object', () => ({ content: 'seen', update: { title: 'From a tool' } })),
      tool('nothing', () => undefined),
    ],
  );
  const thread = runtime.thread({ thread_id: 'tools' });
  assert.equal((await agent.start(thread, ask('Go', { run_id: 'r1' })).result()).status, 'success');
  const { messages, title } = thread.state().values;
  const answers = messages.filter(({ type }) => type === 'tool').map(({ content }) => content);
  assert.deepEqual(answers, ['1 é', 'later', 'seen', '']);
  assert.equal(title, 'From a tool');
  const [{ args, callId, idempotencyKey, ...context }] = seen;
  assert.deepEqual(args, { n: 1, text: 'é' });
  assert.ok(Number.isSafeInteger(callId));
  assert.match(idempotencyKey, /^tools\//);
  assert.deepEqual(context, { kind: 'tool', name: 'echo', toolCallId: 'call_0_0', deadlineMs: 600_000, runId: 'r1', taskId: undefined, threadId: 'tools' });
});

both('what a tool throws is what the model reads', async (t, runtime) => {
  const agent = scripted(
    runtime,
    [calls('throws', 'rejects', 'odd', 'circular'), { content: 'I see' }],
    [
      tool('throws', () => {
        throw new Error('the station is down');
      }),
      tool('rejects', async () => Promise.reject(new TypeError('no such city'))),
      tool('odd', () => {
        throw 'just text';
      }),
      tool('circular', () => {
        const circle = {};
        circle.circle = circle;
        return circle;
      }),
    ],
  );
  const thread = runtime.thread();
  assert.equal((await agent.start(thread, ask()).result()).status, 'success');
  const answers = thread.state().values.messages.filter(({ type }) => type === 'tool');
  assert.deepEqual(answers.map(({ status }) => status), Array(4).fill('error'));
  const texts = answers.map(({ content }) => content);
  assert.match(texts[0], /the station is down/);
  assert.match(texts[1], /no such city/);
  assert.match(texts[2], /just text/);
  assert.match(texts[3], /circular/);
});

both('an answer that the library refuses is reported, and the run goes on', async (t, runtime) => {
  const warnings = [];
  const note = (warning) => warnings.push(warning);
  process.on('warning', note);
  const agent = scripted(runtime, [calls('bad'), { content: 'I see' }], [tool('bad', () => ({ content: 'x', contend: 1 }))]);
  const thread = runtime.thread();
  assert.equal((await agent.start(thread, ask()).result()).status, 'success');
  await sleep(0);
  process.off('warning', note);
  assert.deepEqual(warnings.map(({ code, path }) => [code, path]), [['unknown_member', '/ok/contend']]);
  assert.match(thread.state().values.messages[2].content, /contend/);
});

both('a tool without a function is answered with an error', async (t, runtime) => {
  const agent = scripted(runtime, [calls('none'), { content: 'I see' }], [{ name: 'none', description: '' }]);
  const thread = runtime.thread();
  await agent.start(thread, ask()).result();
  assert.match(thread.state().values.messages[2].content, /no function for the tool none/);
});

both('functions may be given apart from the configuration', async (t, runtime) => {
  const config = JSON.stringify({
    model: { provider: 'scripted', replies: [calls('a'), { content: 'Done' }] },
    tools: [{ name: 'a', description: 'A' }],
  });
  const agent = runtime.assembly(config, { tools: { a: () => 'from outside' } });
  const thread = runtime.thread();
  await agent.start(thread, ask()).result();
  assert.equal(thread.state().values.messages[2].content, 'from outside');
});

both('a tool tells of its progress', async (t, runtime) => {
  const agent = scripted(
    runtime,
    [calls('works'), { content: 'Done' }],
    [
      tool('works', async (args, { emit }) => {
        for (const done of [0.25, 0.5]) assert.equal(await emit({ done }), true);
        return 'ok';
      }),
    ],
  );
  const events = await collect(agent.start(runtime.thread(), ask('Go', { stream: ['custom'] })));
  const custom = events.filter(({ type }) => type === 'custom').map(({ data }) => data.value);
  assert.deepEqual(custom, [{ done: 0.25 }, { done: 0.5 }]);
});

both('a host model streams and answers', async (t, runtime) => {
  const requests = [];
  const agent = runtime.assembly({
    system_prompt: 'Be brief.',
    model: {
      provider: 'host',
      model: 'mine',
      async execute(request, { emit, kind, name }) {
        requests.push({ ...request, kind, name });
        if (requests.length === 1) return { content: '', tool_calls: [{ name: 'add', args: { a: 1, b: 2 }, id: 'c1' }] };
        for (const text of ['It ', 'is ', '3.']) assert.equal(await emit({ text }), true);
        return { content: 'It is 3.', usage: { input_tokens: 5, output_tokens: 3 } };
      },
    },
    tools: [tool('add', ({ a, b }) => String(a + b))],
  });
  const run = agent.start(runtime.thread(), ask('1 + 2?'));
  const deltas = (await collect(run)).filter(({ type, data }) => type === 'message_delta' && data.text);
  assert.equal(deltas.map(({ data }) => data.text).join(''), 'It is 3.');
  const result = await run.result();
  assert.equal(result.message.content, 'It is 3.');
  assert.equal(result.usage.total_tokens, 8);
  assert.deepEqual([requests[0].kind, requests[0].name, requests[0].system], ['model', 'mine', 'Be brief.']);
  assert.equal(requests[1].messages.at(-1).content, '3');
});

test('a host model of the runtime keeps its function', async () => {
  const runtime = new Runtime({ models: [{ name: 'm', provider: 'host', execute: () => 'From the runtime' }] });
  const agent = runtime.assembly({ model: 'm' });
  const result = await agent.start(runtime.thread(), ask()).result();
  assert.equal(result.message.content, 'From the runtime');
  agent.close();
  runtime.close();
});

both('a host model that fails fails the run', async (t, runtime) => {
  const agent = runtime.assembly({
    model: {
      provider: 'host',
      execute() {
        throw new Error('out of quota');
      },
    },
  });
  const { status, error } = await agent.start(runtime.thread(), ask()).result();
  assert.deepEqual([status, error.code, error.message], ['error', 'model_host', 'out of quota']);
});

both('emitting much more than the run takes waits, and keeps the order', async (t, runtime) => {
  const part = 'x'.repeat(1 << 20);
  const agent = runtime.assembly({
    model: {
      provider: 'host',
      async execute(request, { emit }) {
        const all = [];
        for (let n = 0; n < 40; n++) all.push(emit({ text: `${n};${part}` }));
        assert.ok((await Promise.all(all)).every(Boolean));
        return 'done';
      },
    },
  });
  let text = '';
  for await (const { type, data } of agent.start(runtime.thread(), ask())) {
    if (type === 'message_delta') text += data.text;
  }
  assert.deepEqual(text.match(/\d+;/g), Array.from({ length: 40 }, (_, n) => `${n};`));
});

both('an AbortSignal cancels the run and its tool', async (t, runtime) => {
  const controller = new AbortController();
  let reason;
  const agent = scripted(
    runtime,
    [calls('slow'), { content: 'never' }],
    [
      tool('slow', async (args, { signal }) => {
        setTimeout(() => controller.abort(new Error('enough')), 20);
        await sleep(60_000, signal).catch((error) => (reason = error));
        return 'too late';
      }),
    ],
  );
  const begun = performance.now();
  const result = await agent.start(runtime.thread(), ask(), { signal: controller.signal }).result();
  assert.ok(performance.now() - begun < 5000);
  assert.deepEqual([result.status, result.cancel_reason], ['interrupted', 'enough']);
  await until(() => reason !== undefined);
  assert.deepEqual([reason.name, reason.code], ['FawnError', 'cancelled']);
});

both('a signal that is aborted already starts nothing', async (t, runtime) => {
  const agent = scripted(runtime, [{ content: 'Hi' }]);
  const signal = AbortSignal.abort(new Error('no'));
  assert.throws(() => agent.start(runtime.thread(), ask(), { signal }), /no/);
  assert.equal(runtime.stats().runs.started, 0);
});

both('one signal serves many runs without a warning', async (t, runtime) => {
  const warnings = [];
  const note = (warning) => warnings.push(warning);
  process.on('warning', note);
  const controller = new AbortController();
  const agent = scripted(runtime, [{ hang: true }]);
  const runs = Array.from({ length: 30 }, () => agent.start(runtime.thread(), ask(), controller));
  const results = runs.map((run) => run.result(controller).catch(({ name }) => name));
  setTimeout(() => controller.abort(), 20);
  assert.deepEqual(new Set(await Promise.all(results)), new Set(['AbortError']));
  for (const run of runs) assert.equal((await run.result()).status, 'interrupted');
  await sleep(0);
  process.off('warning', note);
  assert.deepEqual(warnings, []);
});

both('a deadline aborts the tool, and its late answer changes nothing', async (t, runtime) => {
  const late = [];
  const agent = scripted(
    runtime,
    [calls('slow'), { content: 'I see' }],
    [
      tool(
        'slow',
        async (args, { signal, emit, deadlineMs }) => {
          await sleep(60_000, signal).catch(({ code }) => late.push(code, deadlineMs));
          late.push(await emit('still there?'));
          return 'late';
        },
        { deadline_ms: 30 },
      ),
    ],
  );
  const thread = runtime.thread();
  assert.equal((await agent.start(thread, ask()).result()).status, 'success');
  await until(() => late.length === 3);
  assert.deepEqual(late, ['deadline_exceeded', 30, false]);
  assert.doesNotMatch(thread.state().values.messages[2].content, /late/);
});

both('leaving a loop does not end the run', async (t, runtime) => {
  const agent = scripted(
    runtime,
    [calls('a'), { content: 'word '.repeat(3000), chunks: 3000 }],
    [tool('a', async () => (await sleep(5), 'from a'))],
  );
  const thread = runtime.thread();
  const run = agent.start(thread, ask('Go', { stream: ['messages', 'updates', 'values'] }));
  for await (const event of run) {
    if (event.type === 'run_start') break;
  }
  assert.equal((await run.result()).status, 'success');
  assert.equal(thread.state().values.messages.length, 4);
  assert.deepEqual(await collect(run), []);
});

both('a slow reader holds the run back, and gets everything', async (t, runtime) => {
  // Deltas of tool calls do not merge: 300 turns of 30 events each, and nobody reads at first.
  const turn = { tool_calls: Array.from({ length: 30 }, () => ({ name: 'a', args: {} })) };
  const replies = [...Array.from({ length: 100 }, () => turn), { content: 'Done' }];
  const agent = scripted(runtime, replies, [tool('a', () => 'ok')]);
  const run = agent.start(runtime.thread(), ask('Go', { stream: ['messages'], recursion_limit: 1000 }));
  await sleep(200);
  let next = 1;
  for await (const event of run) {
    assert.equal(event.seq, next++);
    if (next % 1000 === 0) await sleep(1);
  }
  assert.ok(next > 9000, `${next} events`);
  assert.equal((await run.result()).status, 'success');
});

both('a run that nobody reads is not held back while its result is awaited', async (t, runtime) => {
  const turn = { tool_calls: Array.from({ length: 30 }, () => ({ name: 'a', args: {} })) };
  const replies = [...Array.from({ length: 100 }, () => turn), { content: 'Done' }];
  const agent = scripted(runtime, replies, [tool('a', () => 'ok')]);
  const start = () => agent.start(runtime.thread(), ask('Go', { stream: ['messages'], recursion_limit: 1000 }));
  assert.equal((await start().result()).status, 'success');
  start().close();
  await until(() => runtime.stats().runs.active === 0, 20_000);
});

both('two iterations share the events', async (t, runtime) => {
  const agent = scripted(runtime, [{ content: 'word '.repeat(50), chunks: 50, chunk_delay_ms: 1 }]);
  const run = agent.start(runtime.thread(), ask());
  const [a, b] = await Promise.all([collect(run), collect(run)]);
  const seqs = [...a, ...b].map(({ seq }) => seq).sort((x, y) => x - y);
  assert.deepEqual(seqs, Array.from({ length: seqs.length }, (_, n) => n + 1));
});

both('disposing of a run ends it', async (t, runtime) => {
  const agent = scripted(runtime, [{ hang: true }]);
  const run = agent.start(runtime.thread(), ask());
  await run[Symbol.asyncDispose]();
  assert.equal((await run.result()).cancel_reason, 'the run was disposed of');
  await run[Symbol.asyncDispose]();
});

both('a run that does not hold the loop goes on while something else does', async (t, runtime) => {
  const agent = scripted(runtime, [calls('a'), { content: 'Hi', chunks: 2, chunk_delay_ms: 5 }], [tool('a', () => sleep(5))]);
  const thread = runtime.thread();
  const run = agent.start(thread, ask()).unref();
  const events = [];
  void (async () => {
    for await (const event of run) events.push(event);
  })();
  await until(() => events.at(-1)?.type === 'run_end');
  thread.close();
});

both('waiting for a result can be given up', async (t, runtime) => {
  const agent = scripted(runtime, [{ hang: true }]);
  const run = agent.start(runtime.thread(), ask());
  const reason = new Error('no patience');
  await assert.rejects(run.result({ signal: AbortSignal.abort(reason) }), reason);
  const controller = new AbortController();
  setTimeout(() => controller.abort(reason), 10);
  await assert.rejects(run.result(controller), reason);
  assert.equal(run.cancel('tired'), true);
  assert.equal((await run.result()).cancel_reason, 'tired');
});

both('shutting down ends what runs', async (t, runtime) => {
  const reasons = [];
  const agent = scripted(
    runtime,
    [calls('slow')],
    [tool('slow', (args, { signal }) => sleep(60_000, signal).catch(({ code }) => reasons.push(code)))],
  );
  const runs = Array.from({ length: 3 }, () => agent.start(runtime.thread(), ask()));
  await until(() => runtime.stats().open_calls === 3);
  const results = Promise.all(runs.map((run) => run.result()));
  assert.notEqual(await runtime.shutdown(), null);
  assert.deepEqual((await results).map(({ status }) => status), Array(3).fill('interrupted'));
  await until(() => reasons.length === 3);
  assert.throws(() => agent.start(runtime.thread(), ask()), { code: 'closed' });
});

both('closing a runtime settles everything that waits', async (t, runtime) => {
  const reasons = [];
  const agent = scripted(
    runtime,
    [calls('slow')],
    [tool('slow', (args, { signal }) => sleep(60_000, signal).catch(({ code }) => reasons.push(code)))],
  );
  const run = agent.start(runtime.thread(), ask());
  const queue = runtime.queue();
  const other = agent.start(runtime.thread(), ask(), { queue: runtime.queue() });
  await until(() => runtime.stats().open_calls > 0);
  const waiting = [queue.take(), collect(queue), run.result(), collect(run), other.result()];
  await sleep(5);
  runtime.close();
  const [taken, iterated, result, events, otherResult] = await Promise.all(waiting);
  assert.equal(taken, null);
  assert.deepEqual(iterated, []);
  assert.equal(result.status, 'interrupted');
  assert.equal(otherResult.status, 'interrupted');
  assert.ok(events.length > 0);
  await until(() => reasons.length > 0);
});

both('middlewares of the host are functions that give verdicts', async (t, runtime) => {
  const seen = [];
  const gate = (name, execute, host = {}) => ({ name, host: { hooks: ['wrap_tool_call'], on_timeout: 'deny', ...host }, execute });
  const agent = runtime.assembly({
    model: { provider: 'scripted', replies: [calls('a', 'b', 'c', 'd'), { content: 'Done' }] },
    tools: ['a', 'b', 'c', 'd'].map((name) => tool(name, () => `ran ${name}`)),
    middleware: [
      gate('approval', ({ call, phase }, { kind, name, toolCallId }) => {
        seen.push([kind, name, phase, call.name, toolCallId === call.id]);
        if (call.name === 'b') return { verdict: 'deny', reason: 'not b' };
        if (call.name === 'c') return { verdict: 'change', result: 'from the host' };
        if (call.name === 'd') throw new Error('lost');
        return { verdict: 'continue' };
      }),
    ],
  });
  const thread = runtime.thread();
  assert.equal((await agent.start(thread, ask()).result()).status, 'success');
  assert.deepEqual(seen, ['a', 'b', 'c', 'd'].map((name) => ['middleware', 'approval', 'before', name, true]));
  const texts = thread.state().values.messages.filter(({ type }) => type === 'tool').map(({ content }) => content);
  assert.deepEqual([texts[0], texts[2]], ['ran a', 'from the host']);
  assert.match(texts[1], /not b/);
  assert.match(texts[3], /^Error: .*could not decide/);
  assert.throws(
    () => runtime.assembly({ model: { provider: 'host' } }, { model: () => '', middleware: { approval: () => ({ verdict: 'continue' }) } }),
    { code: 'unknown_member', path: '/middleware/approval' },
  );
});
