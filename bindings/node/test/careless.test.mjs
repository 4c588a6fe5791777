// What careless hosts do: values that have no text, texts that were cut, arguments of the wrong kind. Each gets an answer or an
// error that says what was wrong; nothing ends the process, and no call is left open.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { after, test } from 'node:test';
import { FawnError, Runtime, describe, reduce, reduceText, statusName } from '../index.mjs';
import { WORKERS, ask, calls, collect, living, open, scripted, sleep, tool, until } from './support.mjs';

const rejections = [];
process.on('unhandledRejection', (reason) => rejections.push(reason));
after(() => assert.deepEqual(rejections, []));

function both(name, body) {
  for (const workers of WORKERS) test(`${name} (workers: ${workers})`, (t) => body(t, open(t, { workers })));
}

/** The warnings that come while `act` runs. */
async function warningsOf(act) {
  const warnings = [];
  const note = (warning) => warnings.push(warning);
  process.on('warning', note);
  await act();
  await sleep(0);
  process.off('warning', note);
  return warnings.filter(({ code }) => code !== 'FAWN_FORGOTTEN');
}

const HALF = '😀'.slice(0, 1);
const OTHER_HALF = '😀'.slice(1);

function thrower(make) {
  return () => {
    throw make();
  };
}

/** Values that have no text, or one that throws. */
const TEXTLESS = {
  bare: () => Object.create(null),
  toString: () => ({
    toString() {
      throw 1;
    },
  }),
  textless: () => ({ toString: undefined, valueOf: undefined }),
  getter: () =>
    Object.defineProperty(new Error(), 'message', {
      get() {
        throw Object.create(null);
      },
    }),
  number: () => Object.defineProperty(new Error(), 'message', { value: 10n }),
  object: () => Object.defineProperty(new Error(), 'message', { value: Object.create(null) }),
  proxy: () =>
    new Proxy(new Error(), {
      get: thrower(() => 1),
      getPrototypeOf: thrower(() => 2),
    }),
  nothing: () => undefined,
  none: () => null,
  symbol: () => Symbol('s'),
  empty: () => new Error(''),
  half: () => new Error(`cut ${HALF}`),
};

/** Results that cannot be made JSON, or would lose what they hold. */
const UNSENDABLE = {
  bigint: () => 10n,
  circle: () => {
    const circle = {};
    circle.circle = circle;
    return circle;
  },
  toJSON: () => ({ toJSON: thrower(() => Object.create(null)) }),
  content: () => ({
    get content() {
      throw undefined;
    },
  }),
  then: () => ({
    get then() {
      throw Object.create(null);
    },
  }),
  map: () => new Map([[1, 2]]),
  set: () => new Set([1]),
  member: () => ({ content: new Map([[1, 2]]) }),
  promise: () => ({ content: Promise.resolve('forgot to await') }),
  floats: () => new Float64Array([1]),
  view: () => new DataView(new ArrayBuffer(1)),
  function: () => () => 'forgot to call',
  mark: () => Symbol('s'),
  latin: () => Buffer.from([0x66, 0xff]),
};

async function answersOf(runtime, functions) {
  const names = Object.keys(functions);
  const agent = scripted(runtime, [calls(...names), { content: 'I see' }], names.map((name) => tool(name, functions[name])));
  const thread = runtime.thread();
  const { status } = await agent.start(thread, ask()).result({ signal: AbortSignal.timeout(20_000) });
  assert.equal(status, 'success');
  const answers = thread.state().values.messages.filter(({ type }) => type === 'tool');
  assert.deepEqual(answers.map(({ name }) => name), names);
  return answers;
}

both('whatever a tool throws, there is an answer', async (t, runtime) => {
  const thrown = Object.fromEntries(Object.entries(TEXTLESS).map(([name, make]) => [name, thrower(make)]));
  const rejected = Object.fromEntries(Object.entries(TEXTLESS).map(([name, make]) => [`${name}2`, async () => Promise.reject(make())]));
  for (const { name, status, content } of await answersOf(runtime, { ...thrown, ...rejected })) {
    assert.equal(status, 'error', name);
    assert.ok(content.length > 0 && content.isWellFormed(), name);
  }
});

