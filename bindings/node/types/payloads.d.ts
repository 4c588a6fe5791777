// The payloads of fawn: what goes in as JSON and comes out as JSON.
//
// Written by generate.mjs from include/schema; change the schemas instead. Objects that come out may gain members, and events
// types, in later versions.

/** Input of fawn_assembly_new. */
export type AssemblyConfig = {
  /** Which factory composes the agent. Default `direct`. */
  factory?: Factory;
  /** The model. */
  model: ModelRef;
  /** System text, as it is. */
  system_prompt?: string | null;
  /** Tools that the host runs. */
  tools?: HostToolConfig[];
  /** Steps of a run unless the run says otherwise, 1 to 1000. Default 100. */
  recursion_limit?: number | null;
  [yours: `x-${string}`]: unknown;
};

/** What an assembly turned out to be: answer of fawn_assembly_descriptor, input of fawn_descriptor_diagram. */
export type AssemblyDescriptor = {
  /** Always `deerflow`: agents are described in the reference's terms. */
  namespace: string;
  /** `bootstrap`, the name of the custom agent, or `lead-agent`. */
  agent_name: string;
  /** The model that the request asked for, else the one of the custom agent, else null. Not part of the fingerprint. */
  requested_model: string | null;
  /** The model that works, after unknown names and authorization were seen to. */
  effective_model: string;
  /**
   * `provider`, then every setting of the model's profile with those of the agent laid over; without names,
   * descriptions, prices, and whatever has the name of a credential. Counts of tokens are there.
   */
  model_parameters: Record<string, unknown>;
  /** Whether it thinks, after the model's abilities were seen to. */
  thinking_enabled: boolean;
  /** How hard it thinks: text, or null. */
  reasoning_effort: unknown;
  /** Hash of the system text. */
  base_prompt_hash: string;
  /**
   * Hash of the text that the model is given in the human data channel when the prompt is rendered; null when there is none.
   * Part of the fingerprint when it is not null.
   */
  base_data_hash: string | null;
  /** The tools that are left after authorization, in the order in which they are bound; then those of each middleware. */
  tools: ToolDescriptor[];
  /** The chain, outermost first. */
  middlewares: MiddlewareDescriptor[];
  /** Names of the tools whose schemas are held back until they are asked for, sorted. */
  deferred_tool_names: string[];
  /** Names of the skills that the agent may find, in catalog order. */
  enabled_skills: string[];
  /** The catalog's entries, in catalog order. The fingerprint has them by way of `skill_catalog_hash`. */
  skills: SkillDescriptor[];
  /** The policies that hold for its runs. */
  effective_policies: EffectivePolicies;
  /** What was built. Not part of the fingerprint: deploying again makes no other agent. */
  build: BuildFacts;
  /**
   * Hash of what makes the agent this one. Tools, deferred tools and skills count whatever their order; middleware counts
   * in its order.
   */
  fingerprint: string;
};

/** How a key is sent. */
export type AuthStyle = "bearer" | "x-api-key" | "api-key";

/** The kind of a store. */
export type Backend = "memory" | "sqlite" | "postgres";

/** What was built (AD-22). `unknown` for what nobody stated. */
export type BuildFacts = {
  /** Version of this library. */
  package_version: string;
  /** Digest of the image that the host runs in. */
  image_digest: string;
  /** Commit that the host was built from. */
  git_commit: string;
};

/** Input of fawn_call_finish. */
export type CallAnswer = {
  /** The answer. A tool: its content (text, content blocks, or any JSON), or an object with content and, if wanted, artifact (for the host, not the model), update (channel writes) and end_run. A model: text, or an object with content, tool_calls [{name, args, id}], usage, reasoning, response_metadata. */
  ok?: unknown;
  /** It could not be done; the text is for the model. */
  error?: string | {
    message: string;
    /** For a model: whether asking again may help. Default false. */
    retryable?: boolean | null;
    /** For a model: how long to wait before asking again. */
    retry_after_ms?: number | null;
  };
  [yours: `x-${string}`]: unknown;
};

/** Input of fawn_call_emit. */
export type CallPart = unknown;

/** A step is stored. */
export type CheckpointData = {
  checkpoint_id: string;
  parent_checkpoint_id: string | null;
  /** -1 for the input of a new thread, then counting. */
  step: number;
  /** What made it: the input of a run, a step of a run, an update from outside, a branch from an older checkpoint; more may come. */
  source: "input" | "loop" | "update" | "fork" | (string & {});
};

/** A step is stored. */
export type CheckpointEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  type: "checkpoint";
  /** When. */
  at: string;
  data: CheckpointData;
};

/** Answer of fawn_messages_convert. */
export type ConvertAnswer = Message[];

/** Input of fawn_messages_convert. */
export type ConvertInput = {
  /** One message or a list of them, in any accepted form. */
  messages: unknown;
  [yours: `x-${string}`]: unknown;
};

/** What a tool emitted while it ran. */
export type CustomData = {
  /** The model's id of the call. */
  tool_call_id: string;
  /** As the host gave it to fawn_call_emit. */
  value: unknown;
};

/** What a tool emitted while it ran. */
export type CustomEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  type: "custom";
  /** When. */
  at: string;
  data: CustomData;
};

/** Where threads are kept. */
export type DatabaseConfig = {
  /** The kind of store. Default `memory`. */
  backend?: Backend;
  /** `sqlite`: the folder that holds `fawn.db`. It must exist. */
  sqlite_dir?: string | null;
  /** `sqlite`: the file itself, instead of `sqlite_dir`. */
  sqlite_path?: string | null;
  [yours: `x-${string}`]: unknown;
};

/** Tools whose schemas are held back. */
export type DeferredToolPolicies = {
  /** Whether there are any. */
  enabled: boolean;
  /** Hash of their catalog; null when there are none. */
  catalog_hash: string | null;
};

/** One change. */
export type DescriptorChange = {
  /** What kind of change. */
  what: DescriptorChangeKind;
  /** Name of the tool, middleware, skill, setting or policy; null where there is only one of its kind. */
  name: string | null;
  /** JSON pointer into the later descriptor; into the earlier one for what is gone. */
  path: string;
  /** What stood there; null when nothing did. */
  before: unknown;
  /** What stands there now; null when nothing does. */
  after: unknown;
  /** Whether it is part of the fingerprint. */
  identity: boolean;
  /** The change in one sentence. */
  text: string;
};

/** What kind of change. */
export type DescriptorChangeKind = "agent_changed" | "model_changed" | "requested_model_changed" | "model_parameter_added" | "model_parameter_removed" | "model_parameter_changed" | "thinking_changed" | "reasoning_effort_changed" | "prompt_changed" | "data_changed" | "tool_added" | "tool_removed" | "tool_changed" | "tools_reordered" | "middleware_added" | "middleware_removed" | "middleware_moved" | "middleware_changed" | "deferred_tool_added" | "deferred_tool_removed" | "skill_added" | "skill_removed" | "skill_changed" | "skills_reordered" | "skill_catalog_changed" | "policy_added" | "policy_removed" | "policy_changed" | "build_changed" | "other_changed";

/** Answer of fawn_descriptor_diagram. */
export type DescriptorDiagram = {
  /** A flowchart in Mermaid's language. */
  mermaid: string;
};

/** Answer of fawn_descriptor_diff. */
export type DescriptorDiff = {
  /**
   * Whether both are one agent: their fingerprints are equal. There may be changes all the same, none of which is part of
   * the fingerprint.
   */
  same: boolean;
  /** The fingerprints, computed from what the descriptors say, whatever fingerprint they state. */
  fingerprints: DescriptorFingerprints;
  /**
   * The changes: agent, model, prompt, tools, middleware, skills, policies, build; in each the order of `after`, then what
   * is gone. At most 10000.
   */
  changes: DescriptorChange[];
  /** How many changes there are beyond those listed. */
  left_out: number;
  /** What is odd about the descriptors, in words: a fingerprint that does not belong to the facts it is stated with. */
  warnings: string[];
  /** All of it in words, a sentence per change. */
  text: string;
};

/** A fingerprint of each. */
export type DescriptorFingerprints = {
  /** Of the earlier descriptor. */
  before: string;
  /** Of the later one. */
  after: string;
};

/** Input of fawn_descriptor_diff. */
export type DescriptorPair = {
  /**
   * The earlier one (schema "assembly_descriptor"). It may be another version's: members that are not known here may stand in
   * it, and `skills`, `base_data_hash`, `requested_model`, `build`, `hooks` and `fingerprint` may be missing.
   */
  before: Record<string, unknown>;
  /** The later one, likewise. */
  after: Record<string, unknown>;
  [yours: `x-${string}`]: unknown;
};

