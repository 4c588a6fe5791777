'use strict';
// Run: one execution of an assembly on a thread. It is an async iterable of its events, and has a result.
//
// A run that is started without a queue gets one of its own, which is pumped here: host calls are served by the assembly's
// functions, other events wait for whoever iterates. Events that nobody fetches are kept up to a bound; then the library
// holds the run back. While nobody iterates and somebody waits for the result, they are dropped instead.

const addon = require('./addon.cjs');
const status = require('./status.cjs');
const forgotten = require('./forgotten.cjs');
const hub = require('./hub.cjs');
const { onAbort } = require('./aborting.cjs');
const { messageOf } = require('./answer.cjs');
const { cancelled, serve } = require('./call.cjs');
const { checkOptions, checkSignal } = require('./check.cjs');
const { coreOf } = require('./queue.cjs');
const { errorOf } = require('./error.cjs');
const { eventsOf } = require('./event.cjs');
const { handleOf } = require('./thread.cjs');
const { toJson, toText } = require('./text.cjs');
require('./dispose.cjs');

/** Events that may wait for an iteration. */
const KEEP = 1024;

/** What all runs have: a handle, a result, and whether they hold the loop. */
class RunCore {
  #waiters = [];
  #holds = false;
  #unsubscribe;

  constructor(runtime, handle, signal) {
    this.runtime = runtime;
    this.handle = handle;
    const { run_id, thread_id } = JSON.parse(addon.runSubmit(handle, '{"op":"status"}'));
    this.id = run_id;
    this.threadId = thread_id;
    /** JSON text of the result, once there is one. */
    this.result = undefined;
    /** Why there will be none. */
    this.failure = undefined;
    runtime.waiting.add(this);
    if (signal !== undefined) this.#unsubscribe = onAbort(signal, () => this.aborted(signal.reason));
  }

  get hasEnded() {
    return this.result !== undefined || this.failure !== undefined;
  }

  get wantsResult() {
    return this.#waiters.length > 0;
  }

  ref(holds) {
    if (holds === this.#holds || (holds && this.hasEnded)) return;
    this.#holds = holds;
    if (holds) hub.hold();
    else hub.release();
  }

  cancel(reason) {
    if (this.hasEnded) return false;
    const { cancelled } = JSON.parse(addon.runSubmit(this.handle, toJson({ op: 'cancel', reason })));
    this.runtime.poller.poke();
    return cancelled;
  }

  /** The signal that it was started with. Nobody is there to be told of a failure. */
  aborted(reason) {
    this.#unsubscribe = undefined;
    this.cancel(messageOf(reason));
  }

  ignoreSignal() {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
  }

  /** Whether a signal can still end it. */
  get canAbort() {
    return this.#unsubscribe !== undefined;
  }

  /** Asks for the result without waiting. Where this OS thread drives, asking drives too. */
  askResult() {
    try {
      const result = addon.runWait(this.handle, 0);
      if (typeof result === 'string') this.end(result);
      else if (result === status.CLOSED) this.end(undefined, errorOf('closed', 'the runtime was freed before the run ended'));
    } catch (error) {
      this.end(undefined, error);
    }
    return this.hasEnded;
  }

  end(result, failure) {
    this.result = result;
    this.failure = failure;
    this.ignoreSignal();
    this.runtime.waiting.delete(this);
    this.ref(false);
    for (const { resolve, reject } of this.#waiters.splice(0)) {
      if (failure === undefined) resolve(result);
      else reject(failure);
    }
  }

  /** JSON text of the result. `owner` is not to be forgotten meanwhile. */
  waitResult(options, owner) {
    return new Promise((resolve, reject) => {
      checkOptions(options, ['signal']);
      const signal = options?.signal;
      checkSignal(signal);
      if (this.failure !== undefined) return reject(this.failure);
      if (this.result !== undefined) return resolve(this.result);
      const waiter = { resolve, reject, owner };
      if (signal !== undefined) {
        const unsubscribe = onAbort(signal, () => {
          this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
          this.noLongerWanted();
          reject(signal.reason);
        });
        const settle = (how) => (value) => {
          unsubscribe();
          how(value);
        };
        waiter.resolve = settle(resolve);
        waiter.reject = settle(reject);
      }
      this.#waiters.push(waiter);
      this.wanted();
    });
  }

  /** Whether somebody should have closed it. */
  get wantsClose() {
    return false;
  }

  /** Somebody waits for the result. */
  wanted() {}
  /** One waits no more. */
  noLongerWanted() {}
}

/** A run with a queue of its own. */
class OwnRun extends RunCore {
  #queue;
  #assembly;
  /** Host calls that functions work on, by call id. */
  #calls = new Map();
  #events = [];
  #next = 0;
  /** Iterations that wait for an event. */
  #hungry = [];
  #iterations = 0;
  /** Nobody is going to iterate: the run was let go, or a loop over it was left. */
  #isLeft = false;
  #isFull = false;