both('whatever a tool returns, there is an answer', async (t, runtime) => {
  const answers = await answersOf(runtime, UNSENDABLE);
  for (const { name, status } of answers) assert.equal(status, 'error', name);
  const texts = Object.fromEntries(answers.map(({ name, content }) => [name, content]));
  assert.match(texts.map, /what the function of the tool map returned is a Map/);
  assert.match(texts.member, /the tool member returned: the member content is a Map/);
  assert.match(texts.promise, /is a Promise.*await it/);
  assert.match(texts.function, /is a function/);
  assert.match(texts.latin, /encoded data|utf-8/i);
});

both('bytes that a tool returns are text', async (t, runtime) => {
  const bytes = new TextEncoder().encode('é€');
  const answers = await answersOf(runtime, {
    buffer: () => Buffer.from('é€'),
    array: () => bytes,
    part: () => Buffer.from('xé€x').subarray(1, 6),
    whole: () => bytes.buffer,
    content: () => ({ content: bytes, artifact: 1 }),
  });
  assert.deepEqual(answers.map(({ status, content }) => [status, content]), Array(5).fill(['success', 'é€']));
});

both('whatever a model of the host throws or returns, the run ends with an error', async (t, runtime) => {
  const functions = [...Object.values(TEXTLESS).map(thrower), ...Object.values(UNSENDABLE)];
  for (const execute of functions) {
    const agent = runtime.assembly({ model: { provider: 'host', execute } });
    const { status, error } = await agent.start(runtime.thread(), ask()).result({ signal: AbortSignal.timeout(20_000) });
    assert.deepEqual([status, error.code], ['error', 'model_host'], String(execute));
  }
});

both('serving a host call from a queue never rejects', async (t, runtime) => {
  const functions = { ...Object.fromEntries(Object.entries(TEXTLESS).map(([name, make]) => [name, thrower(make)])), ...UNSENDABLE };
  const names = Object.keys(functions);
  const agent = scripted(runtime, [calls(...names), { content: 'I see' }], names.map((name) => tool(name, functions[name])));
  const queue = runtime.queue();
  const run = agent.start(runtime.thread(), ask(), { queue });
  const served = [];
  for await (const event of queue) {
    if (event.type === 'host_call') served.push(agent.serve(event));
    else assert.throws(() => agent.serve(event), new RegExp(`host_call, not ${event.type}`));
    if (event.type === 'run_end') break;
  }
  assert.deepEqual(await Promise.all(served), names.map(() => undefined));
  assert.equal((await run.result()).status, 'success');
  for (const event of [undefined, null, {}, 'host_call']) assert.throws(() => agent.serve(event), TypeError);
});

both('an answer that is refused is reported by the name of who gave it', async (t, runtime) => {
  const warnings = await warningsOf(async () => {
    const [{ content }] = await answersOf(runtime, { extra: () => ({ content: 'x', contend: 1 }) });
    assert.match(content, /the answer of the tool extra is refused: .*contend/);
    const agent = runtime.assembly({ model: { provider: 'host', model: 'mine', execute: () => 7 } });
    const { error } = await agent.start(runtime.thread(), ask()).result();
    assert.match(error.message, /the answer of the model mine is refused/);
  });
  assert.deepEqual(warnings.map(({ message }) => message.match(/the (tool|model) \w+/)[0]), ['the tool extra', 'the model mine']);
});

both('a model of the host that returns nothing is told by name', async (t, runtime) => {
  for (const nothing of [undefined, null]) {
    const agent = runtime.assembly({ model: { provider: 'host', model: 'mine', execute: async () => nothing } });
    const { error } = await agent.start(runtime.thread(), ask()).result();
    assert.match(error.message, /the function of the model mine returned nothing/);
  }
});