/** When checkpoints are written. */
export type Durability = "sync" | "async" | "exit";

/** The policies of a lead agent (AD-21). */
export type EffectivePolicies = {
  /** Whether it is the agent that makes agents. */
  bootstrap: boolean;
  /** Whether nobody is there to be asked. */
  non_interactive: boolean;
  /** `is_plan_mode` as it was given. */
  plan_mode: unknown;
  /** Delegation. */
  subagents: SubagentPolicies;
  /** Tools whose schemas are held back. */
  deferred_tools: DeferredToolPolicies;
  /** Whether skills are found by name alone, and described when asked for. */
  deferred_skills: boolean;
  /** Steps of a run, or `framework-default`. */
  recursion_limit: unknown;
  /** Which prompt it is given: the one element that says a version. */
  prompt_template_id: string;
  /** Hash of the skill catalog, sorted by name. */
  skill_catalog_hash: string;
};

/** The error object: what a call with a negative status puts into its buffer, and what failed events carry. */
export type ErrorObject = {
  /** What kind of failure. The list is closed: new versions may add to it. */
  code: "argument" | "handle" | "not_utf8" | "abi" | "forked" | "panic" | "closed" | "wrong_thread" | "too_large" | "unsupported" | "json_syntax" | "json_depth" | "unknown_member" | "wrong_type" | "out_of_range" | "missing_member" | "unknown_variant" | "unknown_channel" | "conflict" | "null_write" | "message_incomplete" | "unknown_role" | "not_a_message" | "message_invalid" | "message_member" | "arguments_syntax" | "message_extra" | "unknown_message_id" | "sandbox_conflict" | "entry_member" | "entry_type" | "conflicting_writes" | "unknown_model" | "assembly_invalid" | "thread_busy" | "unknown_checkpoint" | "store" | "store_corrupt" | "thread_stale" | "recursion_limit" | "cancelled" | "middleware" | "no_queue" | "deadline_exceeded" | "queue_closed" | "behind" | "model_auth" | "model_request" | "model_rate_limit" | "model_server" | "model_connection" | "model_timeout" | "model_protocol" | "model_truncated" | "script_exhausted" | "model_host" | "internal";
  /** The status that the call returned; one per code. */
  status: number;
  /** What went wrong, in words, for a person. */
  message: string;
  /** JSON pointer into what the caller sent; absent when that is not at fault. */
  path?: string;
  /** Whether the same call may succeed later. */
  retryable: boolean;
  /** The HTTP status that a model endpoint answered with; absent when none did. */
  http_status?: number;
  /** The model endpoint's own short name for what went wrong, such as insufficient_quota; absent when it gave none. */
  provider_code?: string;
  /** What lay behind it, outermost first. */
  cause?: string[];
};

/** One event: fawn_queue_take answers a list of them. */
export type EventObject =
  | RunStartEvent
  | MessageDeltaEvent
  | ModelAttemptEvent
  | StreamResetEvent
  | UsageEvent
  | MessageEvent
  | UpdateEvent
  | ValuesEvent
  | CheckpointEvent
  | HostCallEvent
  | HostCallCancelledEvent
  | CustomEvent
  | GapEvent
  | LogEvent
  | RunEndEvent;

/** Which factory composes the agent. */
export type Factory = "direct" | "lead" | "lead_graph" | "custom";

/** A lossy queue dropped events of this run. */
export type GapData = {
  first_seq: number;
  last_seq: number;
  /** How many. */
  dropped: number;
};

/** A lossy queue dropped events of this run. */
export type GapEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  type: "gap";
  /** When. */
  at: string;
  data: GapData;
};

/** An answer to a host call is of no use any more. */
export type HostCallCancelledData = {
  call_id: number;
  /** cancelled, or the code of an error: deadline_exceeded, queue_closed, closed. */
  reason: string;
};

/** An answer to a host call is of no use any more. */
export type HostCallCancelledEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  type: "host_call_cancelled";
  /** When. */
  at: string;
  data: HostCallCancelledData;
};

/** A question to the host, to be answered by fawn_call_finish. */
export type HostCallData = {
  /** For fawn_call_emit and fawn_call_finish. */
  call_id: number;
  /** What is asked; new kinds may come. */
  kind: "tool" | "model" | (string & {});
  /** The tool or the model. */
  name: string;
  /** A tool: its arguments. A model: system, messages, tools, tool_choice. */
  args: Record<string, unknown>;
  /** The model's id of a tool call. */
  tool_call_id: string | null;
  /** How long the answer may take. */
  deadline_ms: number;
  /** The same whenever the same question is asked again, also after a restart. */
  idempotency_key: string;
};

/** A question to the host, to be answered by fawn_call_finish. */
export type HostCallEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  type: "host_call";
  /** When. */
  at: string;
  data: HostCallData;
};

/** A tool that the host runs. */
export type HostToolConfig = {
  /** Name, 1 to 64 characters of `A-Z a-z 0-9 _ -`, unique within the assembly. */
  name: string;
  /** What it does, for the model. */
  description?: string;
  /** JSON Schema of the arguments object. Default: an object without members. */
  parameters?: Record<string, unknown> | null;
  /** The group that agents choose it by (`tool_groups`). Default: none, and then it is there for every agent. */
  group?: string | null;
  /**
   * Where the tool comes from, when the host got it from an MCP server: what the model may see of it is then the
   * server's text and not the operator's.
   */
  mcp?: McpToolConfig | null;
  /** How long the host has for one call, in milliseconds. Default 600000. */
  deadline_ms?: number | null;
  /** Whether its answer ends the run when every call of the reply is such a call. */
  return_direct?: boolean;
  [yours: `x-${string}`]: unknown;
};

/** Where ids come from: random, or counting up, from 1 or from a number. */
export type IdsConfig = "random" | "sequential" | {
  sequential_from: number;
  [yours: `x-${string}`]: unknown;
};

/** A warning, to queues that subscribed to "log". */
export type LogData = {
  level: "warning" | (string & {});
  /** Stable, for programs. */
  code: string;
  /** For a person. */
  message: string;
  /** The run that it is about. */
  run_id?: string;
  /** The thread of that run. */
  thread_id?: string;
};

/** A warning, to queues that subscribed to "log". */
export type LogEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  type: "log";
  /** When. */
  at: string;
  data: LogData;
};

/** When a tool of an MCP server is preferred. */
export type McpRoutingConfig = {
  /** Whether it is preferred at all. Default `off`. */
  mode?: McpRoutingMode;
  /** Which of several comes first: the highest; taken as 0 to 100. Default 0. */
  priority?: number;
  /** Words of a request that speak for the tool. */
  keywords?: string[];
  [yours: `x-${string}`]: unknown;
};

/** Whether a tool of an MCP server is preferred. */
export type McpRoutingMode = "off" | "prefer";

/** An MCP server behind a host tool. */
export type McpToolConfig = {
  /** Name of the server. */
  server?: string | null;
  /** How the host reaches it, such as `stdio` or `http`. */
  transport?: string | null;
  /** When the model is told to prefer the tool (MCP-7, TL-17). Default: never. */
  routing?: McpRoutingConfig | null;
  [yours: `x-${string}`]: unknown;
};

/** A message in canonical form, the layout of LangChain's model_dump. Each class has members of its own besides these. */
export type Message = {
  /** human, ai, tool, system, and the classes of chunks. */
  type: string;
  /** Text, or a list of content blocks. */
  content: string | Array<string | Record<string, unknown>>;
  id?: string | null;
  name?: string | null;
  additional_kwargs?: Record<string, unknown>;
  response_metadata?: Record<string, unknown>;
  /** Of ai messages. */
  tool_calls?: Array<{
    name: string;
    args: Record<string, unknown>;
    id?: string | null;
    type?: string;
  }>;
  /** Of tool messages: the call that is answered. */
  tool_call_id?: string;
  /** Of ai messages: tokens. */
  usage_metadata?: Record<string, unknown> | null;
};

/** A whole message that a node wrote; it is stored. */
export type MessageData = {
  /** Who wrote it. */
  node: string;
  /** A message in canonical form, the layout of LangChain's model_dump. Each class has members of its own besides these. */
  message: Message;
};

/** A piece of a reply, while it streams: text, reasoning or tool_call. */
export type MessageDeltaData = {
  /** The message that it becomes a part of. */
  message_id: string;
  /** A piece of the text. */
  text?: string;
  /** A piece of the reasoning. */
  reasoning?: string;
  /** A piece of a tool call. */
  tool_call?: {
    /** Which call of the reply. */
    index: number;
    id: string | null;
    name: string | null;
    /** A piece of the JSON text of the arguments. */
    args: string;
  };
};

