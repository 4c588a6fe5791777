// An agent that calls a function of this program, on a thread that is still there the next time.
//
//   node quickstart.mjs FOLDER [QUESTION]
//
// FOLDER keeps the thread (one SQLite file). Without OPENAI_API_KEY a script stands in for the model; with OPENAI_BASE_URL,
// OPENAI_API_KEY and FAWN_MODEL set, the real one answers.
import { Runtime } from 'fawn';

const [folder = '.', question = 'What is the weather in Paris?'] = process.argv.slice(2);
const { OPENAI_API_KEY, OPENAI_BASE_URL, FAWN_MODEL } = process.env;

/** The function that the agent calls. */
function getWeather({ city }) {
  process.stdout.write(`[calls get_weather(${city})] `);
  return `It is 18 degrees and clear in ${city}.`;
}

const script = {
  provider: 'scripted',
  replies: [
    { tool_calls: [{ name: 'get_weather', args: { city: 'Paris' } }] },
    { content: 'In Paris it is clear, with 18 degrees.', chunks: 5, chunk_delay_ms: 60 },
    { tool_calls: [{ name: 'get_weather', args: { city: 'Oslo' } }] },
    { content: 'Oslo has the same weather as Paris, which we spoke about before.', chunks: 7, chunk_delay_ms: 60 },
    { content: 'My script ends here. Set OPENAI_API_KEY for a real model.' },
  ],
  repeat: true,
};

// A runtime that keeps threads in FOLDER/fawn.db.
const runtime = new Runtime({ database: { backend: 'sqlite', sqlite_dir: folder } });

// An agent: a model and one tool, which this program runs.
const agent = runtime.assembly({
  model: OPENAI_API_KEY
    ? {
        provider: 'openai',
        api_key: '$OPENAI_API_KEY',
        model: FAWN_MODEL ?? 'gpt-4.1-mini',
        base_url: OPENAI_BASE_URL ?? 'https://api.openai.com/v1',
      }
    : script,
  system_prompt: 'Answer in one sentence. Use the tool for weather.',
  tools: [
    {
      name: 'get_weather',
      description: 'The weather in a city',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
      execute: getWeather,
    },
  ],
});

// The thread "demo", as an earlier start of this program left it.
const thread = runtime.thread({ thread_id: 'demo' });
const [last] = thread.state({ channels: ['messages'], last_messages: 1 }).values.messages ?? [];
if (last) console.log(`(last time: ${last.content})`);

process.stdout.write(`you:   ${question}\nagent: `);
const run = agent.start(thread, { input: { messages: [{ role: 'user', content: question }] } });
for await (const event of run) {
  if (event.type === 'message_delta') process.stdout.write(event.data.text ?? '');
}
const result = await run.result();
if (result.status !== 'success') {
  console.error(`\n${JSON.stringify(result.error)}`);
  process.exitCode = 1;
}
console.log();

thread.close();
agent.close();
runtime.close();