both('parts that are none reject, and the call goes on', async (t, runtime) => {
  const [{ content }] = await answersOf(runtime, {
    async works(args, { emit }) {
      const parts = [10n, new Map(), () => 1, { toJSON: thrower(() => undefined) }, { toJSON: thrower(() => ({ code: 'behind' })) }];
      const outcomes = await Promise.allSettled(parts.map((part) => emit(part)));
      return outcomes.map(({ status }) => status).join();
    },
  });
  assert.equal(content, Array(5).fill('rejected').join());
});

both('a call whose runtime is closed is over', async (t, runtime) => {
  let outcome;
  const agent = scripted(
    runtime,
    [calls('works')],
    [
      tool('works', async (args, { signal, emit }) => {
        await sleep(60_000, signal).catch(() => {});
        outcome = await Promise.allSettled([emit(1), emit('x'.repeat(100))]);
        return 'late';
      }),
    ],
  );
  const run = agent.start(runtime.thread(), ask());
  await until(() => runtime.stats().open_calls === 1);
  await sleep(5);
  runtime.close();
  await until(() => outcome !== undefined);
  assert.deepEqual(outcome.map(({ value }) => value), [false, false]);
  await run.result().catch(() => {});
});

both('texts that were cut in the middle of a character go in as U+FFFD', async (t, runtime) => {
  const thread = runtime.thread();
  const cut = `${HALF}x${OTHER_HALF}😀\\ud83d\\\\${HALF}`;
  const whole = '\ufffdx\ufffd😀\\ud83d\\\\\ufffd';
  assert.equal(cut.toWellFormed(), whole);
  thread.update({ values: { title: cut, messages: [{ role: 'user', content: cut }], goal: { [`k${HALF}`]: [cut] } } });
  const { title, messages, goal } = thread.state().values;
  assert.deepEqual([title, messages[0].content, goal], [whole, whole, { 'k\ufffd': [whole] }]);
  // JSON text in a string: halves as such and as escapes; a pair of escapes is a character.
  const text = JSON.stringify({ existing: null, updates: [[cut, '#']] }).replace('#', `${HALF}\\uD83D\\uDE00\\uD83D`);
  assert.deepEqual(reduce('artifacts', text), [whole, '\ufffd😀\ufffd']);
  // Bytes are the host's word.
  assert.throws(() => reduceText('artifacts', Buffer.from(text)), { code: 'json_syntax' });
  assert.deepEqual(runtime.submit({ op: 'delete_thread', thread_id: `no${HALF}` }), {});

  const agent = scripted(
    runtime,
    [calls('cut', 'throws'), { content: cut }],
    [
      tool('cut', async (args, { emit }) => {
        await emit({ [HALF]: cut });
        return { content: cut, artifact: { [HALF]: cut } };
      }),
      tool('throws', thrower(() => cut)),
    ],
  );
  const other = runtime.thread();
  const run = agent.start(other, ask(cut, { stream: ['custom'] }));
  const parts = (await collect(run)).filter(({ type }) => type === 'custom').map(({ data }) => data.value);
  assert.deepEqual(parts, [{ '\ufffd': whole }]);
  assert.equal((await run.result()).message.content, whole);
  const [asked, , good, bad] = other.state().values.messages;
  assert.deepEqual([asked.content, good.content, good.artifact], [whole, whole, { '\ufffd': whole }]);
  assert.ok(bad.content.includes(whole));

  const streaming = runtime.assembly({
    model: {
      provider: 'host',
      async execute(request, { emit }) {
        for (const half of [HALF, OTHER_HALF]) assert.equal(await emit({ text: half }), true);
        return cut;
      },
    },
  });
  const { message, error } = await streaming.start(runtime.thread(), ask()).result();
  assert.equal(message?.content, whole, error?.message);

  const hanging = scripted(runtime, [{ hang: true }]);
  const cancelled = hanging.start(runtime.thread(), ask());
  cancelled.cancel(cut);
  assert.equal((await cancelled.result()).cancel_reason, whole);
});