/** A piece of a reply, while it streams: text, reasoning or tool_call. */
export type MessageDeltaEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  type: "message_delta";
  /** When. */
  at: string;
  data: MessageDeltaData;
};

/** A whole message that a node wrote; it is stored. */
export type MessageEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  type: "message";
  /** When. */
  at: string;
  data: MessageData;
};

/** One middleware of the chain. */
export type MiddlewareDescriptor = {
  /** Name. */
  name: string;
  /** Where its code is. */
  module: string;
  /** Its settings, as it declares them. */
  policy_parameters: Record<string, unknown>;
  /** The extension that brought it; null for those of this library. */
  extension: string | null;
  /**
   * The hooks it has: before_agent, before_model, after_model, after_agent, wrap_model_call, wrap_tool_call. Not part of
   * the fingerprint.
   */
  hooks: string[];
};

/** A model, told apart by `provider`. */
export type Model = {
  provider: "scripted";
  /** The replies, in order. */
  replies?: ScriptedReply[] | null;
  /** A JSON file that holds the list of replies, instead of `replies`. It is read once. */
  file?: string | null;
  /** Whether the list starts again after its last reply. Default false: the run fails there. */
  repeat?: boolean;
  /** Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients. */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000. */
  retry_cap_delay_ms?: number;
  /**
   * The longest wait that the endpoint may ask for, in milliseconds. When it asks for more, the model is not tried again
   * at all: to come earlier would be in vain. Default 120,000.
   */
  max_retry_after_ms?: number;
  /**
   * No attempt begins later than this after the first began, in milliseconds; a wait that would end later is not begun.
   * Default 1,800,000.
   */
  retry_deadline_ms?: number;
  /**
   * Whether to go on after a part of the reply has reached the host. A `stream_reset` event then says that what was
   * streamed of the message is void. Default false: the run fails, and keeps the part.
   */
  retry_after_partial?: boolean;
  /** Models that are asked, in order, once this one has failed for good: names of the runtime's models, or models in place. Whatever the failure was, as long as nothing of a reply has reached the host or retry_after_partial is set. A fallback's own fallbacks follow it. */
  fallbacks?: ModelRef[];
  [yours: `x-${string}`]: unknown;
} | {
  provider: "openai";
  /** Name of the model, as the endpoint knows it. */
  model: string;
  /** Where the endpoint is; `/chat/completions` is added to its path. A query stays in place. */
  base_url?: string;
  /** The key. A literal, or `$NAME` for a variable of the environment. Without it no such header is sent. */
  api_key?: string | null;
  /** How the key is sent. Default `bearer`. */
  auth?: AuthStyle;
  /** Added to the address as `api-version=…`, for endpoints that want it there. */
  api_version?: string | null;
  /** More headers, by name. Values are literals or `$NAME` and are treated as secrets. */
  headers?: Record<string, string>;
  /** Whether the reply is streamed. Default true. */
  stream?: boolean;
  /** Longest wait for a connection, TLS included, in milliseconds. Default 10,000. */
  connect_timeout_ms?: number;
  /** Longest wait from sending the request to the head of the answer, in milliseconds. Default 600,000. */
  first_byte_timeout_ms?: number;
  /** Longest silence inside an answer, in milliseconds. Default 300,000. */
  between_bytes_timeout_ms?: number;
  /**
   * Longest time for the whole call, in milliseconds, without the time that the listener holds it back. Default
   * 1,800,000.
   */
  timeout_ms?: number;
  /** TLS settings for https. */
  tls?: TlsConfig | null;
  /**
   * URL of an HTTP proxy (`http://host:port`), literal or `$NAME`. Proxies that the environment names are not
   * used unless they are named here, as in `"$HTTPS_PROXY"`.
   */
  proxy?: string | null;
  /** Sampling temperature. */
  temperature?: number | null;
  /** Most tokens that the model may write, sent as `max_tokens`. */
  max_tokens?: number | null;
  /** The same, sent as `max_completion_tokens`: models that reason want it under this name, and count reasoning. */
  max_completion_tokens?: number | null;
  /** Nucleus sampling: the probability mass to draw from. */
  top_p?: number | null;
  /** Seed for endpoints that can repeat a sampling. */
  seed?: number | null;
  /** How long the model may think, in the endpoint's own words (`"low"`, `"high"`, …). */
  reasoning_effort?: string | null;
  /** Whether the reasoning of earlier replies goes back to the model as `reasoning_content`. Default false. */
  replay_reasoning?: boolean;
  /**
   * More members of the request body. Members that are set elsewhere are refused; `stream_options` replaces
   * ours, and null there leaves it out.
   */
  extra_body?: Record<string, unknown>;
  /** Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients. */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000. */
  retry_cap_delay_ms?: number;
  /**
   * The longest wait that the endpoint may ask for, in milliseconds. When it asks for more, the model is not tried again
   * at all: to come earlier would be in vain. Default 120,000.
   */
  max_retry_after_ms?: number;
  /**
   * No attempt begins later than this after the first began, in milliseconds; a wait that would end later is not begun.
   * Default 1,800,000.
   */
  retry_deadline_ms?: number;
  /**
   * Whether to go on after a part of the reply has reached the host. A `stream_reset` event then says that what was
   * streamed of the message is void. Default false: the run fails, and keeps the part.
   */
  retry_after_partial?: boolean;
  /** Models that are asked, in order, once this one has failed for good: names of the runtime's models, or models in place. Whatever the failure was, as long as nothing of a reply has reached the host or retry_after_partial is set. A fallback's own fallbacks follow it. */
  fallbacks?: ModelRef[];
  [yours: `x-${string}`]: unknown;
} | {
  provider: "anthropic";
  /** Name of the model, as the endpoint knows it. */
  model: string;
  /**
   * Where the endpoint is; `/v1/messages` is added to its path, or `/messages` where the path ends with `/v1`. A
   * query stays in place.
   */
  base_url?: string;
  /** The key. A literal, or `$NAME` for a variable of the environment. Without it no such header is sent. */
  api_key?: string | null;
  /** How the key is sent. Default `x-api-key`. */
  auth?: AuthStyle;
  /** Sent as `anthropic-version`. Default `2023-06-01`. */
  api_version?: string;
  /** More headers, by name, such as `anthropic-beta`. Values are literals or `$NAME` and are treated as secrets. */
  headers?: Record<string, string>;
  /** Whether the reply is streamed. Default true. */
  stream?: boolean;
  /** Longest wait for a connection, TLS included, in milliseconds. Default 10,000. */
  connect_timeout_ms?: number;
  /** Longest wait from sending the request to the head of the answer, in milliseconds. Default 600,000. */
  first_byte_timeout_ms?: number;
  /** Longest silence inside an answer, in milliseconds. Default 300,000. */
  between_bytes_timeout_ms?: number;
  /**
   * Longest time for the whole call, in milliseconds, without the time that the listener holds it back. Default
   * 1,800,000.
   */
  timeout_ms?: number;
  /** TLS settings for https. */
  tls?: TlsConfig | null;
  /**
   * URL of an HTTP proxy (`http://host:port`), literal or `$NAME`. Proxies that the environment names are not
   * used unless they are named here, as in `"$HTTPS_PROXY"`.
   */
  proxy?: string | null;
  /**
   * Most tokens that the model may write, thinking included. Default: what the model is known to allow, else 4096,
   * beside a `budget_tokens` that is larger.
   */
  max_tokens?: number | null;
  /** Sampling temperature. */
  temperature?: number | null;
  /** Nucleus sampling: the probability mass to draw from. */
  top_p?: number | null;
  /** How many of the likeliest tokens to draw from. */
  top_k?: number | null;
  /** Texts at which the model stops. */
  stop_sequences?: string[];
  /**
   * How the model thinks, sent as given: `{"type":"enabled","budget_tokens":10000}`, `{"type":"adaptive"}`,
   * `{"type":"disabled"}`, or a form to come.
   */
  thinking?: Record<string, unknown> | null;
  /** How hard the model works, in the endpoint's own words; sent as `output_config.effort`. */
  reasoning_effort?: string | null;
  /** Whether the model may call several tools at once. Sent only when set. */
  parallel_tool_calls?: boolean | null;
  /** More members of the request body. Members that are set elsewhere are refused. */
  extra_body?: Record<string, unknown>;
  /** Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients. */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000. */
  retry_cap_delay_ms?: number;
  /**
   * The longest wait that the endpoint may ask for, in milliseconds. When it asks for more, the model is not tried again
   * at all: to come earlier would be in vain. Default 120,000.
   */
  max_retry_after_ms?: number;
  /**
   * No attempt begins later than this after the first began, in milliseconds; a wait that would end later is not begun.
   * Default 1,800,000.
   */
  retry_deadline_ms?: number;
  /**
   * Whether to go on after a part of the reply has reached the host. A `stream_reset` event then says that what was
   * streamed of the message is void. Default false: the run fails, and keeps the part.
   */
  retry_after_partial?: boolean;
  /** Models that are asked, in order, once this one has failed for good: names of the runtime's models, or models in place. Whatever the failure was, as long as nothing of a reply has reached the host or retry_after_partial is set. A fallback's own fallbacks follow it. */
  fallbacks?: ModelRef[];
  [yours: `x-${string}`]: unknown;
} | {
  provider: "host";
  /** Told to the host in each call, so that one host can answer several models. */
  model?: string | null;
  /** How long the host has for one reply, in milliseconds. Default 600000. */
  deadline_ms?: number | null;
  /** Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients. */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000. */
  retry_cap_delay_ms?: number;
  /**
   * The longest wait that the endpoint may ask for, in milliseconds. When it asks for more, the model is not tried again
   * at all: to come earlier would be in vain. Default 120,000.
   */
  max_retry_after_ms?: number;
  /**
   * No attempt begins later than this after the first began, in milliseconds; a wait that would end later is not begun.
   * Default 1,800,000.
   */
  retry_deadline_ms?: number;
  /**
   * Whether to go on after a part of the reply has reached the host. A `stream_reset` event then says that what was
   * streamed of the message is void. Default false: the run fails, and keeps the part.
   */
  retry_after_partial?: boolean;
  /** Models that are asked, in order, once this one has failed for good: names of the runtime's models, or models in place. Whatever the failure was, as long as nothing of a reply has reached the host or retry_after_partial is set. A fallback's own fallbacks follow it. */
  fallbacks?: ModelRef[];
  [yours: `x-${string}`]: unknown;
};

