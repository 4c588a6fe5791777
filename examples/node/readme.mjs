import { Runtime } from 'fawn';

const runtime = new Runtime({ workers: 2 });
const agent = runtime.assembly({
  model: {
    provider: 'scripted', // or: { provider: 'openai', model: 'gpt-4.1-mini', api_key: '$OPENAI_API_KEY' }
    replies: [{ tool_calls: [{ name: 'add', args: { a: 19, b: 23 } }] }, { content: 'That makes 42.' }],
  },
  tools: [
    {
      name: 'add',
      description: 'Adds two numbers',
      parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
      execute: async ({ a, b }, { signal }) => String(a + b), // your function; what it throws, the model reads
    },
  ],
});

const thread = runtime.thread({ thread_id: 'sums' });
const run = agent.start(thread, { input: { messages: ['What is 19 + 23?'] } }, { signal: AbortSignal.timeout(60_000) });
for await (const event of run) {
  if (event.type === 'host_call') console.log('the agent calls', event.data.name, event.data.args);
  if (event.type === 'message_delta' && event.data.text) console.log('the agent says', event.data.text);
}
console.log((await run.result()).status, thread.state().values.messages?.length, 'messages');

await runtime.shutdown();
for (const object of [thread, agent, runtime]) object.close();
