// Functions of the host: which host calls they answer, wherever the configuration is that asks, and which are an error since
// nothing can ask them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Runtime } from '../index.mjs';
import { WORKERS, ask, calls, open, tool } from './support.mjs';

const scripted = (...replies) => ({ name: 'main', provider: 'scripted', replies });

/** Starts a run on a new thread; answers its result and the thread. */
async function ran(runtime, agent, more) {
  const thread = runtime.thread();
  const result = await agent.start(thread, ask('Go', more)).result({ signal: AbortSignal.timeout(20_000) });
  return { ...result, said: result.message?.content ?? result.error?.message, values: thread.state().values };
}

const toolMessages = ({ values }) => values.messages.filter(({ type }) => type === 'tool').map(({ content }) => content);

for (const called of [{}, { model: 'gpt' }]) {
  test(`a model of the runtime answers in every factory, ${called.model ?? 'without a name of its own'}`, async (t) => {
    const asked = [];
    const execute = (request, { name }) => (asked.push(name), 'mine');
    const runtime = open(t, { models: [{ name: 'main', provider: 'host', ...called, execute }] });
    const configs = [
      { model: 'main' },
      { factory: 'direct', model: 'main' },
      { factory: 'lead' },
      { factory: 'lead_graph' },
      { factory: 'lead', configurable: { model_name: 'main' } },
      '{"factory":"lead"}',
    ];
    for (const config of configs) {
      const { status, said } = await ran(runtime, runtime.assembly(config));
      assert.deepEqual([status, said], ['success', 'mine'], JSON.stringify(config));
    }
    assert.deepEqual(new Set(asked), new Set([called.model ?? 'host']));
  });
}

test('models that stand in, write titles and write summaries have their functions', async (t) => {
  const asked = [];
  const named = (name, answer) => ({ name, provider: 'host', model: name, execute: () => (asked.push(name), answer()) });
  const runtime = open(t, {
    models: [
      { name: 'main', provider: 'scripted', replies: [], fallbacks: ['second'] },
      named('second', () => 'stood in'),
      named('titles', () => 'A title'),
      named('summaries', () => 'A summary'),
    ],
    title: { model_name: 'titles' },
    summarization: { enabled: true, model_name: 'summaries', trigger: { type: 'messages', value: 4 }, keep: { type: 'messages', value: 2 } },
  });
  const agent = runtime.assembly({ factory: 'lead' });
  const thread = runtime.thread();
  for (const text of ['one', 'two', 'three']) {
    const { status, message } = await agent.start(thread, ask(text)).result();
    assert.deepEqual([status, message.content], ['success', 'stood in']);
  }
  const { title, summary_text } = thread.state().values;
  assert.deepEqual([title, summary_text], ['A title', 'A summary']);
  assert.deepEqual([...new Set(asked)].sort(), ['second', 'summaries', 'titles']);
});

test('one function may answer for the models of a lead agent', async (t) => {
  for (const config of [{ models: [{ name: 'main', provider: 'host' }] }, '{"models":[{"name":"main","provider":"host"}]}']) {
    const runtime = open(t, config);
    for (const given of [{ factory: 'lead' }, '{"factory":"lead"}']) {
      const { said } = await ran(runtime, runtime.assembly(given, { model: () => 'apart' }));
      assert.equal(said, 'apart');
      assert.throws(() => runtime.assembly(given).start(runtime.thread(), ask()), { code: 'assembly_invalid' });
    }
  }
  const runtime = open(t, { models: [scripted()] });
  assert.throws(() => runtime.assembly({ factory: 'lead' }, { model: () => '' }), { code: 'conflict', path: '/model' });
});