/** An attempt of a model call failed. One that succeeds has no such event: its message tells. */
export type ModelAttemptData = {
  /** The message that was asked for; null when a middleware asked. */
  message_id: string | null;
  /** Its name, else what its configuration says under model, else its provider. */
  model: string;
  /** Counted from 1 for each model. */
  attempt: number;
  /** How many this model is given. */
  max_attempts: number;
  /** An error object: why it failed. */
  error: Record<string, unknown>;
  /** What follows: the same model again, the next one, or the end of the call. */
  next: "retry" | "fallback" | "none" | (string & {});
  /** The wait before a retry. */
  wait_ms: number | null;
  /** The model of a fallback. */
  next_model: string | null;
};

/** An attempt of a model call failed. One that succeeds has no such event: its message tells. */
export type ModelAttemptEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  type: "model_attempt";
  /** When. */
  at: string;
  data: ModelAttemptData;
};

/** A model: part of a runtime_config or an assembly_config. */
export type ModelConfig = {
  provider: "scripted";
  /** The replies, in order. */
  replies?: ScriptedReply[] | null;
  /** A JSON file that holds the list of replies, instead of `replies`. It is read once. */
  file?: string | null;
  /** Whether the list starts again after its last reply. Default false: the run fails there. */
  repeat?: boolean;
  /** Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients. */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000. */
  retry_cap_delay_ms?: number;
  /**
   * The longest wait that the endpoint may ask for, in milliseconds. When it asks for more, the model is not tried again
   * at all: to come earlier would be in vain. Default 120,000.
   */
  max_retry_after_ms?: number;
  /**
   * No attempt begins later than this after the first began, in milliseconds; a wait that would end later is not begun.
   * Default 1,800,000.
   */
  retry_deadline_ms?: number;
  /**
   * Whether to go on after a part of the reply has reached the host. A `stream_reset` event then says that what was
   * streamed of the message is void. Default false: the run fails, and keeps the part.
   */
  retry_after_partial?: boolean;
  /** Models that are asked, in order, once this one has failed for good: names of the runtime's models, or models in place. Whatever the failure was, as long as nothing of a reply has reached the host or retry_after_partial is set. A fallback's own fallbacks follow it. */
  fallbacks?: ModelConfigModelRef[];
  [yours: `x-${string}`]: unknown;
} | {
  provider: "openai";
  /** Name of the model, as the endpoint knows it. */
  model: string;
  /** Where the endpoint is; `/chat/completions` is added to its path. A query stays in place. */
  base_url?: string;
  /** The key. A literal, or `$NAME` for a variable of the environment. Without it no such header is sent. */
  api_key?: string | null;
  /** How the key is sent. Default `bearer`. */
  auth?: AuthStyle;
  /** Added to the address as `api-version=…`, for endpoints that want it there. */
  api_version?: string | null;
  /** More headers, by name. Values are literals or `$NAME` and are treated as secrets. */
  headers?: Record<string, string>;
  /** Whether the reply is streamed. Default true. */
  stream?: boolean;
  /** Longest wait for a connection, TLS included, in milliseconds. Default 10,000. */
  connect_timeout_ms?: number;
  /** Longest wait from sending the request to the head of the answer, in milliseconds. Default 600,000. */
  first_byte_timeout_ms?: number;
  /** Longest silence inside an answer, in milliseconds. Default 300,000. */
  between_bytes_timeout_ms?: number;
  /**
   * Longest time for the whole call, in milliseconds, without the time that the listener holds it back. Default
   * 1,800,000.
   */
  timeout_ms?: number;
  /** TLS settings for https. */
  tls?: TlsConfig | null;
  /**
   * URL of an HTTP proxy (`http://host:port`), literal or `$NAME`. Proxies that the environment names are not
   * used unless they are named here, as in `"$HTTPS_PROXY"`.
   */
  proxy?: string | null;
  /** Sampling temperature. */
  temperature?: number | null;
  /** Most tokens that the model may write, sent as `max_tokens`. */
  max_tokens?: number | null;
  /** The same, sent as `max_completion_tokens`: models that reason want it under this name, and count reasoning. */
  max_completion_tokens?: number | null;
  /** Nucleus sampling: the probability mass to draw from. */
  top_p?: number | null;
  /** Seed for endpoints that can repeat a sampling. */
  seed?: number | null;
  /** How long the model may think, in the endpoint's own words (`"low"`, `"high"`, …). */
  reasoning_effort?: string | null;
  /** Whether the reasoning of earlier replies goes back to the model as `reasoning_content`. Default false. */
  replay_reasoning?: boolean;
  /**
   * More members of the request body. Members that are set elsewhere are refused; `stream_options` replaces
   * ours, and null there leaves it out.
   */
  extra_body?: Record<string, unknown>;
  /** Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients. */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000. */
  retry_cap_delay_ms?: number;
  /**
   * The longest wait that the endpoint may ask for, in milliseconds. When it asks for more, the model is not tried again
   * at all: to come earlier would be in vain. Default 120,000.
   */
  max_retry_after_ms?: number;
  /**
   * No attempt begins later than this after the first began, in milliseconds; a wait that would end later is not begun.
   * Default 1,800,000.
   */
  retry_deadline_ms?: number;
  /**
   * Whether to go on after a part of the reply has reached the host. A `stream_reset` event then says that what was
   * streamed of the message is void. Default false: the run fails, and keeps the part.
   */
  retry_after_partial?: boolean;
  /** Models that are asked, in order, once this one has failed for good: names of the runtime's models, or models in place. Whatever the failure was, as long as nothing of a reply has reached the host or retry_after_partial is set. A fallback's own fallbacks follow it. */
  fallbacks?: ModelConfigModelRef[];
  [yours: `x-${string}`]: unknown;
} | {
  provider: "anthropic";
  /** Name of the model, as the endpoint knows it. */
  model: string;
  /**
   * Where the endpoint is; `/v1/messages` is added to its path, or `/messages` where the path ends with `/v1`. A
   * query stays in place.
   */
  base_url?: string;
  /** The key. A literal, or `$NAME` for a variable of the environment. Without it no such header is sent. */
  api_key?: string | null;
  /** How the key is sent. Default `x-api-key`. */
  auth?: AuthStyle;
  /** Sent as `anthropic-version`. Default `2023-06-01`. */
  api_version?: string;
  /** More headers, by name, such as `anthropic-beta`. Values are literals or `$NAME` and are treated as secrets. */
  headers?: Record<string, string>;
  /** Whether the reply is streamed. Default true. */
  stream?: boolean;
  /** Longest wait for a connection, TLS included, in milliseconds. Default 10,000. */
  connect_timeout_ms?: number;
  /** Longest wait from sending the request to the head of the answer, in milliseconds. Default 600,000. */
  first_byte_timeout_ms?: number;
  /** Longest silence inside an answer, in milliseconds. Default 300,000. */
  between_bytes_timeout_ms?: number;
  /**
   * Longest time for the whole call, in milliseconds, without the time that the listener holds it back. Default
   * 1,800,000.
   */
  timeout_ms?: number;
  /** TLS settings for https. */
  tls?: TlsConfig | null;
  /**
   * URL of an HTTP proxy (`http://host:port`), literal or `$NAME`. Proxies that the environment names are not
   * used unless they are named here, as in `"$HTTPS_PROXY"`.
   */
  proxy?: string | null;
  /**
   * Most tokens that the model may write, thinking included. Default: what the model is known to allow, else 4096,
   * beside a `budget_tokens` that is larger.
   */
  max_tokens?: number | null;
  /** Sampling temperature. */
  temperature?: number | null;
  /** Nucleus sampling: the probability mass to draw from. */
  top_p?: number | null;
  /** How many of the likeliest tokens to draw from. */
  top_k?: number | null;
  /** Texts at which the model stops. */
  stop_sequences?: string[];
  /**
   * How the model thinks, sent as given: `{"type":"enabled","budget_tokens":10000}`, `{"type":"adaptive"}`,
   * `{"type":"disabled"}`, or a form to come.
   */
  thinking?: Record<string, unknown> | null;
  /** How hard the model works, in the endpoint's own words; sent as `output_config.effort`. */
  reasoning_effort?: string | null;
  /** Whether the model may call several tools at once. Sent only when set. */
  parallel_tool_calls?: boolean | null;
  /** More members of the request body. Members that are set elsewhere are refused. */
  extra_body?: Record<string, unknown>;
  /** Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients. */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000. */
  retry_cap_delay_ms?: number;
  /**
   * The longest wait that the endpoint may ask for, in milliseconds. When it asks for more, the model is not tried again
   * at all: to come earlier would be in vain. Default 120,000.
   */
  max_retry_after_ms?: number;
  /**
   * No attempt begins later than this after the first began, in milliseconds; a wait that would end later is not begun.
   * Default 1,800,000.
   */
  retry_deadline_ms?: number;
  /**
   * Whether to go on after a part of the reply has reached the host. A `stream_reset` event then says that what was
   * streamed of the message is void. Default false: the run fails, and keeps the part.
   */
  retry_after_partial?: boolean;
  /** Models that are asked, in order, once this one has failed for good: names of the runtime's models, or models in place. Whatever the failure was, as long as nothing of a reply has reached the host or retry_after_partial is set. A fallback's own fallbacks follow it. */
  fallbacks?: ModelConfigModelRef[];
  [yours: `x-${string}`]: unknown;
} | {
  provider: "host";
  /** Told to the host in each call, so that one host can answer several models. */
  model?: string | null;
  /** How long the host has for one reply, in milliseconds. Default 600000. */
  deadline_ms?: number | null;
  /** Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients. */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000. */
  retry_cap_delay_ms?: number;
  /**
   * The longest wait that the endpoint may ask for, in milliseconds. When it asks for more, the model is not tried again
   * at all: to come earlier would be in vain. Default 120,000.
   */
  max_retry_after_ms?: number;
  /**
   * No attempt begins later than this after the first began, in milliseconds; a wait that would end later is not begun.
   * Default 1,800,000.
   */
  retry_deadline_ms?: number;
  /**
   * Whether to go on after a part of the reply has reached the host. A `stream_reset` event then says that what was
   * streamed of the message is void. Default false: the run fails, and keeps the part.
   */
  retry_after_partial?: boolean;
  /** Models that are asked, in order, once this one has failed for good: names of the runtime's models, or models in place. Whatever the failure was, as long as nothing of a reply has reached the host or retry_after_partial is set. A fallback's own fallbacks follow it. */
  fallbacks?: ModelConfigModelRef[];
  [yours: `x-${string}`]: unknown;
};

