// What the tests share: scripted agents, and programs in processes of their own.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Runtime, describe } from '../index.mjs';

export const here = fileURLToPath(new URL('.', import.meta.url));

/** An agent whose model follows a script. */
export function scripted(runtime, replies, tools = [], more = {}) {
  return runtime.assembly({ model: { provider: 'scripted', replies, ...more }, tools });
}

/** A tool that takes no arguments. */
export function tool(name, execute, more = {}) {
  return { name, description: `The tool ${name}`, execute, ...more };
}

/** A reply that calls tools of these names. */
export function calls(...names) {
  return { tool_calls: names.map((name) => ({ name, args: {} })) };
}

/** A request with one message. */
export function ask(text = 'Go', more = {}) {
  return { input: { messages: [{ role: 'user', content: text }] }, ...more };
}

export function sleep(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

/** Resolves when `condition` holds; rejects after a while. */
export async function until(condition, ms = 5000) {
  const end = Date.now() + ms;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`this did not come true within ${ms} ms: ${condition}`);
    await sleep(2);
  }
}

export async function collect(iterable) {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
}

/** Both ways of driving. */
export const WORKERS = [2, 0];

/** A runtime that is closed when the test ends, with nothing of it left. */
export function open(t, config = {}) {
  const runtime = new Runtime(config);
  t.after(async () => {
    await runtime[Symbol.asyncDispose]();
  });
  return runtime;
}

/** How many handles the library has alive. */
export function living() {
  return describe('handles').handles.length;
}

/** Runs a program of these tests in a process of its own. */
export function child(args, { timeoutMs = 30_000 } = {}) {
  return new Promise((resolve) => {
    const process_ = spawn(process.execPath, args, { cwd: here, stdio: ['ignore', 'pipe', 'pipe'] });
    let stdout = '';
    let stderr = '';
    process_.stdout.on('data', (chunk) => (stdout += chunk));
    process_.stderr.on('data', (chunk) => (stderr += chunk));
    const timer = setTimeout(() => process_.kill('SIGKILL'), timeoutMs);
    process_.on('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, stdout, stderr });
    });
  });
}
