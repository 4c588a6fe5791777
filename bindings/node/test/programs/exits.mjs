// A program that ends while the library is busy: `node exits.mjs HOW`. The test looks at how it ended.
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import { fileURLToPath } from 'node:url';
import { Runtime } from '../../index.mjs';
import { ask, calls, scripted, sleep, tool } from '../support.mjs';

const how = isMainThread ? process.argv[2] : workerData;

/** Runs that send events as fast as they can, for ever. */
function busy(count = 4) {
  const runtime = new Runtime();
  const agent = scripted(runtime, [calls(...Array(20).fill('a'))], [tool('a', () => 'ok')], { repeat: true });
  return Array.from({ length: count }, () => agent.start(runtime.thread(), ask('Go', { recursion_limit: 1000 })));
}

/** Reads from all runs, and tells of each 100th event. */
function read(runs, each = () => {}) {
  let events = 0;
  for (const run of runs) {
    void (async () => {
      for await (const _ of run) if (++events % 100 === 0) each(events);
    })();
  }
}

const ways = {
  // Nothing keeps a process alive that only has idle objects.
  idle() {
    const runtime = new Runtime();
    scripted(runtime, [{ content: 'Hi' }]);
    runtime.thread();
    runtime.queue();
  },
  // A run in flight does, until it has ended.
  held() {
    const runtime = new Runtime();
    const agent = scripted(runtime, [{ content: 'Hi', delay_ms: 100 }]);
    void agent
      .start(runtime.thread(), ask())
      .result()
      .then(({ status }) => console.log(status));
  },
  'held-driven'() {
    const runtime = new Runtime({ workers: 0 });
    const agent = scripted(runtime, [calls('a'), { content: 'Hi', delay_ms: 100 }], [tool('a', () => 'ok')]);
    void agent
      .start(runtime.thread(), ask())
      .result()
      .then(({ status }) => console.log(status));
  },
  // So does a take that waits.
  'held-take'() {
    const runtime = new Runtime();
    const queue = runtime.queue();
    void queue.take({ timeoutMs: 100 }).then((events) => console.log(events.length));
  },
  // Natural exit in mid-run.
  natural() {
    const runs = busy();
    for (const run of runs) run.unref();
    read(runs);
    setTimeout(() => console.log('the end'), 30);
  },
  exit() {
    read(busy(), (events) => events >= 300 && process.exit(3));
  },
  'exit-in-tool'() {
    const runtime = new Runtime();
    const agent = scripted(runtime, [calls('a')], [tool('a', () => process.exit(3))]);
    read([...busy(), agent.start(runtime.thread(), ask())]);
  },
  uncaught() {
    read(busy());
    setTimeout(() => {
      throw new Error('on purpose');
    }, 20);
  },
  // What a listener of `exit` does with the library is still well.
  'exit-listener'() {
    const runtime = new Runtime();
    read(busy(), (events) => events >= 300 && process.exit());
    process.on('exit', () => {
      console.log(runtime.stats().runs.active);
      runtime.close();
    });
  },
  // Environments: each worker has its own, and goes away in the midst of it.
  async workers() {
    const rounds = Number(process.argv[3] ?? 3);
    for (let round = 0; round < rounds; round++) {
      await Promise.all(
        ['busy', 'busy', 'busy-exit', 'busy-throw'].map(
          (kind) =>
            new Promise((resolve, reject) => {
              const worker = new Worker(fileURLToPath(import.meta.url), { workerData: kind });
              worker.on('message', () => kind === 'busy' && void worker.terminate());
              worker.on('error', (error) => error.message !== 'on purpose' && reject(error));
              worker.on('exit', resolve);
            }),
        ),
      );
    }
    const { describe } = await import('../../index.mjs');
    // The runs of a freed runtime end behind the scenes.
    for (let wait = 0; wait < 200 && describe('handles').handles.length > 0; wait++) await sleep(10);
    console.log(JSON.stringify(describe('handles').handles));
  },
  busy() {
    read(busy(2), (events) => events === 300 && parentPort.postMessage('busy'));
  },
  'busy-exit'() {
    read(busy(2), (events) => events >= 300 && process.exit());
  },
  'busy-throw'() {
    read(busy(2));
    setTimeout(() => {
      throw new Error('on purpose');
    }, 30);
  },
};

await ways[how]();