/** A model given in place, or the name of one of the runtime's. */
export type ModelConfigModelRef = string | ModelConfig;

/** The ways a model call can fail, by the names of their error codes. */
export type ModelFault = "model_auth" | "model_request" | "model_rate_limit" | "model_server" | "model_connection" | "model_timeout" | "model_protocol" | "model_truncated" | "model_host";

/** A model given in place, or the name of one of the runtime's. */
export type ModelRef = string | Model;

/** What a new run does about one that is in flight on its thread. */
export type MultitaskStrategy = "reject" | "interrupt" | "rollback";

/** A model configuration with the name that assemblies use. */
export type NamedModel = {
  provider: "scripted";
  /** The replies, in order. */
  replies?: ScriptedReply[] | null;
  /** A JSON file that holds the list of replies, instead of `replies`. It is read once. */
  file?: string | null;
  /** Whether the list starts again after its last reply. Default false: the run fails there. */
  repeat?: boolean;
  /** Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients. */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000. */
  retry_cap_delay_ms?: number;
  /**
   * The longest wait that the endpoint may ask for, in milliseconds. When it asks for more, the model is not tried again
   * at all: to come earlier would be in vain. Default 120,000.
   */
  max_retry_after_ms?: number;
  /**
   * No attempt begins later than this after the first began, in milliseconds; a wait that would end later is not begun.
   * Default 1,800,000.
   */
  retry_deadline_ms?: number;
  /**
   * Whether to go on after a part of the reply has reached the host. A `stream_reset` event then says that what was
   * streamed of the message is void. Default false: the run fails, and keeps the part.
   */
  retry_after_partial?: boolean;
  /** Models that are asked, in order, once this one has failed for good: names of the runtime's models, or models in place. Whatever the failure was, as long as nothing of a reply has reached the host or retry_after_partial is set. A fallback's own fallbacks follow it. */
  fallbacks?: ModelRef[];
  /** What assemblies call it. */
  name: string;
  /** Whether the model can think before it answers. Default false. */
  supports_thinking?: boolean;
  /** Whether the model takes `reasoning_effort`. Default false: a lead agent then never sends it. */
  supports_reasoning_effort?: boolean;
  /** Whether the model can look at images. Default false. */
  supports_vision?: boolean;
  /** Settings of the provider that replace its own while a lead agent thinks. */
  when_thinking_enabled?: Record<string, unknown> | null;
  /**
   * Settings of the provider that replace its own while a lead agent does not think. Without it they are derived from
   * `when_thinking_enabled`.
   */
  when_thinking_disabled?: Record<string, unknown> | null;
  [yours: `x-${string}`]: unknown;
} | {
  provider: "openai";
  /** Name of the model, as the endpoint knows it. */
  model: string;
  /** Where the endpoint is; `/chat/completions` is added to its path. A query stays in place. */
  base_url?: string;
  /** The key. A literal, or `$NAME` for a variable of the environment. Without it no such header is sent. */
  api_key?: string | null;
  /** How the key is sent. Default `bearer`. */
  auth?: AuthStyle;
  /** Added to the address as `api-version=…`, for endpoints that want it there. */
  api_version?: string | null;
  /** More headers, by name. Values are literals or `$NAME` and are treated as secrets. */
  headers?: Record<string, string>;
  /** Whether the reply is streamed. Default true. */
  stream?: boolean;
  /** Longest wait for a connection, TLS included, in milliseconds. Default 10,000. */
  connect_timeout_ms?: number;
  /** Longest wait from sending the request to the head of the answer, in milliseconds. Default 600,000. */
  first_byte_timeout_ms?: number;
  /** Longest silence inside an answer, in milliseconds. Default 300,000. */
  between_bytes_timeout_ms?: number;
  /**
   * Longest time for the whole call, in milliseconds, without the time that the listener holds it back. Default
   * 1,800,000.
   */
  timeout_ms?: number;
  /** TLS settings for https. */
  tls?: TlsConfig | null;
  /**
   * URL of an HTTP proxy (`http://host:port`), literal or `$NAME`. Proxies that the environment names are not
   * used unless they are named here, as in `"$HTTPS_PROXY"`.
   */
  proxy?: string | null;
  /** Sampling temperature. */
  temperature?: number | null;
  /** Most tokens that the model may write, sent as `max_tokens`. */
  max_tokens?: number | null;
  /** The same, sent as `max_completion_tokens`: models that reason want it under this name, and count reasoning. */
  max_completion_tokens?: number | null;
  /** Nucleus sampling: the probability mass to draw from. */
  top_p?: number | null;
  /** Seed for endpoints that can repeat a sampling. */
  seed?: number | null;
  /** How long the model may think, in the endpoint's own words (`"low"`, `"high"`, …). */
  reasoning_effort?: string | null;
  /** Whether the reasoning of earlier replies goes back to the model as `reasoning_content`. Default false. */
  replay_reasoning?: boolean;
  /**
   * More members of the request body. Members that are set elsewhere are refused; `stream_options` replaces
   * ours, and null there leaves it out.
   */
  extra_body?: Record<string, unknown>;
  /** Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients. */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000. */
  retry_cap_delay_ms?: number;
  /**
   * The longest wait that the endpoint may ask for, in milliseconds. When it asks for more, the model is not tried again
   * at all: to come earlier would be in vain. Default 120,000.
   */
  max_retry_after_ms?: number;
  /**
   * No attempt begins later than this after the first began, in milliseconds; a wait that would end later is not begun.
   * Default 1,800,000.
   */
  retry_deadline_ms?: number;
  /**
   * Whether to go on after a part of the reply has reached the host. A `stream_reset` event then says that what was
   * streamed of the message is void. Default false: the run fails, and keeps the part.
   */
  retry_after_partial?: boolean;
  /** Models that are asked, in order, once this one has failed for good: names of the runtime's models, or models in place. Whatever the failure was, as long as nothing of a reply has reached the host or retry_after_partial is set. A fallback's own fallbacks follow it. */
  fallbacks?: ModelRef[];
  /** What assemblies call it. */
  name: string;
  /** Whether the model can think before it answers. Default false. */
  supports_thinking?: boolean;
  /** Whether the model takes `reasoning_effort`. Default false: a lead agent then never sends it. */
  supports_reasoning_effort?: boolean;
  /** Whether the model can look at images. Default false. */
  supports_vision?: boolean;
  /** Settings of the provider that replace its own while a lead agent thinks. */
  when_thinking_enabled?: Record<string, unknown> | null;
  /**
   * Settings of the provider that replace its own while a lead agent does not think. Without it they are derived from
   * `when_thinking_enabled`.
   */
  when_thinking_disabled?: Record<string, unknown> | null;
  [yours: `x-${string}`]: unknown;
} | {
  provider: "anthropic";
  /** Name of the model, as the endpoint knows it. */
  model: string;
  /**
   * Where the endpoint is; `/v1/messages` is added to its path, or `/messages` where the path ends with `/v1`. A
   * query stays in place.
   */
  base_url?: string;
  /** The key. A literal, or `$NAME` for a variable of the environment. Without it no such header is sent. */
  api_key?: string | null;
  /** How the key is sent. Default `x-api-key`. */
  auth?: AuthStyle;
  /** Sent as `anthropic-version`. Default `2023-06-01`. */
  api_version?: string;
  /** More headers, by name, such as `anthropic-beta`. Values are literals or `$NAME` and are treated as secrets. */
  headers?: Record<string, string>;
  /** Whether the reply is streamed. Default true. */
  stream?: boolean;
  /** Longest wait for a connection, TLS included, in milliseconds. Default 10,000. */
  connect_timeout_ms?: number;
  /** Longest wait from sending the request to the head of the answer, in milliseconds. Default 600,000. */
  first_byte_timeout_ms?: number;
  /** Longest silence inside an answer, in milliseconds. Default 300,000. */
  between_bytes_timeout_ms?: number;
  /**
   * Longest time for the whole call, in milliseconds, without the time that the listener holds it back. Default
   * 1,800,000.
   */
  timeout_ms?: number;
  /** TLS settings for https. */
  tls?: TlsConfig | null;
  /**
   * URL of an HTTP proxy (`http://host:port`), literal or `$NAME`. Proxies that the environment names are not
   * used unless they are named here, as in `"$HTTPS_PROXY"`.
   */
  proxy?: string | null;
  /**
   * Most tokens that the model may write, thinking included. Default: what the model is known to allow, else 4096,
   * beside a `budget_tokens` that is larger.
   */
  max_tokens?: number | null;
  /** Sampling temperature. */
  temperature?: number | null;
  /** Nucleus sampling: the probability mass to draw from. */
  top_p?: number | null;
  /** How many of the likeliest tokens to draw from. */
  top_k?: number | null;
  /** Texts at which the model stops. */
  stop_sequences?: string[];
  /**
   * How the model thinks, sent as given: `{"type":"enabled","budget_tokens":10000}`, `{"type":"adaptive"}`,
   * `{"type":"disabled"}`, or a form to come.
   */
  thinking?: Record<string, unknown> | null;
  /** How hard the model works, in the endpoint's own words; sent as `output_config.effort`. */
  reasoning_effort?: string | null;
  /** Whether the model may call several tools at once. Sent only when set. */
  parallel_tool_calls?: boolean | null;
  /** More members of the request body. Members that are set elsewhere are refused. */
  extra_body?: Record<string, unknown>;
  /** Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients. */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000. */
  retry_cap_delay_ms?: number;
  /**
   * The longest wait that the endpoint may ask for, in milliseconds. When it asks for more, the model is not tried again
   * at all: to come earlier would be in vain. Default 120,000.
   */
  max_retry_after_ms?: number;
  /**
   * No attempt begins later than this after the first began, in milliseconds; a wait that would end later is not begun.
   * Default 1,800,000.
   */
  retry_deadline_ms?: number;
  /**
   * Whether to go on after a part of the reply has reached the host. A `stream_reset` event then says that what was
   * streamed of the message is void. Default false: the run fails, and keeps the part.
   */
  retry_after_partial?: boolean;
  /** Models that are asked, in order, once this one has failed for good: names of the runtime's models, or models in place. Whatever the failure was, as long as nothing of a reply has reached the host or retry_after_partial is set. A fallback's own fallbacks follow it. */
  fallbacks?: ModelRef[];
  /** What assemblies call it. */
  name: string;
  /** Whether the model can think before it answers. Default false. */
  supports_thinking?: boolean;
  /** Whether the model takes `reasoning_effort`. Default false: a lead agent then never sends it. */
  supports_reasoning_effort?: boolean;
  /** Whether the model can look at images. Default false. */
  supports_vision?: boolean;
  /** Settings of the provider that replace its own while a lead agent thinks. */
  when_thinking_enabled?: Record<string, unknown> | null;
  /**
   * Settings of the provider that replace its own while a lead agent does not think. Without it they are derived from
   * `when_thinking_enabled`.
   */
  when_thinking_disabled?: Record<string, unknown> | null;
  [yours: `x-${string}`]: unknown;
} | {
  provider: "host";
  /** Told to the host in each call, so that one host can answer several models. */
  model?: string | null;
  /** How long the host has for one reply, in milliseconds. Default 600000. */
  deadline_ms?: number | null;
  /** Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients. */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000. */
  retry_cap_delay_ms?: number;
  /**
   * The longest wait that the endpoint may ask for, in milliseconds. When it asks for more, the model is not tried again
   * at all: to come earlier would be in vain. Default 120,000.
   */
  max_retry_after_ms?: number;
  /**
   * No attempt begins later than this after the first began, in milliseconds; a wait that would end later is not begun.
   * Default 1,800,000.
   */
  retry_deadline_ms?: number;
  /**
   * Whether to go on after a part of the reply has reached the host. A `stream_reset` event then says that what was
   * streamed of the message is void. Default false: the run fails, and keeps the part.
   */
  retry_after_partial?: boolean;
  /** Models that are asked, in order, once this one has failed for good: names of the runtime's models, or models in place. Whatever the failure was, as long as nothing of a reply has reached the host or retry_after_partial is set. A fallback's own fallbacks follow it. */
  fallbacks?: ModelRef[];
  /** What assemblies call it. */
  name: string;
  /** Whether the model can think before it answers. Default false. */
  supports_thinking?: boolean;
  /** Whether the model takes `reasoning_effort`. Default false: a lead agent then never sends it. */
  supports_reasoning_effort?: boolean;
  /** Whether the model can look at images. Default false. */
  supports_vision?: boolean;
  /** Settings of the provider that replace its own while a lead agent thinks. */
  when_thinking_enabled?: Record<string, unknown> | null;
  /**
   * Settings of the provider that replace its own while a lead agent does not think. Without it they are derived from
   * `when_thinking_enabled`.
   */
  when_thinking_disabled?: Record<string, unknown> | null;
  [yours: `x-${string}`]: unknown;
};

