// A streamed reply of 2,000 deltas over HTTP on loopback: read bare with fetch, by the vendor's SDK, and by a whole run of
// fawn through its Node binding. One JSON line a reader; times are medians of whole replies.
import { fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { pathToFileURL } from 'node:url';

const DELTAS = 2000;
const ROUNDS = Number(process.env.STREAM_ROUNDS ?? 15);
const words = Array.from({ length: DELTAS }, (_, n) => ` word${n}`);

function serve() {
  const chunk = (choice) =>
    `data: ${JSON.stringify({
      id: 'chatcmpl-0123456789abcdef', object: 'chat.completion.chunk', created: 1700000000, model: 'model-of-the-year',
      choices: [{ index: 0, logprobs: null, finish_reason: null, ...choice }],
    })}\n\n`;
  const events = words.map((content) => chunk({ delta: { content } }));
  events.push(chunk({ delta: {}, finish_reason: 'stop' }), 'data: [DONE]\n\n');
  // As an endpoint sends them: one write an event.
  const server = http.createServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const event of events) response.write(event);
      response.end();
    });
  });
  server.listen(0, '127.0.0.1', () => process.send(server.address().port));
  process.on('disconnect', () => process.exit());
}

async function main() {
  const server = fork(new URL(import.meta.url), ['serve']);
  const port = await new Promise((resolve) => server.once('message', resolve));
  const baseURL = `http://127.0.0.1:${port}/v1`;
  const whole = words.join('');
  const messages = [{ role: 'user', content: 'Count.' }];

  const { default: OpenAI } = await import('openai');
  const sdk = new OpenAI({ baseURL, apiKey: 'none' });
  const { Runtime, version } = await import(pathToFileURL(`${process.env.FAWN_NODE}/index.mjs`));
  const runtime = new Runtime({ workers: 1 });
  const agent = runtime.assembly({ model: { provider: 'openai', model: 'm', base_url: baseURL, api_key: 'none' } });

  const readers = {
    'fetch, bare': [process.versions.node, async () => {
      const body = { method: 'POST', body: JSON.stringify({ stream: true, messages }) };
      const response = await fetch(`${baseURL}/chat/completions`, body);
      for await (const piece of response.body) void piece;
      return whole;
    }],
    'openai (npm)': [JSON.parse(readFileSync(new URL('node_modules/openai/package.json', import.meta.url))).version, async () => {
      let text = '';
      const stream = await sdk.chat.completions.create({ model: 'm', stream: true, messages });
      for await (const event of stream) text += event.choices[0]?.delta?.content ?? '';
      return text;
    }],
    fawn: [version(), async () => {
      let text = '';
      const thread = runtime.thread({});
      for await (const event of agent.start(thread, { input: { messages } })) {
        if (event.type === 'message_delta') text += event.data.text ?? '';
      }
      thread.close();
      return text;
    }],
  };
  const times = Object.fromEntries(Object.keys(readers).map((name) => [name, []]));
  for (let round = 0; round < ROUNDS + 3; round++) {
    for (const [name, [, read]] of Object.entries(readers)) {
      const start = process.hrtime.bigint();
      if ((await read()) !== whole) throw new Error(`${name} read something else`);
      if (round >= 3) times[name].push(Number(process.hrtime.bigint() - start) / 1e3);
    }
  }
  for (const [name, list] of Object.entries(times)) {
    const us = list.sort((a, b) => a - b)[list.length >> 1];
    console.log(JSON.stringify({ peer: name, version: readers[name][0], case: 'stream', us_per_run: us, us_per_delta: us / DELTAS, samples: list.length }));
  }
  await runtime.shutdown();
  for (const object of [agent, runtime]) object.close();
  server.disconnect();
}

if (process.argv[2] === 'serve') serve();
else await main();
