// What is written about the binding is so: the README's program, the generated types, a TypeScript consumer, the runner.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { child, here } from './support.mjs';

const binding = path.resolve(here, '..');
const examples = path.resolve(binding, '..', '..', 'examples', 'node');

function temporary(t) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'fawn-node-'));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  return folder;
}

/** Where `import 'fawn'` finds the binding, for a copy of an example. */
function install(folder) {
  fs.mkdirSync(path.join(folder, 'node_modules'));
  fs.symlinkSync(binding, path.join(folder, 'node_modules', 'fawn'), 'junction');
}

function example(t, name) {
  const folder = temporary(t);
  install(folder);
  const file = path.join(folder, name);
  fs.copyFileSync(path.join(examples, name), file);
  return file;
}

test("the README's program is examples/node/readme.mjs, and runs", async (t) => {
  const readme = fs.readFileSync(path.join(binding, 'README.md'), 'utf8');
  const [, program] = readme.match(/```js\n([^]*?)```/);
  assert.equal(program, fs.readFileSync(path.join(examples, 'readme.mjs'), 'utf8'));
  const { code, stdout, stderr } = await child([example(t, 'readme.mjs')]);
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  assert.equal(stdout, 'the agent calls add { a: 19, b: 23 }\nthe agent says That makes 42.\nsuccess 4 messages\n');
});

test('the quickstart keeps its thread', async (t) => {
  const file = example(t, 'quickstart.mjs');
  const first = await child([file, path.dirname(file)]);
  assert.deepEqual([first.code, first.stderr], [0, '']);
  const answer = 'In Paris it is clear, with 18 degrees.';
  assert.equal(first.stdout, `you:   What is the weather in Paris?\nagent: [calls get_weather(Paris)] ${answer}\n`);
  const second = await child([file, path.dirname(file), 'And in Oslo?']);
  assert.match(second.stdout, new RegExp(`^\\(last time: ${answer}\\)\\nyou:   And in Oslo\\?\\nagent: \\[calls get_weather\\(Oslo\\)\\] Oslo `));
});

test('the types of the payloads are what the schemas say', async () => {
  const { code, stderr } = await child([path.join(binding, 'generate.mjs'), '--check']);
  assert.equal(code, 0, stderr);
});

test('every export has a type, and every type of a value an export', async () => {
  const types = fs.readFileSync(path.join(binding, 'index.d.ts'), 'utf8');
  const declared = [...types.matchAll(/^export (?:class|function|const) (\w+)/gm)].map(([, name]) => name);
  const { default: fawn } = await import('../index.mjs');
  assert.deepEqual([...new Set(declared)].sort(), Object.keys(fawn).sort());
  for (const name of ['Runtime', 'Subagents', 'Assembly', 'Thread', 'Queue', 'Run']) {
    const [, body] = types.match(new RegExp(`^export class ${name} [^]*?{\\n([^]*?)^}`, 'm'));
    const methods = new Set([...body.matchAll(/^ {2}(\w+)\(/gm)].map(([, method]) => method));
    methods.delete('constructor');
    for (const [, property] of body.matchAll(/^ {2}readonly (\w+):/gm)) methods.add(property);
    const own = Object.getOwnPropertyNames(fawn[name].prototype).filter((method) => method !== 'constructor');
    assert.deepEqual([...methods].sort(), own.sort(), name);
  }
});

const tsc = path.join(here, 'consumer', 'node_modules', 'typescript', 'bin', 'tsc');
const typed = { skip: !fs.existsSync(tsc) && 'typescript is not installed' };

/** Compiles programs of these names and texts as a user of the package would. */
async function compiles(t, programs) {
  const folder = temporary(t);
  install(folder);
  const types = path.join(here, 'consumer', 'node_modules', '@types');
  const options = ['--strict', '--noEmit', '--module', 'nodenext', '--target', 'esnext', '--typeRoots', types, '--types', 'node'];
  const files = Object.keys(programs).map((name) => path.join(folder, name));
  for (const [name, text] of Object.entries(programs)) fs.writeFileSync(path.join(folder, name), text);
  const { code, stdout, stderr } = await child([tsc, ...options, ...files], { timeoutMs: 120_000 });
  assert.equal(code, 0, stdout + stderr);
}

test('a TypeScript consumer compiles under --strict', typed, async (t) => {
  const names = ['consumer.mts', 'consumer.cts', 'configs.mts'];
  await compiles(t, Object.fromEntries(names.map((name) => [name, fs.readFileSync(path.join(here, 'consumer', name), 'utf8')])));
});

test("the README's programs are TypeScript as well, under --strict", typed, async (t) => {
  const readme = fs.readFileSync(path.join(binding, 'README.md'), 'utf8');
  const [program, ...parts] = [...readme.matchAll(/```js\n([^]*?)```/g)].map(([, text]) => text);
  // What the parts take from the text around them.
  const around = [
    "import { Runtime, type Message } from 'fawn';",
    'declare const runtime: Runtime;',
    'declare function myModel(messages: Message[], options: { signal: AbortSignal }): AsyncIterable<string>;',
  ].join('\n');
  const programs = { 'readme.mts': program };
  parts.forEach((part, place) => (programs[`part${place}.mts`] = `${around}\n${part}`));
  await compiles(t, programs);
});

test('the conformance runner plays a script', async (t) => {
  const file = path.join(temporary(t), 'small.script');
  const script = [
    '# no line is looked at twice',
    'reduce artifacts {"existing":["é"],"updates":[["b"]]}',
    'runtime {"testing":{"clock":"2026-01-01T00:00:00Z","ids":"sequential","workers":0}}',
    'assembly {"model":{"provider":"scripted","replies":[{"tool_calls":[{"name":"a","args":{},"id":"c"}]},{"content":"Done"}]},"tools":[{"name":"a"}]}',
    'thread {"thread_id":"\\"type\\":\\"run_end\\""}',
    'queue {}',
    'run {"input":{"messages":["Go"]},"stream":[]}',
    'emit {"x":1}',
    'cancel',
    'finish never reached',
    'end',
    'free thread',
    'state {}',
    'shutdown',
  ];
  fs.writeFileSync(file, script.join('\n'));
  const { code, stdout, stderr } = await child([path.join(binding, 'conformance', 'runner.mjs'), file]);
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  assert.match(stdout, /^ok \["é","b"\]\nok\nok\nok\nok\nevent \{"seq":1/);
  const ends = stdout.split('\n').slice(-5);
  assert.match(ends[0], /^result \{.*"status":"interrupted".*"cancel_reason":"golden"/);
  assert.equal(ends[1], 'ok');
  assert.match(ends[2], /^error \{"code":"handle"/);
  assert.match(ends[3], /^ok \{"runs_cancelled":0/);
});
