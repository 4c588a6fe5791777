// The types of fawn for Node.js. The payloads' own types are in types/payloads.d.ts, generated from include/schema.

import type {
  AppConfig,
  AssemblyConfig,
  AssemblyDescriptor,
  CallAnswer,
  ConvertAnswer,
  ConvertInput,
  DescriptorDiff,
  DescriptorPair,
  ErrorObject,
  EventObject,
  HostMiddlewareConfig,
  GoalAnswer,
  GoalOp,
  HostToolConfig,
  MiddlewareQuestion,
  MiddlewareVerdict,
  ModelConfig,
  NamedModel,
  QueueConfig,
  ReduceInput,
  RunOp,
  RunOpAnswer,
  RunRequest,
  RunResult,
  RuntimeConfig,
  RuntimeOp,
  RuntimeStats,
  ShutdownAnswer,
  SubagentsAnswer,
  SubagentsObjectConfig,
  SubagentsStats,
  ThreadHistory,
  ThreadHistoryQuery,
  ThreadOpen,
  ThreadState,
  ThreadStateQuery,
  ThreadUpdate,
  ThreadUpdateAnswer,
} from './types/payloads.js';

export type * from './types/payloads.js';

/**
 * JSON text: a string, or the UTF-8 bytes of one, which go to the library as they are. Half a surrogate pair in a string, which a
 * text has that was cut in the middle of a character, becomes U+FFFD; so it does in objects.
 */
export type JsonText = string | Uint8Array | ArrayBuffer;

/** What a function of the host gets besides the arguments. */
export interface CallContext {
  /** Aborts when the answer is of no use any more: the run was cancelled, the deadline passed. The reason is a FawnError. */
  readonly signal: AbortSignal;
  /**
   * A tool: tells of progress, as `custom` events. A model: streams its reply, `{ text }`, `{ reasoning }` or `{ tool_call }`.
   * Resolves when the part was taken, which is at once unless the run is behind: await it to go no faster than the run.
   * `false`: the call is over. Rejects if the part is none.
   */
  readonly emit: (part: unknown) => Promise<boolean>;
  readonly kind: string;
  /** The tool, the model, the guardrail or the middleware; of a sandbox or a memory, what it is asked for. */
  readonly name: string;
  readonly callId: number;
  /** The model's id of a tool call. */
  readonly toolCallId: string | undefined;
  /** How long the answer may take, from when the call was made. */
  readonly deadlineMs: number;
  /** The same whenever the same question is asked again, also after a restart. */
  readonly idempotencyKey: string;
  readonly runId: string;
  /** The `task` call for which a subagent asks; undefined when the run itself asks. */
  readonly taskId: string | undefined;
  readonly threadId: string;
}

/**
 * A tool of the host. What it returns is the answer: text or any JSON, or an object with `content` and, if wanted, `artifact`,
 * `additional_kwargs`, `update` and `end_run`. A Buffer, Uint8Array or ArrayBuffer, as the answer or its `content`, is UTF-8 text.
 * What it throws becomes the answer too: the model reads the message. So it reads why an answer cannot be sent: a Map, a Set, a
 * Promise, another typed array, a function, a BigInt, a cycle.
 */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- arguments are what the tool's schema says
export type ToolFunction = (args: any, context: CallContext) => unknown;

/**
 * A model of the host. It gets `system`, `messages`, `tools` and `tool_choice`, and returns text or an object with `content`,
 * `tool_calls`, `usage`. Nothing is no reply: the run fails.
 */
export type ModelFunction = (
  request: { system: string | null; messages: import('./types/payloads.js').Message[]; tools: unknown[]; tool_choice: unknown },
  context: CallContext,
) => unknown;

/**
 * A guardrail of the host: whether a tool call may be made. What it throws says that it cannot tell, and then `fail_closed` of the
 * configuration decides.
 */
export type GuardrailFunction = (
  request: import('./types/payloads.js').GuardrailRequest,
  context: CallContext,
) => import('./types/payloads.js').GuardrailAnswer | Promise<import('./types/payloads.js').GuardrailAnswer>;