test('JSON of every kind of escape stays what it is', () => {
  const texts = ['\\ud83d\\ude00', '\\\\ud83d', '\\\\\\\\ud83d', '\\"\\ud83d\\ude00\\\\ud83d', '\\u00e9\\ud83d\\ude00'];
  for (const text of texts) {
    const list = `["${text}"]`;
    assert.equal(reduceText('artifacts', `{"existing":null,"updates":[${list}]}`), JSON.stringify(JSON.parse(list)));
  }
});

both('call ids and other numbers are not converted', async (t, runtime) => {
  const agent = scripted(runtime, [calls('a'), { content: 'Done' }], [{ name: 'a', description: '' }]);
  const queue = runtime.queue();
  const thread = runtime.thread();
  const run = agent.start(thread, ask(), { queue });
  let callId;
  for await (const { type, data } of queue) {
    if (type !== 'host_call') continue;
    callId = data.call_id;
    break;
  }
  const wrong = [callId + 0.7, undefined, null, String(callId), BigInt(callId), NaN, Infinity, -1, -callId, 2 ** 53, [callId], {}, true];
  for (const id of [...wrong, new Number(callId), { valueOf: () => callId }]) {
    assert.throws(() => runtime.finish(id, { ok: 'wrong' }), TypeError, String(id));
    assert.throws(() => runtime.emit(id, 'wrong'), TypeError, String(id));
  }
  assert.throws(() => runtime.finish(2 ** 53 - 1, { ok: 1 }), { code: 'handle' });
  assert.equal(runtime.finish(callId, { ok: 'right' }), true);
  await run.result();
  assert.equal(thread.state().values.messages[2].content, 'right');
  for (const status of ['-102', undefined, 1.5, NaN, 2 ** 31, 1n]) assert.throws(() => statusName(status), TypeError);

  for (const max of ['1', null, 1.5, -1, NaN, Infinity, 2 ** 32, 1n]) {
    await assert.rejects(queue.take({ max, timeoutMs: 0 }), TypeError, String(max));
    await assert.rejects(queue.takeText({ max, timeoutMs: 0 }), TypeError, String(max));
  }
  for (const timeoutMs of ['1', null, NaN, 1n, {}]) {
    await assert.rejects(queue.take({ timeoutMs }), TypeError, String(timeoutMs));
    await assert.rejects(queue.takeText({ timeoutMs }), TypeError, String(timeoutMs));
    await assert.rejects(runtime.shutdown({ timeoutMs }), TypeError, String(timeoutMs));
  }
  assert.ok((await queue.take({ max: 1 })).length === 1, 'nothing was lost');
});

both('a time too long for a timer does not end at once', async (t, runtime) => {
  const queue = runtime.queue();
  const waiting = [2 ** 31, 1e12, Infinity, -1].map((timeoutMs) => queue.take({ timeoutMs }));
  let settled = 0;
  for (const take of waiting) void take.then(() => settled++);
  await sleep(20);
  assert.equal(settled, 0);
  queue.close();
  await Promise.all(waiting);
});

both('a signal that is none, and an option that there is not', async (t, runtime) => {
  const agent = scripted(runtime, [{ hang: true }]);
  const thread = runtime.thread();
  const queue = runtime.queue();
  const run = agent.start(thread, ask());
  for (const signal of [null, {}, 'abort', 1, new AbortController(), new EventTarget()]) {
    assert.throws(() => agent.start(runtime.thread(), ask(), { signal }), /signal must be an AbortSignal/);
    await assert.rejects(run.result({ signal }), TypeError);
    await assert.rejects(queue.take({ signal }), TypeError);
    await assert.rejects(queue.takeText({ signal }), TypeError);
    await assert.rejects(runtime.shutdown({ signal }), TypeError);
  }
  const wrong = /no option timeout here; there is/;
  assert.throws(() => agent.start(runtime.thread(), ask(), { timeout: 1 }), wrong);
  await assert.rejects(run.result({ timeout: 1 }), wrong);
  await assert.rejects(queue.take({ timeout: 1 }), wrong);
  await assert.rejects(runtime.shutdown({ timeout: 1 }), wrong);
  for (const options of [5, 'x', null]) {
    assert.throws(() => agent.start(runtime.thread(), ask(), options), TypeError);
    await assert.rejects(queue.take(options), TypeError);
  }
  assert.equal(runtime.stats().runs.started, 1, 'nothing was started or shut down');
  run.cancel();
  await run.result();
});

