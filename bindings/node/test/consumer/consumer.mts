// A TypeScript program that uses what the README shows. It is compiled, not run.
import fawn, { FawnError, Runtime, convertMessages, describe, diffDescriptors, drawDescriptor, reduce } from 'fawn';
import type { FawnEvent, HostCallData, Message, RunResult, RuntimeConfig, Tool } from 'fawn';

const config: RuntimeConfig = { workers: 2, 'x-mine': 1, database: { backend: 'sqlite', sqlite_dir: '.' } };
const add: Tool = {
  name: 'add',
  description: 'Adds',
  async execute({ a, b }: { a: number; b: number }, { signal, emit, idempotencyKey, deadlineMs, callId }) {
    signal.throwIfAborted();
    const taken: boolean = await emit({ done: 0.5 });
    return `${a + b} ${taken} ${idempotencyKey} ${deadlineMs + callId}`;
  },
};

async function main(): Promise<void> {
  await using runtime = new Runtime(config);
  using agent = runtime.assembly({
    model: {
      provider: 'host',
      async execute({ messages, system }, { emit }) {
        await emit({ text: system ?? '' });
        return { content: String(messages.length) };
      },
    },
    tools: [add],
  });
  runtime.assembly({ model: { provider: 'scripted', replies: [{ content: 'x' }] } }).close();
  runtime.assembly('{}', { tools: { add: add.execute! }, model: () => 'text' });
  runtime.assembly({
    model: {
      provider: 'openai',
      model: 'm',
      fallbacks: ['named', { provider: 'host', model: 'mine', execute: ({ messages }, { emit }) => [messages.length, emit.length] }],
    },
  });
  // @ts-expect-error only a model of the host has a function
  runtime.assembly({ model: { provider: 'scripted', replies: [], execute() {} } });
  // @ts-expect-error an unknown member of a fallback
  runtime.assembly({ model: { provider: 'host', fallbacks: [{ provider: 'host', exec: () => 1 }] } });
  using thread = runtime.thread({ thread_id: 't' });
  await using run = agent.start(thread, { input: { messages: [] }, stream: ['values'] }, { signal: AbortSignal.timeout(5) });
  for await (const event of run) {
    if (event.type === 'host_call') {
      const data: HostCallData = event.data;
      console.log(data.call_id.toFixed(), event.text.length);
    } else if (event.type === 'message_delta') {
      console.log(event.data.text?.length);
    } else if (event.type === 'run_end') {
      const status: 'success' | 'error' | 'interrupted' = event.data.status;
      console.log(status);
    }
  }
  const result: RunResult = await run.result();
  if (result.error) throw new FawnError(result.error);
  const queue = runtime.queue({ subscribe: ['log'] });
  const events: FawnEvent[] | null = await queue.take({ max: 10, timeoutMs: 5 });
  for (const event of events ?? []) if (event.type === 'host_call') await agent.serve(event);
  for await (const event of queue) runtime.finish(event.seq, { ok: 1 });
  const [first]: Message[] = convertMessages({ messages: ['hi'] });
  console.log(first?.content, describe('build'), reduce('artifacts', { existing: null, updates: [] }), fawn.version());
  const text = agent.descriptorText();
  const diff = diffDescriptors(`{"before":${text},"after":${text}}`);
  const kinds: string[] = diff.changes.map((change) => change.what);
  console.log(diff.same, kinds, diff.fingerprints.before.length, drawDescriptor(text).length);
  const state = thread.state({ last_messages: 1 });
  const contents = state.values.messages?.map((message) => message.content);
  console.log(thread.id.length, run.id.length, run.threadId.length, contents, state.values.title?.length, state.values.todos);
  console.log(thread.goal({ op: 'set', objective: 'x' }).goal?.objective?.length, thread.goal().op);
  console.log(state.checkpoint_id?.length, thread.history()[0]?.step, runtime.stats().runs.active);
  const down = await runtime.shutdown({ timeoutMs: 1000 });
  console.log(down?.runs_cancelled);
  // @ts-expect-error an unknown member is told by the compiler too
  runtime.thread({ thread: 't' });
  // @ts-expect-error so is a wrong type
  agent.start(thread, { recursion_limit: 'many' });
  // @ts-expect-error objects are made by their runtime
  new fawn.Thread();
}

main().catch((error: unknown) => {
  if (error instanceof FawnError) console.error(error.code, error.path, error.retryable, error.cause?.[0]);
});