/**
 * A middleware of the host. It gets where in the run it is asked, and about what, and returns its verdict, such as
 * `{ verdict: 'continue' }` or `{ verdict: 'deny', reason }`. What it throws counts as no answer: then `on_timeout` says what follows.
 */
export type MiddlewareFunction = (question: MiddlewareQuestion, context: CallContext) => MiddlewareVerdict | Promise<MiddlewareVerdict>;

/** Which sandbox: that of a thread of a user's. */
export interface SandboxOfThread {
  user_id: string;
  thread_id: string;
}

/** One that was acquired. */
export interface AcquiredSandbox extends SandboxOfThread {
  sandbox_id: string;
}

/**
 * The host as a sandbox (`"sandbox": {"use": "host"}`): an object with these functions, which may be of a class. What one throws,
 * or one that is missing, fails what needed it.
 */
export interface Sandbox {
  /** Makes the sandbox of a thread, or finds it. */
  acquire?(args: SandboxOfThread, context: CallContext): { sandbox_id: string } | Promise<{ sandbox_id: string }>;
  /** A run has ended that was in it. */
  release?(args: AcquiredSandbox, context: CallContext): null | void | Promise<null | void>;
  /** The text of a file, or its bytes in UTF-8; null when there is no such file. */
  read_file?(
    args: AcquiredSandbox & { path: string },
    context: CallContext,
  ): { text: string | Uint8Array } | null | Promise<{ text: string | Uint8Array } | null>;
  write_file?(args: AcquiredSandbox & { path: string; text: string }, context: CallContext): null | void | Promise<null | void>;
}

/** The host as a memory (`"memory": {"manager_class": "host"}`). */
export interface Memory {
  /** What a run said: take it in, and remember later. */
  add(
    args: {
      user_id: string;
      /** `null`: the agent without a record. */
      agent_name: string | null;
      thread_id: string;
      trace_id: string | null;
      messages: import('./types/payloads.js').Message[];
    },
    context: CallContext,
  ): null | void | Promise<null | void>;
}

/** A middleware of a chain: by name, with settings, or one of the host with the function that decides. */
export type Middleware =
  | string
  | {
      name: string;
      host?: HostMiddlewareConfig;
      execute?: MiddlewareFunction;
      after?: string | null;
      before?: string | null;
      [setting: string]: unknown;
    };

/** A tool with the function that runs it. */
export type Tool = HostToolConfig & { execute?: ToolFunction };

/** A tool that DeerFlow would load by its class, with settings of its own. */
export type ClassTool = { name: string; group?: string | null; use: string; [setting: string]: unknown };

/** A model and its fallbacks, with their functions. */
type WithExecute<Model> = Model extends unknown
  ? Omit<Model, 'fallbacks'> & { fallbacks?: Array<string | WithExecute<ModelConfig>> } & (Model extends { provider: 'host' }
        ? { execute?: ModelFunction }
        : unknown)
  : never;

/** The members of configurations that may have functions in them. */
interface Hosted {
  model: string | WithExecute<ModelConfig>;
  models: WithExecute<NamedModel>[] | null;
  middleware: Middleware[] | null;
  extra_middleware: Middleware[];
  app_config: HostAppConfig | null;
}

/** A handle, or the object itself. A section of the same name, which is no number, stays what it is. */
type OrObject<Value> = number extends Value ? Value | Subagents : Value;

/** A configuration, each of its forms with functions where it may have some; its tools are `Tools`. */
type WithFunctions<Config, Tools> = Config extends unknown
  ? {
      [Member in keyof Config]: Member extends 'tools'
        ? Tools
        : Member extends keyof Hosted
          ? Hosted[Member]
          : Member extends 'subagent_runtime'
            ? OrObject<Config[Member]>
            : Config[Member];
    }
  : never;

type MembersOf<Union> = Union extends unknown ? keyof Union : never;
/** A union whose forms have none of the members of the others, which an object literal could have otherwise. */
type Apart<Union, All = Union> = Union extends unknown ? Union & { [Member in Exclude<MembersOf<All>, keyof Union>]?: never } : never;

/**
 * An assembly's configuration; functions of the host may stand beside what they answer. `factory` says which members there are:
 * `custom` (the default) and `direct` have a `model`, `lead` and `lead_graph` take theirs from the configuration.
 */