both('a signal is aborted with anything, at any time', async (t, runtime) => {
  const agent = scripted(runtime, [{ hang: true }]);
  const controllers = Object.values(TEXTLESS).map((make) => [new AbortController(), make]);
  const runs = controllers.map(([{ signal }]) => agent.start(runtime.thread(), ask(), { signal }));
  for (const [controller, make] of controllers) controller.abort(make());
  for (const run of runs) assert.equal((await run.result()).status, 'interrupted');
});

both('a signal ends a run that was let go', async (t, runtime) => {
  const agent = scripted(runtime, [{ hang: true }]);
  const queue = runtime.queue();
  const controller = new AbortController();
  for (const options of [{ queue }, { queue: null }, {}]) {
    agent.start(runtime.thread(), ask(), { ...options, signal: controller.signal }).close();
  }
  assert.equal(runtime.stats().runs.active, 3);
  controller.abort(new Error('enough'));
  for await (const { type, data } of queue) {
    if (type !== 'run_end') continue;
    assert.deepEqual([data.status, data.cancel_reason], ['interrupted', 'enough']);
    break;
  }
  await until(async () => (await queue.take({ timeoutMs: 1 }), runtime.stats().runs.active === 0));
  assert.ok(!runtime.stats().handles.some(({ kind }) => kind === 'run'), 'their handles are freed');
});

both('a run that was let go is freed when its end is taken', async (t, runtime) => {
  const agent = scripted(runtime, [{ content: 'Hi' }], [], { repeat: true });
  const queue = runtime.queue();
  const { signal } = new AbortController();
  for (let n = 0; n < 5; n++) agent.start(runtime.thread(), ask(), { queue, signal }).close();
  let ended = 0;
  for await (const { type } of queue) if (type === 'run_end' && ++ended === 5) break;
  await until(() => !runtime.stats().handles.some(({ kind }) => kind === 'run'));
});

both('a signal that is aborted when the runtime is closed', async (t, runtime) => {
  const agent = scripted(runtime, [{ hang: true }]);
  const controller = new AbortController();
  const { signal } = controller;
  const run = agent.start(runtime.thread(), ask(), { signal });
  agent.start(runtime.thread(), ask(), { signal, queue: runtime.queue() }).close();
  runtime.close();
  controller.abort();
  await run.result().catch(() => {});
});

test('a guardrail decides whether a tool is called', async (t) => {
  const runtime = open(t, {});
  const calls = ['one', 'two', 'three', 'four'].map((at) => ({ name: 'look', args: { at } }));
  const config = {
    model: { provider: 'scripted', replies: [{ tool_calls: calls }, { content: 'Done.' }] },
    middleware: [{ name: 'guardrail_provider', provider: { use: 'host', config: { name: 'watch' } } }],
    tools: [{ name: 'look', description: '', execute: ({ at }) => at }],
  };
  const asked = [];
  const agent = runtime.assembly(config, {
    guardrail: async ({ tool_input: { at } }, { kind, name }) => {
      asked.push(`${kind} ${name} ${at}`);
      if (at === 'three') throw new Error('asleep');
      if (at === 'four') return undefined;
      return { allow: at === 'one', reasons: [{ code: 'odd', message: 'No.' }] };
    },
  });
  const thread = runtime.thread();
  const result = await agent.start(thread, { input: { messages: ['Go'] } }).result();
  assert.equal(result.status, 'success');
  assert.deepEqual(asked.sort(), ['guardrail watch four', 'guardrail watch one', 'guardrail watch three', 'guardrail watch two']);
  const results = thread.state().values.messages.filter(({ type }) => type === 'tool').map(({ content }) => content);
  assert.equal(results[0], 'one');
  assert.match(results[1], /not allowed \(odd\): No\./);
  for (const text of results.slice(2)) assert.match(text, /oap\.evaluator_error/);
  assert.throws(() => runtime.assembly(config, { guardrail: 5 }), TypeError);
  agent.close();
});

