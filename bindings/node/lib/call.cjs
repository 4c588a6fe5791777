'use strict';
// Host calls: a function of the host works on one, may tell of its progress, and its value or its error is the answer.

const addon = require('./addon.cjs');
const status = require('./status.cjs');
const { acceptance, refusal, refused, whose } = require('./answer.cjs');
const { errorOf } = require('./error.cjs');
const { toJson } = require('./text.cjs');

/** How long an emit that the run was not ready for waits until it is tried again, in milliseconds. */
const BEHIND_MS = 5;
const ACCEPTED = Promise.resolve(true);
const REFUSED = Promise.resolve(false);

/** Whether an error says that the runtime is gone, so that nobody waits for anything. */
function isGone({ code }) {
  return code === 'handle' || code === 'closed';
}

/** One host call that a function works on. */
class HostCall {
  constructor(runtime, event) {
    this.runtime = runtime;
    this.event = event;
    this.id = event.data.call_id;
    this.controller = undefined;
    /** Why the answer is of no use any more. */
    this.reason = undefined;
    /** Parts that wait for room, oldest first. */
    this.behind = [];
    /** Resolves when there are none. */
    this.flushed = undefined;
  }

  get signal() {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.reason !== undefined) this.controller.abort(this.reason);
    }
    return this.controller.signal;
  }

  cancel(code) {
    this.reason ??= errorOf(code, `the host call is over: ${code}`);
    this.controller?.abort(this.reason);
  }

  emit(part) {
    let text;
    try {
      text = part === undefined ? 'null' : toJson(part, `a part of ${whose(this.event.data)}`);
    } catch (error) {
      return Promise.reject(error);
    }
    if (this.flushed === undefined) {
      try {
        return this.tell(text) ? ACCEPTED : REFUSED;
      } catch (error) {
        if (error.code !== 'behind') return Promise.reject(error);
        this.flushed = this.flush();
      }
    }
    return new Promise((resolve, reject) => this.behind.push({ text, resolve, reject }));
  }

  tell(text) {
    try {
      return addon.callEmit(this.runtime.handle, this.id, text) !== status.GONE;
    } catch (error) {
      if (isGone(error)) return false;
      throw error;
    } finally {
      this.runtime.poller.poke();
    }
  }

  async flush() {
    do {
      await new Promise((resolve) => setTimeout(resolve, BEHIND_MS));
      while (this.behind.length > 0) {
        const { text, resolve, reject } = this.behind[0];
        try {
          resolve(this.tell(text));
        } catch (error) {
          if (error.code === 'behind') break;
          reject(error);
        }
        this.behind.shift();
      }
    } while (this.behind.length > 0);
    this.flushed = undefined;
  }

  /** Answers, after what was emitted. */
  async finish(text) {
    if (this.flushed !== undefined) await this.flushed;
    try {
      addon.callFinish(this.runtime.handle, this.id, text);
    } finally {
      this.runtime.poller.poke();
    }
  }
}

/** What a function gets besides the arguments. */
class CallContext {
  #call;

  constructor(call) {
    const { data, run_id, task_id, thread_id } = call.event;
    this.#call = call;
    this.kind = data.kind;
    this.name = data.name;
    this.callId = data.call_id;
    this.toolCallId = data.tool_call_id ?? undefined;
    this.deadlineMs = data.deadline_ms;
    this.idempotencyKey = data.idempotency_key;
    this.runId = run_id;
    this.taskId = task_id;
    this.threadId = thread_id;
  }

  /** Aborts when the answer is of no use any more. Made when it is first looked at, since most functions do not. */
  get signal() {
    return this.#call.signal;
  }

  /** Tells of progress, or streams a model's reply. A function of its own, to be taken apart: `({ emit }) => …`. */
  get emit() {
    return (part) => this.#call.emit(part);
  }
}

/** The function of an assembly that a host call asks for, if it has one. */
function functionOf(assembly, { kind, name }) {
  switch (kind) {
    case 'tool':
      return assembly.tools.get(name);
    case 'model':
      return assembly.models.get(name);
    case 'middleware':
      return assembly.middleware.get(name);
    case 'guardrail':
      return assembly.guardrail;
    case 'sandbox':
    case 'memory': {
      const handler = assembly[kind];
      // A method, which may want its object.
      return handler?.[name] === undefined ? undefined : (args, context) => handler[name](args, context);
    }
    default: // of a later version
      return undefined;
  }
}

/** The answer to a call, of the function that it asks for. Never rejects. */
async function answer(assembly, call) {
  const { data } = call.event;
  try {
    const run = functionOf(assembly, data);
    if (run === undefined) throw new Error(`the host has no function for ${whose(data)}`);
    return acceptance(data, await run(data.args, new CallContext(call)));
  } catch (error) {
    return refusal(error);
  }
}

/** Hands an answer in. One that the library does not take is told to the run, and to whoever wrote the function. */
async function handIn(call, text) {
  try {
    await call.finish(text);
  } catch (error) {
    if (isGone(error)) return;
    const warning = refused(call.event.data, error);
    process.emitWarning(warning);
    await call.finish(refusal(warning));
  }
}

/** Runs a function on a host call, and answers with what it returns or throws. Never rejects. Meanwhile the call is in `calls`. */
async function serve(assembly, event, calls) {
  const call = new HostCall(assembly.runtime, event);
  calls.set(call.id, call);
  try {
    await handIn(call, await answer(assembly, call));
  } catch (error) {
    if (!isGone(error)) process.emitWarning(error);
  } finally {
    if (calls.get(call.id) === call) calls.delete(call.id);
  }
}

/** Tells the function that works on a call that its answer is of no use any more. */
function cancelled(calls, { call_id, reason }) {
  calls.get(call_id)?.cancel(reason);
}

module.exports = { serve, cancelled };