test('an assembly has functions in its own configuration of the application', async (t) => {
  const runtime = open(t, { models: [{ name: 'main', provider: 'host', execute: () => 'the runtime' }] });
  const app_config = {
    models: [{ name: 'z', provider: 'host', model: 'z', execute: ({ messages }) => (messages.at(-1).type === 'tool' ? messages.at(-1).content : calls('q')) }],
    tools: [tool('q', () => 'from q')],
  };
  const config = { factory: 'lead', app_config };
  assert.equal((await ran(runtime, runtime.assembly(config))).said, 'from q');
  assert.equal(typeof app_config.models[0].execute, 'function', 'what was given is as it was');
  // The name in the host call decides, so the runtime's function answers for a model of that name.
  const other = runtime.assembly({ factory: 'lead', app_config: { models: [{ name: 'y', provider: 'host' }] } });
  assert.equal((await ran(runtime, other)).said, 'the runtime');
});

test('two functions of one name are told', (t) => {
  const runtime = open(t, {
    models: [
      { name: 'a', provider: 'host', execute: () => 'a' },
      { name: 'b', provider: 'host', execute: () => 'b' },
    ],
  });
  runtime.assembly({ model: 'b' }).close();
  assert.throws(() => runtime.assembly({ factory: 'lead' }), { code: 'conflict', message: /two functions answer for the model host.*"model"/ });
});