test('a function for a tool that there is not is an error', (t) => {
  const runtime = open(t, {});
  const before = living();
  const config = { model: { provider: 'scripted', replies: [] }, tools: [{ name: 'add', description: '' }] };
  for (const given of [config, JSON.stringify(config), Buffer.from(JSON.stringify(config))]) {
    const wrong = { code: 'unknown_member', status: -122, path: '/tools/Add', message: /tool Add.*it has add/ };
    assert.throws(() => runtime.assembly(given, { tools: { Add() {} } }), wrong);
    assert.throws(() => runtime.assembly(given, { tool: { add() {} } }), { code: 'unknown_member', path: '/tool' });
    assert.throws(() => runtime.assembly(given, { model() {} }), { code: 'conflict' });
    for (const functions of [null, 5, 'x']) assert.throws(() => runtime.assembly(given, functions), TypeError);
    for (const tools of [null, 5, [], new Map([['add', () => 1]])]) assert.throws(() => runtime.assembly(given, { tools }), TypeError);
    for (const add of [null, undefined, {}, 'x']) assert.throws(() => runtime.assembly(given, { tools: { add } }), TypeError);
  }
  assert.throws(() => runtime.assembly({ model: { provider: 'scripted', replies: [], execute() {} } }), { code: 'conflict' });
  assert.throws(() => new Runtime({ models: [{ name: 'm', provider: 'scripted', replies: [], execute() {} }] }), { code: 'conflict' });
  assert.equal(living(), before, 'what was made for it is freed');
  runtime.assembly(JSON.stringify(config), { tools: { add() {} } }).close();
});

test('a function in a configuration that nothing would call is an error', (t) => {
  const runtime = open(t, {});
  const model = { provider: 'scripted', replies: [] };
  assert.throws(() => runtime.assembly({ model, tools: [{ name: 'add', description: '', run() {} }] }), /run is a function/);
  assert.throws(() => runtime.assembly({ model: { provider: 'host', call() {} } }), /call is a function/);
  assert.throws(() => new Runtime({ models: [{ name: 'm', provider: 'host', call() {} }] }), /call is a function/);
  runtime.assembly({ model, 'x-mine': () => 1, tools: [{ name: 'add', 'x-mine': { at: 1 } }] }).close();
  const headers = { 'x-api-key': 5 };
  assert.throws(() => runtime.assembly({ model: { provider: 'openai', model: 'm', headers } }), { path: '/model/headers/x-api-key' });
});

