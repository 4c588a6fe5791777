// Runs a conformance script (tests/golden/README.md) through the binding's public API and prints what the library answers,
// byte for byte. tests/bindings compares that with what the runners of other languages print.
//
//   node runner.mjs SCRIPT
import fs from 'node:fs';
import { FawnError, Runtime, convertMessagesText, describeText, reduceText } from '../index.mjs';

/** What the script works on. A freed object stays, so that its later use reaches the library. */
const current = { runtime: undefined, assembly: undefined, thread: undefined, queue: undefined };

/** Lines that are neither empty nor a remark, as a verb and the bytes behind the first space. */
function* commands(script) {
  for (let at = 0; at < script.length; ) {
    const newline = script.indexOf(0x0a, at);
    const line = script.subarray(at, newline < 0 ? script.length : newline);
    at += line.length + 1;
    if (line.length === 0 || line[0] === 0x23) continue;
    const space = line.indexOf(0x20);
    yield space < 0
      ? { verb: line.toString(), text: Buffer.alloc(0) }
      : { verb: line.toString('utf8', 0, space), text: line.subarray(space + 1) };
  }
}

function say(...words) {
  process.stdout.write(`${words.join(' ')}\n`);
}

/** Prints what a command answers, or its error object. */
async function sayAnswer(ask) {
  try {
    const text = await ask();
    if (text === undefined) say('ok');
    else say('ok', text);
  } catch (error) {
    if (!(error instanceof FawnError)) throw error;
    say('error', error.text);
  }
}

/** Prints how an answer to a host call went: nothing if it arrived. */
function sayAction(act) {
  try {
    if (act() === false) say('gone');
  } catch (error) {
    if (!(error instanceof FawnError)) throw error;
    say('error', error.text);
  }
}

/** Makes an object in place of the current one, which is freed. */
function replace(name, made) {
  current[name]?.close();
  current[name] = made;
}

const verbs = {
  runtime: (text) => replace('runtime', new Runtime(text)),
  assembly: (text) => replace('assembly', current.runtime.assembly(text)),
  thread: (text) => replace('thread', current.runtime.thread(text)),
  queue: (text) => replace('queue', current.runtime.queue(text)),
  free: (text) => current[text.toString()].close(),
  describe: (text) => describeText(text),
  reduce(text) {
    const space = text.indexOf(0x20);
    if (space < 0) return reduceText(text, Buffer.alloc(0));
    return reduceText(text.subarray(0, space), text.subarray(space + 1));
  },
  convert: (text) => convertMessagesText(text),
  update: (text) => current.thread.updateText(text),
  state: (text) => current.thread.stateText(text),
  history: (text) => current.thread.historyText(text),
  goal: (text) => current.thread.goalText(text),
  submit: (text) => current.runtime.submitText(text),
  descriptor: () => current.assembly.descriptorText(),
  stats: () => current.runtime.statsText(),
  shutdown: () => current.runtime.shutdownText(),
};

/** Carries out a command that prints one line, or a run. */
async function carryOut(script, { verb, text }) {
  if (verb === 'run') return run(script, text);
  if (verbs[verb] === undefined) throw new Error(`unknown command ${verb}`);
  return sayAnswer(async () => verbs[verb](text));
}

/** Carries out the lines up to the one that answers a host call. */
async function answer(script, handle, callId) {
  for (;;) {
    const { done, value } = script.next();
    if (done || value.verb === 'end') throw new Error('an answer is missing for a host call');
    const { verb, text } = value;
    if (verb === 'emit') {
      sayAction(() => current.runtime.emit(callId, text));
    } else if (verb === 'finish') {
      return sayAction(() => current.runtime.finish(callId, text));
    } else if (verb === 'cancel') {
      return sayAction(() => void handle.submitText({ op: 'cancel', reason: 'golden' }));
    } else {
      await carryOut(script, value);
    }
  }
}

async function run(script, request) {
  try {
    const handle = current.assembly.start(current.thread, request, { queue: current.queue ?? null });
    for (let ended = current.queue === undefined; !ended; ) {
      const text = (await current.queue.takeText({ max: 1 })).slice(1, -1);
      say('event', text);
      const { type, data } = JSON.parse(text);
      ended = type === 'run_end';
      if (type === 'host_call') await answer(script, handle, data.call_id);
    }
    say('result', await handle.resultText());
    handle.close();
  } catch (error) {
    if (!(error instanceof FawnError)) throw error;
    say('error', error.text);
  }
  for (let line = script.next(); !line.done && line.value.verb !== 'end'; line = script.next());
}

const script = commands(fs.readFileSync(process.argv[2]));
// Not `for … of`: runs take lines from the same script.
for (let line = script.next(); !line.done; line = script.next()) await carryOut(script, line.value);
for (const object of Object.values(current).reverse()) object?.close();