for (const workers of WORKERS) {
  test(`tools of the configuration have functions (workers: ${workers})`, async (t) => {
    const orders = { name: 'orders', description: 'Orders', parameters: { type: 'object' } };
    const models = [scripted(calls('orders', 'mine'), { content: 'Done' })];
    const mine = tool('mine', () => 'of the assembly');
    const cases = [
      [{ ...orders, execute: () => 'of the runtime' }, {}, undefined, 'of the runtime'],
      [{ ...orders, execute: () => 'of the runtime' }, {}, { tools: { orders: () => 'of the assembly' } }, 'of the assembly'],
      [orders, {}, { tools: { orders: () => 'apart' } }, 'apart'],
      [orders, { tools: [{ name: 'orders', execute: () => 'beside' }] }, undefined, 'beside'],
    ];
    for (const [configured, given, functions, expected] of cases) {
      const runtime = open(t, { workers, models, tools: [configured] });
      const config = { factory: 'lead', ...given, tools: [...(given.tools ?? []), mine] };
      const outcome = await ran(runtime, runtime.assembly(config, functions));
      assert.equal(outcome.said, 'Done');
      assert.deepEqual(toolMessages(outcome), [expected, 'of the assembly']);
    }
  });

  test(`a sandbox and a memory are objects with functions (workers: ${workers})`, async (t) => {
    const files = new Map([['/mnt/user-data/workspace/a.txt', 'old']]);
    const asked = [];
    class Sandbox {
      #id = 's1';
      helper() {}
      acquire({ user_id, thread_id }, { kind, name }) {
        asked.push([kind, name, typeof user_id, typeof thread_id]);
        return { sandbox_id: this.#id };
      }
      async read_file({ sandbox_id, path }) {
        asked.push(['read_file', sandbox_id]);
        return files.has(path) ? { text: Buffer.from(files.get(path)) } : null;
      }
      write_file({ path, text }) {
        files.set(path, text);
      }
      release({ sandbox_id }) {
        asked.push(['release', sandbox_id]);
      }
    }
    const turns = [];
    const memory = { add: async ({ user_id, messages }) => void turns.push([user_id, messages.map(({ content }) => content)]) };
    const path = '/mnt/user-data/workspace/a.txt';
    const write = { tool_calls: [{ name: 'write_file', args: { path, content: 'new' } }] };
    const read = { tool_calls: [{ name: 'read_file', args: { path } }] };
    const runtime = open(t, {
      workers,
      sandbox: { use: 'host' },
      memory: { manager_class: 'host' },
      models: [scripted(write, read, write, { content: 'Done' })],
    });
    const parameters = { type: 'object' };
    const tools = [
      tool('read_file', (args) => files.get(args.path), { parameters }),
      tool('write_file', (args) => (files.set(args.path, args.content), 'written'), { parameters }),
    ];
    const agent = runtime.assembly({ factory: 'lead', tools, context: { user_id: 'u-1' } }, { sandbox: new Sandbox(), memory });
    const outcome = await ran(runtime, agent);
    assert.equal(outcome.said, 'Done');
    const [refused, seen, written] = toolMessages(outcome);
    assert.match(refused, /read/, 'the library has looked into the file');
    assert.deepEqual([seen, written], ['old', 'written']);
    assert.deepEqual(asked[0], ['sandbox', 'acquire', 'string', 'string']);
    assert.deepEqual(asked.at(-1), ['release', 's1']);
    const [[user, said]] = turns;
    assert.deepEqual([turns.length, user, said.includes('Go'), said.at(-1)], [1, 'u-1', true, 'Done']);
  });
}

test('answers of a sandbox and a memory are checked by the library', async (t) => {
  const runtime = open(t, {
    sandbox: { use: 'host' },
    memory: { manager_class: 'host' },
    models: [scripted(calls('bash'), { content: 'Done' })],
  });
  const warnings = [];
  const note = ({ code, message }) => warnings.push([code, message]);
  process.on('warning', note);
  const handlers = { sandbox: { acquire: () => ({ sandbox: 's' }) }, memory: { add: () => true } };
  const agent = runtime.assembly({ factory: 'lead', tools: [tool('bash', () => 'ran')] }, handlers);
  const outcome = await ran(runtime, agent);
  await new Promise(setImmediate);
  process.off('warning', note);
  assert.equal(outcome.status, 'success');
  assert.match(toolMessages(outcome)[0], /the sandbox's acquire/);
  const told = warnings.filter(([, message]) => /is refused/.test(message)).map(([code, message]) => [code, message.match(/the (sandbox|memory)'s \w+/)[0]]);
  assert.deepEqual(told, [
    ['unknown_member', "the sandbox's acquire"],
    ['wrong_type', "the memory's add"],
  ]);
});

test('a function that nothing can ask is an error', (t) => {
  const sandbox = { acquire: () => ({ sandbox_id: 's' }), release() {} };
  const memory = { add() {} };
  const guardrail = () => ({ allow: true });
  const refused = (kind) => ({ code: 'conflict', path: `/${kind}`, message: new RegExp(`nothing asks it: .*`) });
  const model = { provider: 'scripted', replies: [] };
  const plain = open(t, { models: [scripted()] });
  for (const config of [{ factory: 'lead' }, { factory: 'lead_graph' }, { model }, { factory: 'direct', model }]) {
    for (const [kind, given] of Object.entries({ sandbox, memory, guardrail })) {
      assert.throws(() => plain.assembly(config, { [kind]: given }), refused(kind));
    }
  }
  const off = [
    ['guardrail', { guardrails: { provider: { use: 'host' } } }],
    ['guardrail', { guardrails: { enabled: false, provider: { use: 'host' } } }],
    ['guardrail', { guardrails: { enabled: true, provider: { use: 'allowlist' } } }],
    ['memory', { memory: { manager_class: 'host', enabled: false } }],
  ];
  for (const [kind, section] of off) {
    const runtime = open(t, { models: [scripted()], ...section });
    assert.throws(() => runtime.assembly({ factory: 'lead' }, { [kind]: { memory, guardrail }[kind] }), refused(kind));
    // The assembly's own configuration is the one that counts.
    const app_config = { models: [scripted()], guardrails: { enabled: true, provider: { use: 'host' } }, memory: { manager_class: 'host' } };
    runtime.assembly({ factory: 'lead', app_config }, { guardrail, memory }).close();
  }
  const on = open(t, {
    models: [scripted()],
    sandbox: { use: 'host' },
    memory: { manager_class: 'host' },
    guardrails: { enabled: true, provider: { use: 'host' } },
  });
  on.assembly({ factory: 'lead' }, { sandbox, memory, guardrail }).close();
  assert.throws(() => on.assembly({ factory: 'lead', app_config: { models: [scripted()] } }, { guardrail }), refused('guardrail'));
  // A guardrail may stand in a chain, or among the features.
  const provider = { use: 'host' };
  plain.assembly({ factory: 'lead', extra_middleware: [{ name: 'guardrail_provider', provider }] }, { guardrail }).close();
  plain.assembly({ model, middleware: [{ name: 'guardrail_provider', provider }] }, { guardrail }).close();
  plain.assembly({ factory: 'direct', model, features: { guardrail: { provider } } }, { guardrail }).close();
  const lists = { use: 'allowlist', config: { allowed_tools: [] } };
  assert.throws(() => plain.assembly({ model, middleware: [{ name: 'guardrail_provider', provider: lists }] }, { guardrail }), refused('guardrail'));

  assert.throws(() => on.assembly({ factory: 'lead' }, { tools: { order() {} } }), { code: 'unknown_member', path: '/tools/order' });
  const byClass = { name: 'web', use: 'somewhere:web', results: 5 };
  assert.throws(() => new Runtime({ tools: [{ ...byClass, execute() {} }] }), { code: 'conflict', path: '/tools/0' });
  const classes = open(t, { models: [scripted()], tools: [byClass] });
  assert.throws(() => classes.assembly({ factory: 'lead' }, { tools: { web() {} } }), { code: 'unknown_member' });
  classes.assembly({ factory: 'lead', tools: [tool('web', () => '')] }).close();
});

test('a configuration may name variables of the environment', async (t) => {
  Object.assign(process.env, { FAWN_TEST_USE: 'host', FAWN_TEST_MODEL: 'mine' });
  t.after(() => ['FAWN_TEST_USE', 'FAWN_TEST_MODEL'].forEach((name) => delete process.env[name]));
  const runtime = open(t, {
    models: [{ name: 'main', provider: '$FAWN_TEST_USE', model: '$FAWN_TEST_MODEL', execute: (request, { name }) => name }],
    sandbox: { use: '$FAWN_TEST_USE' },
  });
  const agent = runtime.assembly({ factory: 'lead' }, { sandbox: { acquire: () => ({ sandbox_id: 's' }) } });
  assert.equal((await ran(runtime, agent)).said, 'mine');
});

test('handlers of a sandbox or a memory that are none', (t) => {
  const runtime = open(t, { models: [scripted()], sandbox: { use: 'host' }, memory: { manager_class: 'host' } });
  const given = (functions) => () => runtime.assembly({ factory: 'lead' }, functions);
  for (const sandbox of [null, 5, 'x', [], () => 1, new Map()]) assert.throws(given({ sandbox }), TypeError);
  assert.throws(given({ sandbox: { acquire: 5 } }), TypeError);
  assert.throws(given({ sandbox: { acquire() {}, readFile() {} } }), { code: 'unknown_member', path: '/sandbox/readFile', message: /read_file/ });
  assert.throws(given({ memory: { Add() {} } }), { code: 'unknown_member', path: '/memory/Add' });
  assert.throws(given({ memory: {} }), { code: 'unknown_member', path: '/memory' });
});

test('a function knows for which subagent it works', async (t) => {
  const work = { description: 'Look', prompt: 'Look around.', subagent_type: 'scout' };
  const runtime = open(t, {
    models: [
      scripted({ tool_calls: [{ name: 'task', id: 't1', args: work }] }, calls('look'), { content: 'done' }),
      { ...scripted(calls('look'), { content: 'seen' }), name: 'worker' },
    ],
    title: { enabled: false },
    subagents: { custom_agents: { scout: { description: 'Looks', system_prompt: 'Look.', model: 'worker' } } },
  });
  const asked = [];
  const look = tool('look', (_, { taskId }) => (asked.push(taskId), 'a tree'));
  const agent = runtime.assembly({ factory: 'lead', configurable: { subagent_enabled: true }, tools: [look] });
  const { status, said } = await ran(runtime, agent);
  assert.deepEqual([status, said, asked], ['success', 'done', ['t1', undefined]]);
});