  constructor(assembly, handle, queue, signal) {
    super(assembly.runtime, handle, signal);
    this.#assembly = assembly;
    this.#queue = queue;
    hub.watch(queue, this);
    this.ref(true);
    if (this.runtime.isDriven) this.runtime.poller.add(this);
  }

  /** One take. Answers how many events came. */
  pump() {
    if (this.hasEnded || this.#isFull) return 0;
    let taken;
    try {
      taken = addon.queueTake(this.#queue, hub.BATCH);
    } catch (error) {
      this.end(undefined, error);
      return 0;
    }
    if (typeof taken !== 'string') {
      // A closed queue without a run_end: the runtime went away.
      if (taken === status.CLOSED && !this.askResult()) this.runtime.poller.add(this);
      return 0;
    }
    const drops = this.#dropsEvents;
    if (drops) this.#forget();
    const objects = JSON.parse(taken);
    const events = drops ? objects : eventsOf(taken, objects);
    let isOver = false;
    for (const event of events) {
      if (!drops) this.#deliver(event);
      if (event.type === 'host_call') void serve(this.#assembly, event, this.#calls);
      else if (event.type === 'host_call_cancelled') cancelled(this.#calls, event.data);
      else if (event.type === 'run_end') isOver = true;
    }
    this.#isFull = this.#events.length - this.#next >= KEEP;
    if (isOver) this.askResult();
    return events.length;
  }

  /** For the runtime's poller: a take is what drives it. */
  poll() {
    if (!this.#isFull) return this.pump() > 0;
    this.runtime.poller.remove(this);
    return false;
  }

  get #dropsEvents() {
    return this.#iterations === 0 && (this.#isLeft || this.wantsResult);
  }

  #deliver(event) {
    if (this.#hungry.length > 0) this.#hungry.shift().resolve({ value: event, done: false });
    else this.#events.push(event);
  }

  #forget() {
    this.#events = [];
    this.#next = 0;
  }

  /** There is room again, or no need of it. */
  #goOn() {
    if (!this.#isFull) return;
    this.#isFull = false;
    if (this.runtime.isDriven) this.runtime.poller.add(this);
    hub.activate(this);
  }

  /** What is kept is dropped by the next take, not here: whoever asks for the result may iterate in the next line. */
  wanted() {
    if (this.#dropsEvents) this.#goOn();
  }

  /** Nobody has the run any more; it goes on. */
  letGo() {
    this.#leave();
  }

  #leave() {
    if (this.hasEnded || this.#iterations > 0) return;
    this.#isLeft = true;
    this.#forget();
    this.#goOn();
  }

  runtimeClosed() {
    for (const call of this.#calls.values()) call.cancel('closed');
    this.runtime.poller.add(this);
  }

  end(result, failure) {
    if (failure !== undefined) for (const call of this.#calls.values()) call.cancel('closed');
    addon.release(this.handle);
    hub.unwatch(this.#queue, this);
    addon.release(this.#queue);
    this.runtime.poller.remove(this);
    super.end(result, failure);
    // What is kept is still there to be iterated; who waits now waits in vain.
    for (const { resolve, reject } of this.#hungry.splice(0)) {
      if (failure === undefined) resolve({ value: undefined, done: true });
      else reject(failure);
    }
  }

  iterate() {
    let isDone = false;
    this.#iterations++;
    this.#isLeft = false;
    const done = () => {
      if (isDone) return;
      isDone = true;
      this.#iterations--;
      // What this one did not come to is for nobody, if it was the last.
      this.#leave();
    };
    return {
      next: () => {
        if (isDone) return Promise.resolve({ value: undefined, done: true });
        if (this.#next < this.#events.length) {
          const value = this.#events[this.#next];
          this.#events[this.#next++] = undefined;
          if (this.#next === this.#events.length) this.#forget();
          if (this.#events.length - this.#next <= KEEP / 2) this.#goOn();
          return Promise.resolve({ value, done: false });
        }
        if (this.failure !== undefined) return Promise.reject(this.failure);
        if (this.result !== undefined) {
          done();
          return Promise.resolve({ value: undefined, done: true });
        }
        return new Promise((resolve, reject) => this.#hungry.push({ resolve, reject }));
      },
      return: (value) => {
        done();
        return Promise.resolve({ value, done: true });
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }
}

/** A run whose events go to a queue of the host's, or to none. Its result is asked for: no wake-up tells of it. */
class OtherRun extends RunCore {
  #queue;
  #isLeft = false;

  constructor(runtime, handle, queue, signal) {
    super(runtime, handle, signal);
    this.#queue = queue;
  }

  wanted() {
    this.ref(true);
    if (this.poll()) return;
    this.#queue?.runs.add(this);
    this.runtime.poller.add(this);
  }

  noLongerWanted() {
    if (this.wantsResult) return;
    this.ref(false);
    if (!this.#isLeft) this.#queue?.runs.delete(this);
    this.runtime.poller.remove(this);
  }

  poll() {
    return this.askResult();
  }

  runtimeClosed() {
    if (this.#isLeft) this.#free();
  }

  letGo() {
    this.#isLeft = true;
    // Its signal may still want to end it: kept until that aborts, or somebody takes the run_end.
    if (this.canAbort && this.runtime.isOpen && !this.isOver) this.#queue?.runs.add(this);
    else this.#free();
  }

  /** Whether it has ended, which the library knows also of a run whose result nobody wanted. */
  get isOver() {
    try {
      return this.hasEnded || JSON.parse(addon.runSubmit(this.handle, '{"op":"status"}')).ended;
    } catch {
      return false;
    }
  }

  /** One that has ended holds next to nothing. */
  get wantsClose() {
    return !this.runtime.wasClosed && !this.isOver;
  }

  aborted(reason) {
    super.aborted(reason);
    if (this.#isLeft) this.#free();
  }

  #free() {
    this.ignoreSignal();
    addon.release(this.handle);
    this.runtime.waiting.delete(this);
    this.#queue?.runs.delete(this);
  }

  end(result, failure) {
    super.end(result, failure);
    this.noLongerWanted();
    if (this.#isLeft) this.#free();
  }
}

class Run {
  #core;

  /** For Assembly.start. */
  constructor(core) {
    this.#core = core;
    forgotten.watch(this, 'Run', () => {
      const { wantsClose } = core;
      core.letGo();
      return wantsClose;
    });
  }

  /** Its id, which its events carry as `run_id`. */
  get id() {
    return this.#core.id;
  }

  /** The id of its thread. */
  get threadId() {
    return this.#core.threadId;
  }

  /** The result: status, the agent's message, the error of a run that failed. */
  async result(options) {
    return JSON.parse(await this.resultText(options));
  }

  resultText(options) {
    return this.#core.waitResult(options, this);
  }

  /** Its events, if it was started without a queue. A loop that is left does not end the run. */
  [Symbol.asyncIterator]() {
    if (!(this.#core instanceof OwnRun)) throw new TypeError("fawn: this run's events go to the queue that it was started with");
    return this.#core.iterate();
  }

  /** Asks it to end. False: it is over already. */
  cancel(reason) {
    return this.#core.cancel(reason);
  }

  submit(op) {
    return JSON.parse(this.submitText(op));
  }

  submitText(op) {
    const text = addon.runSubmit(this.#core.handle, toText(op));
    this.#core.runtime.poller.poke();
    return text;
  }

  /** Whether the run keeps the process alive: it does unless unref() was called. */
  ref() {
    this.#core.ref(true);
    return this;
  }

  unref() {
    this.#core.ref(false);
    return this;
  }

  /** Lets go: the run goes on, its functions are called, its events are dropped. */
  close() {
    forgotten.unwatch(this);
    this.#core.letGo();
  }

  [Symbol.dispose]() {
    this.close();
  }

  /** Ends the run, waits for its end, and lets go. */
  async [Symbol.asyncDispose]() {
    this.cancel('the run was disposed of');
    await this.resultText();
    this.close();
  }
}

/** For Assembly.start. */
function startRun(assembly, thread, request, options) {
  const { runtime } = assembly;
  checkOptions(options, ['queue', 'signal']);
  const { queue, signal } = options ?? {};
  const text = toText(request);
  const threadHandle = handleOf(thread);
  checkSignal(signal);
  let core;
  if (queue === undefined) {
    if (!assembly.answersModels) {
      const remedy = 'give one as "execute" beside provider "host", or start the run with a queue and answer its host calls';
      throw errorOf('assembly_invalid', `a model of the assembly is the host's, but there is no function for it; ${remedy}`);
    }
    const own = addon.queueNew(runtime.handle, '{}');
    try {
      core = new OwnRun(assembly, addon.runStart(assembly.handle, threadHandle, own, text), own, signal);
    } catch (error) {
      addon.release(own);
      throw error;
    }
  } else {
    const other = queue === null ? undefined : coreOf(queue);
    core = new OtherRun(runtime, addon.runStart(assembly.handle, threadHandle, other?.handle ?? 0, text), other, signal);
  }
  runtime.poller.poke();
  return new Run(core);
}

module.exports = { Run, startRun };