/** Input of fawn_queue_new. */
export type QueueConfig = {
  /** Events that may wait before producing runs wait, 16 to 1048576. Default 4096. */
  high_mark_events?: number | null;
  /** Bytes that may wait before producing runs wait, 65536 to 1073741824. Default 16777216. */
  high_mark_bytes?: number | null;
  /** Above the marks, drop what is not a control event instead of making runs wait; a `gap` event tells of it. */
  lossy?: boolean;
  /** Runtime-wide events that come here too. */
  subscribe?: Subscription[];
  [yours: `x-${string}`]: unknown;
};

/** Input of fawn_reduce. */
export type ReduceInput = {
  /** The value so far; null: the reducer receives null. */
  existing: unknown;
  /** What is written, left to right. */
  updates: unknown[];
  /** Of messages: existing is canonical and is taken as it is. Default: it is coerced as the reference does. */
  form?: "canonical";
  /** Of messages: where missing ids come from. Default random. */
  ids?: "random" | "sequential" | {
    sequential_from: number;
    [yours: `x-${string}`]: unknown;
  };
  [yours: `x-${string}`]: unknown;
};

/** The last event of a run: its result. */
export type RunEndData = {
  run_id: string;
  thread_id: string;
  /** How it ended: with an answer, with an error, or cancelled. */
  status: "success" | "error" | "interrupted";
  /** The thread's newest checkpoint. */
  checkpoint_id?: string | null;
  /** Model calls and sets of tool calls. */
  steps?: number;
  /** Tokens of the agent's own turns. */
  usage?: {
    input_tokens: number;
    output_tokens: number;
    total_tokens: number;
    /** Of the input: cache_read, and what else the provider tells. */
    input_token_details?: Record<string, unknown>;
    /** Of the output: reasoning, and what else the provider tells. */
    output_token_details?: Record<string, unknown>;
  };
  /** The last ai message of a run that succeeded, in canonical form. */
  message?: Record<string, unknown> | null;
  /** An error object; only with the status error. */
  error?: Record<string, unknown>;
  /** Why it was cancelled; only with the status interrupted. */
  cancel_reason?: string | null;
};

