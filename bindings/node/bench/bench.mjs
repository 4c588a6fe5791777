// How fast the binding is; benches/peers/bindings/bench.c has the same in C. Prints one JSON object a line, the best of
// several rounds each.
//
// state_small:  thread.stateText() of a thread with four short messages: a JavaScript string of the state's JSON.
// state_parsed: the same as an object.
// events:       1,000 runs, 64 at a time, driven by one worker thread of the library, taken from one queue as FawnEvent objects
//               256 at a time, the default; from the first start to the last run_end. A run has 107 events, most of them
//               message_delta events of some 270 bytes.
// events_all:   the same with max 0: all that are there, up to 4,096, whose garbage then costs more than it saves.
// events_text:  the same as events, but as text that nobody parses.
// events_iterated: the same, by `for await` over each run, with a queue of its own.
// host_calls:   calls of an async function a second, 64 runs of 100 calls each at a time.
import { Runtime } from '../index.mjs';

/** Rounds of the two cases that are compared with C, and of the others. */
const ROUNDS = { state_small: 7, events: 7, others: 3 };
const READS = 20_000;
const RUNS = 1000;
const WINDOW = 64;
const CALLS = 100;
const only = process.argv[2];

function print(name, figures) {
  console.log(JSON.stringify({ lang: 'node', case: name, ...figures }));
}

function reading(name, read) {
  if (only && only !== name) return;
  const runtime = new Runtime({ workers: 0 });
  const thread = runtime.thread();
  thread.update({
    values: {
      messages: [
        { role: 'user', content: 'What is the weather in Paris?' },
        { role: 'ai', content: 'It is clear, with 18 degrees.' },
        { role: 'user', content: 'And in Oslo?' },
        { role: 'ai', content: 'The same.' },
      ],
    },
  });
  let best = Infinity;
  for (let round = 0; round < (ROUNDS[name] ?? ROUNDS.others); round++) {
    const begin = performance.now();
    for (let n = 0; n < READS; n++) read(thread);
    best = Math.min(best, (performance.now() - begin) / READS);
  }
  print(name, { ns: Math.round(best * 1e7) / 10 });
  thread.close();
  runtime.close();
}

const REQUEST = '{"input":{"messages":[{"role":"user","content":"Weather?"}]}}';

/** Starts RUNS runs, WINDOW at a time: `start` one, and `wait` until some of them have ended and count their events. */
async function streaming(name, begin, config = {}) {
  if (only && only !== name) return;
  const runtime = new Runtime({ workers: 1 });
  const agent = runtime.assembly({
    model: {
      provider: 'scripted',
      replies: [{ content: 'Done.', invalid_tool_calls: Array(CALLS).fill({ name: 'get_weather', args: '{' }) }],
      ...config.model,
    },
    ...config.assembly,
  });
  const { start, wait, close, per = 'events' } = begin(runtime, agent);
  let best = 0;
  for (let round = 0; round < (ROUNDS[name] ?? ROUNDS.others); round++) {
    let [started, ended, counted] = [0, 0, 0];
    const begun = performance.now();
    while (ended < RUNS) {
      for (; started < RUNS && started - ended < WINDOW; started++) {
        const thread = runtime.thread();
        start(thread);
        thread.close();
      }
      const got = await wait();
      counted += got[per];
      ended += got.ended;
    }
    best = Math.max(best, (counted / (performance.now() - begun)) * 1000);
  }
  print(name, { per_s: Math.round(best) });
  close?.();
  agent.close();
  runtime.close();
}

/** Runs on one queue. */
function queued(take) {
  return (runtime, agent) => {
    const queue = runtime.queue();
    return {
      start: (thread) => agent.start(thread, REQUEST, { queue }).close(),
      wait: () => take(queue),
      close: () => queue.close(),
    };
  };
}

/** Runs with queues of their own; `follow` follows one to its end and answers how many of what it saw. */
function own(follow) {
  return (runtime, agent) => {
    let told = { events: 0, ended: 0 };
    let tell = () => {};
    return {
      start(thread) {
        void follow(agent.start(thread, REQUEST)).then((events) => {
          told.events += events;
          told.ended++;
          tell();
        });
      },
      async wait() {
        if (told.ended === 0) await new Promise((resolve) => (tell = resolve));
        const got = told;
        told = { events: 0, ended: 0 };
        return got;
      },
    };
  };
}

function count(text, what) {
  let found = 0;
  for (let at = text.indexOf(what); at >= 0; at = text.indexOf(what, at + what.length)) found++;
  return found;
}

reading('state_small', (thread) => thread.stateText());
reading('state_parsed', (thread) => thread.state());

for (const [name, options] of [
  ['events', {}],
  ['events_all', { max: 0 }],
]) {
  await streaming(
    name,
    queued(async (queue) => {
      const events = await queue.take(options);
      let ended = 0;
      for (const event of events) if (event.type === 'run_end') ended++;
      return { events: events.length, ended };
    }),
  );
}

await streaming(
  'events_text',
  queued(async (queue) => {
    const text = await queue.takeText();
    return { events: count(text, '{"seq":'), ended: count(text, '"type":"run_end"') };
  }),
);

await streaming(
  'events_iterated',
  own(async (run) => {
    let events = 0;
    for await (const _ of run) events++;
    return events;
  }),
);

await streaming(
  'host_calls',
  own(async (run) => {
    await run.result();
    return CALLS;
  }),
  {
    model: { replies: [{ tool_calls: Array(CALLS).fill({ name: 'get_weather', args: {} }) }, { content: 'Done.' }] },
    assembly: { tools: [{ name: 'get_weather', execute: async () => 'clear' }] },
  },
);