export type AgentConfig = Apart<WithFunctions<AssemblyConfig, Tool[]>>;

/** The configuration of an application; models and tools of the host may have their functions. */
export type HostAppConfig = WithFunctions<AppConfig, Array<Tool | ClassTool> | null>;

/** A runtime's configuration; models and tools of the host may have their functions. */
export type HostRuntimeConfig = WithFunctions<RuntimeConfig, Array<Tool | ClassTool> | null>;

/**
 * Functions of the host, apart from the configuration: for one that is text, or that names a model or tools of the runtime. One
 * that nothing in the configuration can ask is an error.
 */
export interface HostFunctions {
  /** Run tools: the assembly's, or of a lead agent those of the configuration. */
  tools?: Record<string, ToolFunction>;
  /** Decide for the middlewares of the host. */
  middleware?: Record<string, MiddlewareFunction>;
  /** Answers for the models of the host that have no function of their own; of a lead agent, for those of the configuration. */
  model?: ModelFunction;
  /** Decides about tool calls, where the configuration has a guardrail with `"use": "host"` that is on. */
  guardrail?: GuardrailFunction;
  /** Is the sandbox, where the configuration has `"sandbox": {"use": "host"}`. */
  sandbox?: Sandbox;
  /** Is the memory, where the configuration has `"memory": {"manager_class": "host"}`. */
  memory?: Memory;
}

export interface Waiting {
  /** Ends the waiting, which rejects with the signal's reason. What is waited for goes on. */
  signal?: AbortSignal;
}