/** The last event of a run: its result. */
export type RunEndEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  type: "run_end";
  /** When. */
  at: string;
  data: RunEndData;
};

/** Input of fawn_run_submit. */
export type RunOp = {
  op: "cancel";
  /** Why, for the record. */
  reason?: string | null;
  [yours: `x-${string}`]: unknown;
} | {
  op: "status";
  [yours: `x-${string}`]: unknown;
} | {
  op: "resume";
};

/** Answer of fawn_run_submit. */
export type RunOpAnswer = {
  /** Whether the run was still going. */
  cancelled: boolean;
} | {
  run_id: string;
  thread_id: string;
  /** Whether it has let go of its thread. */
  ended: boolean;
};

/** Input of fawn_run_start. */
export type RunRequest = {
  /**
   * Channel writes that start the run, such as `{"messages":[{"role":"user","content":"…"}]}`. Null or absent: go on
   * from the thread's state; a thread that stands at a whole answer stays as it is, one without messages is an error.
   */
  input?: unknown;
  /**
   * Id of the run, 1 to 255 bytes, unlike that of every run in flight; an id is not remembered once its run has ended.
   * Default: a fresh random id.
   */
  run_id?: string | null;
  /** Run options by key, for middleware. */
  configurable?: Record<string, unknown>;
  /** Facts about the request, for middleware. */
  context?: Record<string, unknown>;
  /** Which events the run sends besides control events. Default `["messages","updates"]`. */
  stream?: StreamMode[] | null;
  /** What to do when the thread has a run in flight. Default `reject`. */
  multitask_strategy?: MultitaskStrategy;
  /** When checkpoints are written. Default `sync`. */
  durability?: Durability;
  /** Start from this checkpoint instead of the newest. Not available in this version. */
  checkpoint_id?: string | null;
  /** Most steps, 1 to 1000. Default: the assembly's. */
  recursion_limit?: number | null;
  [yours: `x-${string}`]: unknown;
};

/** Answer of fawn_run_wait, and the data of a run_end event. */
export type RunResult = RunEndData;

/** The first event of a run. */
export type RunStartData = {
  /** Most steps of this run. */
  recursion_limit: number;
};

/** The first event of a run. */
export type RunStartEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  type: "run_start";
  /** When. */
  at: string;
  data: RunStartData;
};

/** Input of fawn_runtime_new. */
export type RuntimeConfig = {
  /**
   * Threads of the runtime's own, 0 to 64; they start with the first run. 0 means that the host's threads drive
   * everything while they are inside `fawn_queue_take` or `fawn_run_wait`. Default 2.
   */
  workers?: number | null;
  /** Where threads are kept. */
  database?: DatabaseConfig;
  /** Models that assemblies name. Each needs a `name` of its own. */
  models?: NamedModel[];
  /** Deterministic mode, for tests and replays. */
  testing?: TestingConfig | null;
  [yours: `x-${string}`]: unknown;
};

/** Limits of a subagent. */
export type RuntimeLimits = {
  /** Most model calls. */
  max_turns: number;
  /** Longest time, in seconds. */
  timeout_seconds: number;
};

/** Input of fawn_runtime_submit. */
export type RuntimeOp = {
  op: "delete_thread";
  /** Which. */
  thread_id: string;
  [yours: `x-${string}`]: unknown;
} | {
  op: "reset_agent" | "reload_skills";
};

/** Answer of fawn_runtime_stats. */
export type RuntimeStats = {
  runs: {
    /** Not ended yet. */
    active: number;
    /** Since the runtime was made. */
    started: number;
  };
  /** Open ones. */
  threads: number;
  queues: number;
  /** Host calls that wait for an answer. */
  open_calls: number;
  /** Threads that drive its runs; 0: the host's own, inside take and wait. */
  workers: number;
  /** The living handles of this runtime. */
  handles: {
    handle: number;
    kind: string;
    /** The runtime that it belongs to. */
    runtime?: number;
  }[];
};

/** The error of a scripted reply. */
export type ScriptedError = {
  /** Which failure. */
  code: ModelFault;
  /** Default: a text that says that the script wants it so. */
  message?: string | null;
  /** How many pieces stream before the failure. Default 0. */
  after_chunks?: number | null;
  /** Whether the failure may pass. Default: true but for refused credentials and requests. */
  retryable?: boolean | null;
  /** How long the endpoint asks to wait, in milliseconds. */
  retry_after_ms?: number | null;
  /** The HTTP status that the endpoint is said to have answered with. */
  status?: number | null;
  /** The endpoint's own short name for the failure. */
  provider_code?: string | null;
  [yours: `x-${string}`]: unknown;
};

/** A tool call of a scripted reply that cannot be run. */
export type ScriptedInvalidToolCall = {
  /** Name of the tool. */
  name?: string | null;
  /** Arguments as the model wrote them. */
  args?: string | null;
  /** Id of the call. Default `call_<reply>_<position>`, counted after the valid calls. */
  id?: string | null;
  /** What is wrong with the arguments. */
  error?: string | null;
  [yours: `x-${string}`]: unknown;
};

/** One reply of a scripted model. */
export type ScriptedReply = {
  /** Text, or a list of content blocks. Default: the joined `chunks`, else empty text. */
  content?: string | Array<Record<string, unknown> | string> | null;
  /** Tools that the model calls. */
  tool_calls?: ScriptedToolCall[];
  /** Calls whose arguments are no JSON object. */
  invalid_tool_calls?: ScriptedInvalidToolCall[];
  /** Tokens used. */
  usage?: ScriptedUsage | null;
  /** The model's reasoning. */
  reasoning?: string | null;
  /** Why the model stopped. Default `tool_calls` when there are calls, else `stop`. */
  finish_reason?: string | null;
  /** Time before the first piece, in milliseconds. */
  delay_ms?: number;
  /** The pieces in which the text streams: a list of texts, or a number of pieces. Default: one. */
  chunks?: string[] | number | null;
  /** Time between two pieces, in milliseconds. */
  chunk_delay_ms?: number;
  /** Fails with this error instead of answering. */
  error?: ScriptedError | null;
  /** The stream ends after its pieces without its end mark. */
  cut?: boolean;
  /** Streams its pieces and then never ends. */
  hang?: boolean;
  /**
   * Only the first so many attempts of a turn meet the fault (`error`, `cut` or `hang`; without one, a
   * `model_server` error); later ones are answered.
   */
  fail_first?: number | null;
  [yours: `x-${string}`]: unknown;
};

/** A tool call of a scripted reply. */
export type ScriptedToolCall = {
  /** Name of the tool. */
  name: string;
  /** Arguments. */
  args?: Record<string, unknown>;
  /** Id of the call. Default `call_<reply>_<position>`. */
  id?: string | null;
  [yours: `x-${string}`]: unknown;
};

/** Tokens that a scripted reply claims to have used. */
export type ScriptedUsage = {
  /** Tokens read, cached ones included. */
  input_tokens?: number;
  /** Tokens written, reasoning included. */
  output_tokens?: number;
  /** Default: the sum of both. */
  total_tokens?: number | null;
  /** Tokens read from a cache. */
  cache_read?: number | null;
  /** Tokens written to a cache. */
  cache_creation?: number | null;
  /** Tokens spent on reasoning. */
  reasoning?: number | null;
  [yours: `x-${string}`]: unknown;
};

