// Importing, errors, closing: what holds for every object.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import * as fawn from '../index.mjs';
import { ask, living, open, scripted, sleep, until } from './support.mjs';

const { FawnError, Runtime } = fawn;
const require = createRequire(import.meta.url);

test('import and require give the same objects', () => {
  const required = require('../index.cjs');
  assert.deepEqual(Object.keys(required).sort(), Object.keys(fawn.default).sort());
  for (const [name, value] of Object.entries(required)) assert.equal(fawn[name], value, name);
});

test('what needs no runtime', () => {
  assert.match(fawn.version(), /^\d+\.\d+\.\d+$/);
  assert.equal(fawn.abiVersion(), 1);
  assert.equal(fawn.statusName(-102), 'FAWN_ERR_HANDLE');
  assert.equal(fawn.statusName(-9), 'FAWN_UNKNOWN');
  assert.equal(fawn.describe('build').version, fawn.version());
  assert.deepEqual(fawn.reduce('artifacts', { existing: ['a'], updates: [['b', 'a']] }), ['a', 'b']);
  const [message] = fawn.convertMessages({ messages: ['hi'] });
  assert.equal(message.content, 'hi');
});

test('descriptors are compared and drawn', () => {
  const agent = (model) => ({
    namespace: 'deerflow',
    agent_name: 'a',
    effective_model: model,
    model_parameters: {},
    thinking_enabled: false,
    reasoning_effort: null,
    base_prompt_hash: 'p',
    tools: [],
    middlewares: [],
    deferred_tool_names: [],
    enabled_skills: [],
    effective_policies: {},
  });
  const diff = fawn.diffDescriptors({ before: agent('fast'), after: agent('slow') });
  assert.equal(diff.same, false);
  assert.deepEqual(diff.changes.map(({ what, path, before, after }) => [what, path, before, after]), [
    ['model_changed', '/effective_model', 'fast', 'slow'],
  ]);
  assert.match(diff.text, /The model changed from "fast" to "slow"\./);
  assert.match(fawn.diffDescriptorsText(JSON.stringify({ before: agent('m'), after: agent('m') })), /^\{"same":true,/);
  assert.match(fawn.drawDescriptor(agent('m')), /^flowchart TD\n/);
  assert.throws(() => fawn.diffDescriptors({ before: null, after: agent('m') }), { code: 'wrong_type', path: '/before' });
  assert.throws(() => fawn.drawDescriptor({}), { code: 'missing_member', path: '/namespace' });
});

test('every function of fawn.h is called by the addon', async () => {
  const fs = await import('node:fs');
  const folder = new URL('../src/', import.meta.url);
  const include = process.env.FAWN_INCLUDE_DIR ?? new URL('../../../include', import.meta.url).pathname;
  const header = fs.readFileSync(`${include}/fawn.h`, 'utf8').replace(/\/\*[^]*?\*\//g, '');
  const sources = fs.readdirSync(folder).map((name) => fs.readFileSync(new URL(name, folder), 'utf8'));
  const code = sources.join('\n').replace(/\/\*[^]*?\*\//g, '');
  const functions = [...new Set([...header.matchAll(/\b(fawn_\w+)\(/g)].map(([, name]) => name))];
  assert.ok(functions.length >= 36, `${functions.length} functions in the header`);
  for (const name of functions) assert.match(code, new RegExp(`\\b${name}\\b`), name);
});

test('an error says what was wrong and where', () => {
  const runtime = new Runtime();
  assert.throws(
    () => runtime.assembly({ model: { provider: 'scripted', replies: [] }, temperatur: 1 }),
    (error) => {
      assert.ok(error instanceof FawnError && error instanceof Error);
      assert.equal(error.name, 'FawnError');
      assert.equal(error.code, 'unknown_member');
      assert.equal(error.status, -122);
      assert.equal(error.path, '/temperatur');
      assert.equal(error.retryable, false);
      assert.equal(JSON.parse(error.text).message, error.message);
      assert.match(error.stack, /basics\.test\.mjs/);
      return true;
    },
  );
  runtime.close();
});

test('an error carries what lay behind it as its cause', () => {
  const object = { code: 'store', status: -403, message: 'no', retryable: true, cause: ['the disk is full'] };
  const error = new FawnError(object);
  assert.deepEqual(error.cause, object.cause);
  assert.equal(error.retryable, true);
  assert.deepEqual(JSON.parse(error.text), object);
  assert.equal(error.path, undefined);
});

test('text, bytes and objects say the same', () => {
  const runtime = new Runtime();
  const object = { existing: [], updates: [['é', '😀', '\u2028', 'plain']] };
  const text = JSON.stringify(object);
  const expected = '["é","😀","\u2028","plain"]';
  assert.deepEqual(fawn.reduce('artifacts', object), JSON.parse(expected));
  assert.equal(fawn.reduceText('artifacts', text), expected);
  assert.equal(fawn.reduceText('artifacts', Buffer.from(text)), expected);
  assert.equal(fawn.reduceText('artifacts', new Uint8Array(Buffer.from(` ${text}`)).subarray(1)), expected);
  assert.throws(() => fawn.reduceText('artifacts', Buffer.from([0x22, 0xff, 0x22])), { code: 'not_utf8' });
  assert.throws(() => fawn.reduceText('artifacts', ''), { code: 'json_syntax' });
  assert.throws(() => fawn.reduceText('artifacts', new Uint8Array(0)), { code: 'json_syntax' });
  assert.throws(() => runtime.thread(Symbol('no JSON')), TypeError);
  runtime.close();
});

test('texts of all sizes cross unharmed', () => {
  for (const size of [0, 1, 31, 32, 33, 5000, 6000, 100_000, 1_500_000]) {
    for (const letter of ['a', 'é', '€', '😀']) {
      const text = letter.repeat(size);
      assert.deepEqual(fawn.reduce('artifacts', { existing: [], updates: [[text]] }), [text]);
    }
  }
});

test('closing twice is harmless, and what is used afterwards answers a handle error', async (t) => {
  const before = living();
  const runtime = new Runtime();
  const agent = scripted(runtime, [{ content: 'Hi' }]);
  const thread = runtime.thread();
  const queue = runtime.queue();
  const subagents = runtime.subagents();
  for (const object of [queue, thread, agent, subagents]) {
    object.close();
    object.close();
    object[Symbol.dispose]();
  }
  const freed = { code: 'handle', name: 'FawnError' };
  assert.throws(() => thread.state(), freed);
  assert.throws(() => agent.descriptor(), freed);
  assert.throws(() => queue.interrupt(), freed);
  assert.throws(() => subagents.stats(), freed);
  assert.throws(() => subagents.start(), freed);
  await assert.rejects(subagents.stop(), freed);
  await assert.rejects(queue.take({ timeoutMs: 0 }), freed);
  assert.throws(() => agent.start(runtime.thread(), ask()), freed);
  await runtime.shutdown();
  assert.throws(() => runtime.thread(), { code: 'closed' });
  runtime.close();
  runtime.close();
  assert.throws(() => runtime.stats(), freed);
  await assert.rejects(runtime.shutdown(), freed);
  await runtime[Symbol.asyncDispose]();
  t.diagnostic(`${living()} handles alive, ${before} before`);
});

test('objects of the wrong class are a TypeError', () => {
  const runtime = new Runtime();
  const agent = scripted(runtime, [{ content: 'Hi' }]);
  assert.throws(() => agent.start({}, ask()), TypeError);
  assert.throws(() => agent.start(runtime.thread(), ask(), { queue: {} }), TypeError);
  assert.throws(() => runtime.assembly({ model: { provider: 'host', execute: 1 } }), TypeError);
  runtime.close();
});

test('objects that are forgotten are freed and reported', async () => {
  const v8 = await import('node:v8');
  const vm = await import('node:vm');
  v8.setFlagsFromString('--expose-gc');
  const gc = vm.runInNewContext('gc');
  const before = living();
  const warnings = [];
  const note = (warning) => warnings.push(warning);
  process.on('warning', note);
  (() => {
    const runtime = new Runtime();
    scripted(runtime, [{ content: 'Hi' }]);
    runtime.thread();
    runtime.queue();
    runtime.subagents();
  })();
  for (let round = 0; round < 50 && warnings.length < 5; round++) {
    gc();
    await sleep(5);
  }
  process.off('warning', note);
  assert.deepEqual(warnings.map(({ code }) => code), Array(5).fill('FAWN_FORGOTTEN'));
  assert.deepEqual(warnings.map(({ message }) => message.split(' ')[0]).sort(), ['Assembly', 'Queue', 'Runtime', 'Subagents', 'Thread']);
  assert.ok(living() <= before, 'the handles are freed');
});

test('assemblies share a subagents object, by itself or by its handle', async (t) => {
  const runtime = open(t, { subagent_runtime: { max_queued: 9 } });
  const subagents = runtime.subagents({ config: { max_running: 2, admission_policy: 'reject' }, max_total_per_run: 4 });
  const stats = { max_running: 2, running: 0, max_queued: 9, queued: 0, admission_policy: 'reject', max_total_per_run: 4 };
  assert.deepEqual(subagents.stats(), { ...stats, started: false });
  assert.deepEqual([subagents.start(), subagents.start()], [{ started: true }, { started: true }]);
  assert.equal(subagents.stats().started, true);
  assert.deepEqual(await subagents.stop(), { started: false });
  assert.deepEqual(await subagents.stop({ timeoutMs: 0 }), { started: false });
  await assert.rejects(subagents.stop({ timeout: 1 }), TypeError);

  const config = { factory: 'direct', model: { provider: 'scripted', replies: [] }, features: { subagent: true } };
  const named = [subagents, subagents.toJSON(), null];
  const agents = named.map((subagent_runtime) => runtime.assembly({ ...config, subagent_runtime }));
  agents.push(runtime.assembly(JSON.stringify({ ...config, subagent_runtime: subagents })));
  const refused = (other, code) => {
    assert.throws(() => runtime.assembly({ ...config, subagent_runtime: subagents, ...other }), { code, path: '/subagent_runtime' });
  };
  refused({ features: {} }, 'conflict');
  refused({ factory: 'custom', features: undefined }, 'unknown_member');
  refused({ subagent_runtime: 'it' }, 'wrong_type');
  const other = open(t).subagents();
  refused({ subagent_runtime: other }, 'handle');
  assert.throws(() => runtime.subagents({ batch_config: {} }), { code: 'unsupported', path: '/batch_config' });
  assert.throws(() => runtime.subagents({ config: { max_running: 65 } }), { code: 'out_of_range', path: '/config/max_running' });

  subagents.close();
  refused({}, 'handle');
  assert.equal(agents[0].descriptor(), null);
  await other[Symbol.dispose]();
  for (const agent of agents) agent.close();
});

test('a run that has ended is not missed, wherever its events went', async () => {
  const v8 = await import('node:v8');
  const vm = await import('node:vm');
  v8.setFlagsFromString('--expose-gc');
  const gc = vm.runInNewContext('gc');
  const warnings = [];
  const note = ({ code, message }) => code === 'FAWN_FORGOTTEN' && warnings.push(message);
  process.on('warning', note);
  const runtime = new Runtime();
  const agent = scripted(runtime, [{ content: 'Hi' }], [], { repeat: true });
  const hanging = scripted(runtime, [{ hang: true }]);
  const [thread, other] = [runtime.thread(), runtime.thread()];
  const queue = runtime.queue();
  const runs = () => runtime.stats().handles.filter(({ kind }) => kind === 'run').length;
  /** Starts a run that nothing here refers to. */
  const begin = (which, on, options) => void which.start(on, ask(), options);
  const ways = [{}, { queue }, { queue: null }, { queue, signal: new AbortController().signal }];
  for (const options of ways) {
    // Its result was awaited, or its end is known to the library alone.
    await agent.start(thread, ask(), options).result();
    begin(agent, thread, options);
    await until(() => runtime.stats().runs.active === 0);
    while ((await queue.take({ timeoutMs: 0 })).length > 0);
  }
  for (let round = 0; round < 50 && runs() > 0; round++) {
    gc();
    await sleep(5);
  }
  assert.deepEqual([runs(), warnings], [0, []]);
  // One that goes on is told of.
  begin(hanging, other, { queue });
  for (let round = 0; round < 50 && warnings.length === 0; round++) {
    gc();
    await sleep(5);
  }
  process.off('warning', note);
  assert.deepEqual(warnings, ['Run dropped without close()']);
  await runtime.shutdown();
  for (const object of [queue, thread, other, hanging, agent, runtime]) object.close();
});

test('reading a thread', (t) => {
  const runtime = open(t);
  const thread = runtime.thread({ thread_id: 'one' });
  const { checkpoint_id } = thread.update({ values: { title: 'Hello', messages: ['a', 'b'] } });
  const state = thread.state({ channels: ['title'] });
  assert.equal(state.checkpoint_id, checkpoint_id);
  assert.deepEqual(state.values, { title: 'Hello' });
  assert.equal(thread.history().length, 1);
  assert.deepEqual(thread.goal(), { op: 'get', goal: null, checkpoint_id, step: 0 });
  assert.equal(thread.goal({ op: 'set', objective: 'say  hello' }).goal.objective, 'say hello');
  assert.equal(thread.goal({ op: 'command', argument: 'off' }).goal, null);
  assert.throws(() => thread.goal({ op: 'set', objective: '' }), { code: 'out_of_range', path: '/objective' });
  assert.equal(JSON.parse(thread.stateText()).values.messages.length, 2);
  assert.deepEqual(runtime.submit({ op: 'delete_thread', thread_id: 'one' }), {});
  assert.throws(() => thread.update({ values: { messages: null } }), { code: 'null_write', path: '/values/messages' });
  thread.close();
});