/** A runtime: configuration, store, models. Everything else belongs to one. */
export class Runtime {
  /**
   * Makes one. Throws a FawnError, as everything here does when the library refuses.
   *
   * With `workers: 0` the library has no OS threads of its own; this thread then does its work between two turns of the event
   * loop while something is pending, and looks at least each 10 milliseconds. Leave `workers` out for models over HTTP.
   */
  constructor(config?: HostRuntimeConfig | JsonText);
  /**
   * Composes an agent. Its functions answer its host calls, and those of the runtime's configuration where it has none of that
   * name. A function for a tool that it does not have, for a model that is not the host's, or for anything else that the
   * configuration cannot ask for is an error. A host model may be without one only where its calls are answered from a Queue.
   */
  assembly(config: AgentConfig | JsonText, functions?: HostFunctions): Assembly;
  /** Makes an object by which assemblies share capacity and limits for their subagents. */
  subagents(config?: SubagentsObjectConfig | JsonText): Subagents;
  /** Opens a thread, or begins one. With SQLite this reads the file, here and now. */
  thread(open?: ThreadOpen | JsonText): Thread;
  /** Makes a queue, for the events of several runs and of the runtime. A run alone needs none. */
  queue(config?: QueueConfig | JsonText): Queue;
  /** Does something that is rarely needed, such as deleting a thread. */
  submit(op: RuntimeOp | JsonText): Record<string, unknown>;
  submitText(op: RuntimeOp | JsonText): string;
  stats(): RuntimeStats;
  statsText(): string;
  /** Adds to the answer of a host call that was taken from a Queue. `false`: the call is over. */
  emit(callId: number, part: unknown): boolean;
  /** Answers a host call that was taken from a Queue. `false`: the call is over. */
  finish(callId: number, answer: CallAnswer | JsonText): boolean;
  /**
   * Cancels all runs and resolves when they have ended; `null`: the time was up. From now on only what is left can be read. May
   * be called again; the answer counts over all calls.
   */
  shutdown(options?: Waiting & { timeoutMs?: number }): Promise<ShutdownAnswer | null>;
  shutdownText(options?: Waiting & { timeoutMs?: number }): Promise<string | null>;
  /** Frees it at once. Runs in flight are cancelled behind the scenes. May be called again. */
  close(): void;
  [Symbol.dispose](): void;
  /** Shuts down, waits for that, and frees. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Capacity and limits for subagents, shared by all assemblies whose configuration has it as `subagent_runtime`. Made by
 * Runtime.subagents. Assemblies without one share the capacity of the process.
 */
export class Subagents {
  private constructor();
  /** Starts what it owns besides its capacity: durable batches, of which this version has none. Subagents need no start. */
  start(): SubagentsAnswer;
  startText(): string;
  /** Stops that, and resolves when it has stopped; `null`: the time was up. Subagents go on, and new ones begin. */
  stop(options?: Waiting & { timeoutMs?: number }): Promise<SubagentsAnswer | null>;
  stopText(options?: Waiting & { timeoutMs?: number }): Promise<string | null>;
  /** How many subagents run and how many wait at this moment, and the limits of both. Works after a shutdown too. */
  stats(): SubagentsStats;
  statsText(): string;
  /** Its handle, a number: so it may stand in a configuration that becomes JSON. */
  toJSON(): number;
  /** Lets go. Assemblies that name it keep it. */
  close(): void;
  [Symbol.dispose](): void;
}

/** An agent: a model, a prompt, tools and middleware, composed once. Made by Runtime.assembly. */
export class Assembly {
  private constructor();
  /** What it turned out to be; `null` for a bare graph. */
  descriptor(): unknown;
  descriptorText(): string;
  /**
   * Sets the agent to work on a thread.
   *
   * Without `queue` the run has a queue of its own: the assembly's functions are called, and the run can be iterated. With one,
   * everything comes through that queue, host calls included (see `serve`). `null`: nobody listens.
   * `signal`: cancels the run, also after close(); its result then has the status `interrupted`.
   */
  start(thread: Thread, request: RunRequest | JsonText, options?: { queue?: Queue | null; signal?: AbortSignal }): Run;
  /** Calls the function that a `host_call` event from a Queue asks for, and answers. Resolves then, and never rejects. */
  serve(event: FawnEvent): Promise<void>;
  /** Frees it; runs go on. */
  close(): void;
  [Symbol.dispose](): void;
}

/** One conversation and its state. Made by Runtime.thread. Its calls read or write the store here and now. */
export class Thread {
  private constructor();
  /** Its id. Of one that was opened without, the library is asked once: read it before close(). */
  readonly id: string;
  /** Writes to channels as one checkpoint: all of it or nothing. */
  update(update: ThreadUpdate | JsonText): ThreadUpdateAnswer;
  updateText(update: ThreadUpdate | JsonText): string;
  /** The values of the channels, and the checkpoint they are of. */
  state(query?: ThreadStateQuery | JsonText): ThreadState;
  stateText(query?: ThreadStateQuery | JsonText): string;
  /** The checkpoints, newest first. */
  history(query?: ThreadHistoryQuery | JsonText): ThreadHistory;
  historyText(query?: ThreadHistoryQuery | JsonText): string;
  /** Reads, sets or clears the goal; without an op it is read, which may be done while a run is in flight. */
  goal(op?: GoalOp | JsonText): GoalAnswer;
  goalText(op?: GoalOp | JsonText): string;
  /** Lets go. What the store holds stays. */
  close(): void;
  [Symbol.dispose](): void;
}

export interface TakeOptions extends Waiting {
  /** At most so many events; 0: all that are there. Default 256. */
  max?: number;
  /** How long to wait; 0: not at all; negative or Infinity: for ever, which is the default. */
  timeoutMs?: number;
}

/** Events of several runs and of the runtime, as one stream. Made by Runtime.queue. */
export class Queue implements AsyncIterable<FawnEvent> {
  private constructor();
  /** Takes events, oldest first. None: the time was up, or interrupt() was called. `null`: closed, nothing will come. */
  take(options?: TakeOptions): Promise<FawnEvent[] | null>;
  /** The same as the library's text, a JSON array; `''` for none. Nothing in it was looked at. */
  takeText(options?: TakeOptions): Promise<string | null>;
  /** Ends one take early: one that waits now, or else the next. */
  interrupt(): void;
  /** Events until the queue is closed. */
  [Symbol.asyncIterator](): AsyncGenerator<FawnEvent, void, undefined>;
  /** Frees it. What is in it is lost, its open host calls fail. */
  close(): void;
  [Symbol.dispose](): void;
}

/** One execution of an agent on a thread. Made by Assembly.start. Keeps the process alive until it ends; see unref. */
export class Run implements AsyncIterable<FawnEvent> {
  private constructor();
  /** Its id, which its events carry as `run_id`. */
  readonly id: string;
  readonly threadId: string;
  /** How it ended. A run that failed is a result too: look at `status` and `error`. */
  result(options?: Waiting): Promise<RunResult>;
  resultText(options?: Waiting): Promise<string>;
  /**
   * Its events, the last being `run_end`, if it was started without a queue. Leaving the loop does not end the run. Some
   * thousand events wait for whoever comes late; then the run is held back, or, while only `result` is awaited, they are dropped.
   */
  [Symbol.asyncIterator](): AsyncIterableIterator<FawnEvent>;
  /** Asks it to end; `false`: it has ended already. What has arrived of a reply is kept. */
  cancel(reason?: string): boolean;
  submit(op: RunOp | JsonText): RunOpAnswer;
  submitText(op: RunOp | JsonText): string;
  ref(): this;
  /** Lets the process end although the run goes on. */
  unref(): this;
  /** Lets go: the run goes on, its events are dropped. A run that has ended needs no close. */
  close(): void;
  [Symbol.dispose](): void;
  /** Ends the run, waits for its end, and lets go. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** An event: `type` tells what `data` is. More types may come. */
export type FawnEvent = EventObject & {
  /** The event's JSON as the library wrote it, byte for byte. */
  readonly text: string;
};
export const FawnEvent: { prototype: FawnEvent; [Symbol.hasInstance](value: unknown): value is FawnEvent };

/** What the library refuses, as an Error; `cause` is what lay behind it, outermost first. */
export class FawnError extends Error {
  /** Makes one of an error object, such as a failed run's `result.error`. */
  constructor(object: ErrorObject | Record<string, unknown>);
  /** From a closed list, for programs. */
  code: ErrorObject['code'];
  status: number;
  /** JSON pointer into what was passed. */
  path: string | undefined;
  /** Whether the same call may succeed later. */
  retryable: boolean;
  cause?: string[];
  /** The error object's JSON as the library wrote it. */
  readonly text: string;
}

/** The version of the library. */
export function version(): string;
/** The version of the ABI that the library serves. */
export function abiVersion(): number;
/** The name of a status as it stands in fawn.h. */
export function statusName(status: number): string;
/** What the library says about itself: "index", "build", "errors", "schemas", "schema/NAME", "handles". */
export function describe(topic?: string): unknown;
export function describeText(topic?: JsonText): string;
/** Folds updates into the value of a channel: the state's reducers, without a runtime. */
export function reduce(channel: string, input: ReduceInput | JsonText): unknown;
export function reduceText(channel: JsonText, input: ReduceInput | JsonText): string;
/** Brings messages into canonical form. */
export function convertMessages(input: ConvertInput | JsonText): ConvertAnswer;
export function convertMessagesText(input: ConvertInput | JsonText): string;
/**
 * Tells what makes the agent of one descriptor another than that of the other. Each is what `Assembly.descriptor` answered, now
 * or in another version.
 */
export function diffDescriptors(pair: DescriptorPair | JsonText): DescriptorDiff;
export function diffDescriptorsText(pair: DescriptorPair | JsonText): string;
/** Draws the agent of a descriptor as a Mermaid flowchart. */
export function drawDescriptor(descriptor: AssemblyDescriptor | JsonText): string;
export function drawDescriptorText(descriptor: AssemblyDescriptor | JsonText): string;

declare const fawn: {
  Runtime: typeof Runtime;
  Subagents: typeof Subagents;
  Assembly: typeof Assembly;
  Thread: typeof Thread;
  Queue: typeof Queue;
  Run: typeof Run;
  FawnEvent: typeof FawnEvent;
  FawnError: typeof FawnError;
  version: typeof version;
  abiVersion: typeof abiVersion;
  statusName: typeof statusName;
  describe: typeof describe;
  describeText: typeof describeText;
  reduce: typeof reduce;
  reduceText: typeof reduceText;
  convertMessages: typeof convertMessages;
  convertMessagesText: typeof convertMessagesText;
  diffDescriptors: typeof diffDescriptors;
  diffDescriptorsText: typeof diffDescriptorsText;
  drawDescriptor: typeof drawDescriptor;
  drawDescriptorText: typeof drawDescriptorText;
};
export default fawn;