/** Answer of fawn_runtime_shutdown. */
export type ShutdownAnswer = {
  /** Runs that shutting down has ended, over all calls. */
  runs_cancelled: number;
};

/** One skill of the catalog (AD-19). These members, and no others, are what `skill_catalog_hash` is made of. */
export type SkillDescriptor = {
  /** Name. */
  name: string;
  /** When to use it. */
  description: string;
  /** The tools that it allows, sorted. null: it says nothing, all of them; an empty list: none (AD-20). */
  allowed_tools: string[] | null;
  /** Hash of the text of SKILL.md; null when it cannot be read. */
  content_hash: string | null;
  /** Whether it may use its secrets without being asked for by name. */
  secrets_autonomous: boolean;
  /** The secrets that it wants, each as `<name>:True` where it works without and `<name>:False` where it does not; sorted. */
  required_secrets: string[];
};

/** A kind of events that a run sends on request. */
export type StreamMode = "values" | "updates" | "messages" | "custom";

/** What was streamed of a message is void: another attempt begins, whose deltas have the same message_id. */
export type StreamResetData = {
  message_id: string;
};

/** What was streamed of a message is void: another attempt begins, whose deltas have the same message_id. */
export type StreamResetEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  type: "stream_reset";
  /** When. */
  at: string;
  data: StreamResetData;
};

/** Delegation. */
export type SubagentPolicies = {
  /** Whether the agent may delegate. */
  enabled: boolean;
  /** Most subagents that work at one time. */
  max_concurrent: number;
  /** Most delegations of a run. */
  max_total: number;
  /** Names of the subagents it may delegate to, sorted; empty when it may not. */
  type_allowlist: string[];
  /** Limits of each of them. */
  runtime_limits: Record<string, RuntimeLimits>;
};

/** Runtime-wide events. */
export type Subscription = "log" | "runtime";

/** Deterministic mode: clock, ids and order of events are fixed by the input alone. */
export type TestingConfig = {
  /** The time that the clock always tells, RFC 3339 in UTC. */
  clock?: string | null;
  /**
   * Where ids come from. Default `random`. Ids that count from 1 again meet those of an earlier process on the same
   * thread: give `{"sequential_from": n}` then.
   */
  ids?: IdsConfig;
  /** As `workers` of the runtime; at most 64. */
  workers?: number | null;
  [yours: `x-${string}`]: unknown;
};

/** Answer of fawn_thread_history. */
export type ThreadHistory = Array<{
  checkpoint_id: string | null;
  parent_checkpoint_id: string | null;
  /** -1 for the input of a new thread, then counting. */
  step: number | null;
  /** What made it: the input of a run, a step of a run, an update from outside, a branch from an older checkpoint; more may come. */
  source: "input" | "loop" | "update" | "fork" | (string & {}) | null;
  created_at: string | null;
  /** The run that made it. */
  run_id: string | null;
  /** as_node, where an update gave it. */
  metadata: Record<string, unknown>;
  /** Channel name to value; only if asked for. */
  values?: ThreadValues;
}>;

/** Input of fawn_thread_history. */
export type ThreadHistoryQuery = {
  /** At most so many checkpoints, newest first. Default: all. */
  limit?: number | null;
  /** Only checkpoints older than this one; an id that is not on the thread is compared all the same. */
  before?: string | null;
  /** Whether to add each checkpoint's state as `values`. Default false. */
  values?: boolean;
  [yours: `x-${string}`]: unknown;
};

/** Input of fawn_thread_open. */
export type ThreadOpen = {
  /** Which thread, 1 to 255 bytes; a new one when there is none of this id. Default: a fresh random id. */
  thread_id?: string | null;
  [yours: `x-${string}`]: unknown;
};

/** Answer of fawn_thread_state. */
export type ThreadState = {
  checkpoint_id: string | null;
  parent_checkpoint_id: string | null;
  /** -1 for the input of a new thread, then counting. */
  step: number | null;
  /** What made it: the input of a run, a step of a run, an update from outside, a branch from an older checkpoint; more may come. */
  source: "input" | "loop" | "update" | "fork" | (string & {}) | null;
  created_at: string | null;
  /** The run that made it. */
  run_id: string | null;
  /** as_node, where an update gave it. */
  metadata: Record<string, unknown>;
  /** The thread. */
  thread_id: string;
  /** Channel name to value; with since: of the channels that changed, without messages. */
  values: ThreadValues;
  /** As asked. */
  since?: string;
  /** Only with since: what became of the messages. */
  messages?: {
    /** Nothing of the older list is left; upserted is the whole list. */
    reset: boolean;
    /** Ids of messages that are gone. */
    removed: string[];
    /** Messages that are new or replaced, in order. */
    upserted: Message[];
  };
};

/** Input of fawn_thread_state. */
export type ThreadStateQuery = {
  /** Only these channels. Default: all that have a value. */
  channels?: string[] | null;
  /** Only the last so many messages. */
  last_messages?: number | null;
  /** The state at this checkpoint. Default: the newest. */
  checkpoint_id?: string | null;
  /** Only what changed since this checkpoint, an ancestor of the one that is read. */
  since?: string | null;
  [yours: `x-${string}`]: unknown;
};

/** Input of fawn_thread_update. */
export type ThreadUpdate = {
  /** One set of channel writes: an object, channel name to value. */
  values?: unknown;
  /** Several sets, written in order as one step. Instead of `values`. */
  writes?: unknown[] | null;
  /** Who writes, for the checkpoint's metadata. */
  as_node?: string | null;
  [yours: `x-${string}`]: unknown;
};

/** Answer of fawn_thread_update. */
export type ThreadUpdateAnswer = {
  /** The checkpoint that holds the writes. */
  checkpoint_id: string;
  step: number;
};

/** Channel name to value. A channel that was never written, or not asked for, is absent; more channels may come. */
export type ThreadValues = {
  messages?: Message[];
  title?: string | null;
  artifacts?: string[] | null;
  todos?: unknown;
  goal?: unknown;
  sandbox?: unknown;
  thread_data?: unknown;
  uploaded_files?: unknown;
  viewed_images?: unknown;
  promoted?: unknown;
  delegations?: unknown;
  skill_context?: unknown;
  summary_text?: unknown;
  structured_response?: unknown;
  background_tasks?: unknown;
  [channel: string]: unknown;
};

/** TLS settings of a provider. */
export type TlsConfig = {
  /** File of CA certificates in PEM form. Only these are trusted then, not those of the system. */
  ca_file?: string | null;
  [yours: `x-${string}`]: unknown;
};

/** One tool. */
export type ToolDescriptor = {
  /** Name. */
  name: string;
  /** Hash of the description; that of empty text when there is none. */
  description_hash: string;
  /** Hash of the JSON Schema of the arguments. */
  schema_hash: string;
  /** Where it comes from: `builtin`, `skill`, `host`, `mcp:<server>`, or `mcp:unknown`. */
  source: string;
  /** Name of the MCP server; null for other tools, or when nothing is known of it. */
  mcp_server: string | null;
  /** How the MCP server is reached; null likewise. */
  mcp_transport: string | null;
};

/** All that a node wrote; it is stored. */
export type UpdateData = {
  /** Who wrote it. */
  node: string;
  /** Channel name to what was written. */
  update: Record<string, unknown>;
};

/** All that a node wrote; it is stored. */
export type UpdateEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  type: "update";
  /** When. */
  at: string;
  data: UpdateData;
};

/** Tokens of one reply and of the run so far. */
export type UsageData = {
  /** The reply. */
  message_id: string;
  /** Tokens of the reply. */
  usage: {
    input_tokens: number;
    output_tokens: number;
    total_tokens: number;
    /** Of the input: cache_read, and what else the provider tells. */
    input_token_details?: Record<string, unknown>;
    /** Of the output: reasoning, and what else the provider tells. */
    output_token_details?: Record<string, unknown>;
  };
  /** Tokens of the run so far. */
  total: {
    input_tokens: number;
    output_tokens: number;
    total_tokens: number;
    /** Of the input: cache_read, and what else the provider tells. */
    input_token_details?: Record<string, unknown>;
    /** Of the output: reasoning, and what else the provider tells. */
    output_token_details?: Record<string, unknown>;
  };
};

/** Tokens of one reply and of the run so far. */
export type UsageEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  type: "usage";
  /** When. */
  at: string;
  data: UsageData;
};

/** The whole state after a step. */
export type ValuesData = {
  /** Channel name to value. */
  values: ThreadValues;
};

/** The whole state after a step. */
export type ValuesEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  type: "values";
  /** When. */
  at: string;
  data: ValuesData;
};