test('models of the host among fallbacks have functions of their own', (t) => {
  const require = createRequire(import.meta.url);
  const { split, splitApp } = require('../lib/functions.cjs');
  const { Scope, functionsFor } = require('../lib/scope.cjs');
  const [one, two, other] = [() => 1, () => 2, () => 3];
  const named = {
    models: [
      { name: 'a', provider: 'openai', model: 'gpt', fallbacks: ['b', { provider: 'host', execute: one }] },
      { name: 'b', provider: 'host', model: 'mine', execute: two, fallbacks: ['a'] },
    ],
  };
  const text = JSON.stringify(splitApp(named));
  assert.doesNotMatch(text, /execute/);
  const scope = new Scope(named, text);
  const functionsOf = (model, functions) => {
    const { given, ...own } = split({ model }, functions);
    assert.doesNotMatch(JSON.stringify(given), /execute/);
    const { models, answersModels } = functionsFor({ model }, JSON.stringify(given), own, scope);
    return { models, answersModels };
  };
  assert.deepEqual(functionsOf('a'), { models: new Map([['mine', two], ['host', one]]), answersModels: true });
  const mixed = { provider: 'scripted', fallbacks: ['b', { provider: 'host', model: 'third' }] };
  assert.equal(functionsOf(mixed).answersModels, false);
  // Fallbacks of a fallback count too.
  const all = new Map([['mine', two], ['host', one], ['third', other]]);
  assert.deepEqual(functionsOf(mixed, { model: other }), { models: all, answersModels: true });
  // What the assembly says of a name wins over the runtime.
  assert.equal(functionsOf({ provider: 'host' }, { model: other }).models.get('host'), other);
  assert.throws(() => functionsOf('a', { model: other }), { code: 'conflict' });
  assert.throws(() => functionsOf({ provider: 'host', execute: two, fallbacks: ['a'] }), { code: 'conflict', message: /two functions/ });
  assert.throws(() => functionsOf({ provider: 'host', execute: two, fallbacks: [{ provider: 'openai', execute: one }] }), { code: 'conflict' });
  assert.throws(() => functionsOf({ provider: 'scripted', fallbacks: [{ provider: 'host', execute: 1 }] }), TypeError);
});

const schema = JSON.stringify(describe('schema/assembly_config'));
test('a host model that is a fallback is called', { skip: !schema.includes('"fallbacks"') && 'the library has none' }, async (t) => {
  const runtime = open(t, {});
  const failing = { provider: 'scripted', replies: [] };
  const agent = runtime.assembly({ model: { ...failing, fallbacks: [{ provider: 'host', model: 'second', execute: () => 'from the second' }] } });
  const { message, error } = await agent.start(runtime.thread(), ask()).result();
  assert.equal(message?.content, 'from the second', error?.message);
});

both('a host model without a function is an error at the start, unless a queue is there to answer from', async (t, runtime) => {
  const without = { name: 'FawnError', code: 'assembly_invalid', message: /no function.*execute/ };
  const named = new Runtime({ workers: 0, models: [{ name: 'm', provider: 'host' }] });
  const text = new Runtime('{"workers":0,"models":[{"name":"m","provider":"host"}]}');
  const cases = [
    [runtime, { model: { provider: 'host' } }],
    [runtime, '{"model":{"provider":"host"}}'],
    [named, { model: 'm' }],
    [text, '{"model":"m"}'],
  ];
  for (const [owner, config] of cases) {
    const agent = owner.assembly(config);
    const { started } = owner.stats().runs;
    assert.throws(() => agent.start(owner.thread(), ask()), without);
    assert.equal(owner.stats().runs.started, started);
    const thread = owner.thread();
    const { message } = await owner.assembly(config, { model: () => 'apart' }).start(thread, ask()).result();
    assert.equal(message.content, 'apart');
  }
  const queue = runtime.queue();
  const run = runtime.assembly({ model: { provider: 'host' } }).start(runtime.thread(), ask(), { queue });
  for await (const { type, data } of queue) {
    if (type === 'host_call') runtime.finish(data.call_id, { ok: 'by hand' });
    if (type === 'run_end') break;
  }
  assert.equal((await run.result()).message.content, 'by hand');
  named.close();
  text.close();
});

test('objects of the wrong class are told by name', (t) => {
  const runtime = open(t, {});
  const agent = scripted(runtime, [{ content: 'Hi' }]);
  const thread = runtime.thread();
  for (const [wrong, name] of [[undefined, 'undefined'], [null, 'null'], [{}, 'Object'], [runtime, 'Runtime'], [5, 'number']]) {
    const expected = (kind) => ({ name: 'TypeError', message: `fawn: expected a ${kind}, not ${name}` });
    assert.throws(() => agent.start(wrong, ask()), expected('Thread'));
    if (wrong === undefined || wrong === null) continue;
    assert.throws(() => agent.start(thread, ask(), { queue: wrong }), expected('Queue'));
  }
});

test('documents may be bytes of any buffer; other arrays, maps and promises are refused', (t) => {
  const runtime = open(t, {});
  const bytes = new TextEncoder().encode('{"existing":null,"updates":[["é"]]}');
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
  shared.set(bytes);
  for (const given of [bytes, bytes.buffer, Buffer.from(bytes), shared, shared.buffer]) assert.deepEqual(reduce('artifacts', given), ['é']);
  const wrong = [new Uint16Array([1]), new Float64Array(1), new DataView(bytes.buffer), new Map([['thread_id', 'x']]), new Set(['x'])];
  for (const given of [...wrong, Promise.resolve({}), () => 1, Symbol('x')]) {
    assert.throws(() => runtime.thread(given), TypeError);
    assert.throws(() => runtime.assembly(given), TypeError);
    assert.throws(() => new Runtime(given), TypeError);
  }
  assert.throws(() => runtime.thread().update({ values: new Map([['title', 'x']]) }), /the member values is a Map/);
  assert.throws(() => new Runtime({ database: new Map() }), /database is a Map/);
  for (const given of [5, null, true]) assert.throws(() => runtime.thread(given), FawnError);
});

both('threads and runs have ids', async (t, runtime) => {
  const named = runtime.thread({ thread_id: 'mine' });
  const unnamed = runtime.thread();
  assert.equal(named.id, 'mine');
  assert.match(unnamed.id, /^[0-9a-f-]{36}$/);
  const agent = scripted(runtime, [{ content: 'Hi' }], [], { repeat: true });
  const own = agent.start(unnamed, ask());
  const events = await collect(own);
  for (const { run_id, thread_id } of events) assert.deepEqual([run_id, thread_id], [own.id, unnamed.id]);
  const queue = runtime.queue();
  const runs = [named, unnamed].map((thread, n) => agent.start(thread, ask('Go', n === 0 ? { run_id: 'r' } : {}), { queue }));
  assert.equal(runs[0].id, 'r');
  const left = new Map(runs.map((run) => [run.id, run.threadId]));
  for await (const { type, run_id, thread_id } of queue) {
    assert.equal(left.get(run_id), thread_id);
    if (type === 'run_end' && left.delete(run_id) && left.size === 0) break;
  }
  assert.equal((await runs[1].result()).run_id, runs[1].id);
  unnamed.close();
  assert.match(unnamed.id, /^[0-9a-f-]{36}$/, 'once it was asked for it stays');
});

test('a runtime is driven when the library says so, however it was configured', async () => {
  const testing = { clock: '2026-01-01T00:00:00Z', ids: 'sequential', workers: 0 };
  for (const config of [{ workers: 0 }, '{"workers":0}', { testing }, Buffer.from(JSON.stringify({ testing })), {}, { workers: 1 }]) {
    const runtime = new Runtime(config);
    const agent = scripted(runtime, [{ content: 'Hi' }]);
    assert.equal((await agent.start(runtime.thread(), ask()).result()).status, 'success');
    const stuck = scripted(runtime, [{ hang: true }]).start(runtime.thread(), ask());
    assert.equal(await runtime.shutdown({ timeoutMs: 0 }).then((answer) => answer?.runs_cancelled ?? 1), 1);
    assert.equal((await runtime.shutdown()).runs_cancelled, 1, 'over all calls');
    assert.equal((await stuck.result()).status, 'interrupted');
    runtime.close();
  }
});

both('a shutdown is told to a function that serves a call from a queue', async (t, runtime) => {
  let code;
  let down;
  const slow = tool('slow', (args, { signal }) => sleep(60_000, signal).catch((error) => (code = error.code)));
  const agent = scripted(runtime, [calls('slow')], [slow]);
  const queue = runtime.queue();
  agent.start(runtime.thread(), ask(), { queue });
  for await (const event of queue) {
    if (event.type === 'host_call') {
      void agent.serve(event);
      down = runtime.shutdown();
    }
    if (event.type === 'run_end') break;
  }
  await until(() => code !== undefined);
  assert.equal((await down).runs_cancelled, 1);
});

