// The payloads of fawn: what goes in as JSON and comes out as JSON.
//
// Written by generate.mjs from include/schema; change the schemas instead. Objects that come out may gain members, and events
// types, in later versions.

/** What may be used of one resource. */
export type AccessPolicy = {
  /** What may be used: all (`*` or true), nothing (false or an empty list), or these. Default: all. */
  allow?: "*" | boolean | string[];
  /** What may not be used, whatever is allowed. */
  deny?: string[];
  [yours: `x-${string}`]: unknown;
};

/** What happens to a subagent when all places are taken. */
export type AdmissionPolicy = "queue" | "reject";

/** A custom agent, given in place. */
export type Agent = {
  /** Name, 1 to 64 characters of `A-Z a-z 0-9 -`. */
  name: string;
  /** What it is for. Default: nothing. */
  description?: string | null;
  /** Its personality, for its system text. Blank counts as none. Default: none. */
  soul?: string | null;
  /** Name of the model that it asks for, unless the request says. Default: the first of the runtime's models. */
  model?: string | null;
  /** Groups of tools that it has. Default: all. An empty list: none. */
  tool_groups?: string[] | null;
  /** Skills that it may find and activate. Default: all that are enabled. An empty list: none. */
  skills?: string[] | null;
  /** Settings of its model, which go before those of the model's profile. */
  model_settings?: AgentModelSettings | null;
  /** Whether it thinks, unless the request says. Default: it does. */
  thinking_enabled?: boolean | null;
  /** How hard it thinks, unless the request says. Default: the model's own way. */
  reasoning_effort?: ReasoningEffort | null;
  /** Subagents that it may delegate to. Default: all. An empty list forbids delegation, whatever the request says. */
  allowed_subagents?: string[] | null;
  /**
   * Whether it has memory. False: nothing is remembered and nothing recalled. It does not switch on what is switched
   * off for all. Default true.
   */
  memory_enabled?: boolean;
  /** The repositories that it answers on. Default: none. */
  github?: GithubConfig | null;
  [yours: `x-${string}`]: unknown;
};

/** The factory "lead" has assembled an agent, to queues that subscribed to "runtime". */
export type AgentAssembledData = {
  /** What the agent turned out to be (schema assembly_descriptor). */
  descriptor: Record<string, unknown>;
  /** What runs of the agent are labelled with: model_name, agent_name, thinking_enabled and more. */
  metadata: Record<string, unknown>;
};

/** The factory "lead" has assembled an agent, to queues that subscribed to "runtime". */
export type AgentAssembledEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
  type: "agent_assembled";
  /** When. */
  at: string;
  data: AgentAssembledData;
};

/** Settings of a custom agent's model (MD-11). */
export type AgentModelSettings = {
  /** Sampling temperature, 0 to 2. Default: the profile's. */
  temperature?: number | null;
  /** Most tokens to write, 1 to 200000. Default: the profile's. */
  max_tokens?: number | null;
  [yours: `x-${string}`]: unknown;
};

/** Lists of tools, by name. */
export type AllowlistConfig = {
  /** The tools that may be called; an empty list allows none. Default: all. */
  allowed_tools?: string[] | null;
  /** The tools that may not, whatever is allowed. */
  denied_tools?: string[] | null;
  [yours: `x-${string}`]: unknown;
};

export type AppConfig = {
  /** Models that assemblies name. Each needs a `name` of its own; the first is the default. */
  models?: NamedModel[] | null;
  /** Tools that lead agents have, in order: those of the host, and those that DeerFlow would load by class. */
  tools?: ConfiguredTool[] | null;
  /** Groups of tools, for the record: what counts is the `group` of a tool. */
  tool_groups?: ToolGroupConfig[] | null;
  /** Whether tools of MCP servers are kept back until they are searched for. */
  tool_search?: ToolSearchConfig | null;
  /** What happens to tool results that are too long. */
  tool_output?: ToolOutputConfig | null;
  /** Stops tools that get nowhere. */
  tool_progress?: ToolProgressConfig | null;
  /** Wants a file to be read before it is written. */
  read_before_write?: ReadBeforeWriteConfig | null;
  /** Where commands and files live. */
  sandbox?: SandboxConfig | null;
  /** Where skills are found, and how the model learns of them. */
  skills?: SkillsConfig | null;
  /** Whether agents write skills. */
  skill_evolution?: SkillEvolutionConfig | null;
  /** Which skills are on; MCP servers and middleware by class are not available in this version. */
  extensions?: ExtensionsConfig | null;
  /** What is remembered between threads. */
  memory?: MemoryConfig | null;
  /** Subagents: kinds, limits and overrides. */
  subagents?: SubagentsConfig | null;
  /** How many subagents run at once. */
  subagent_runtime?: SubagentRuntimeConfig | null;
  /** Shortens long threads: a summary takes the place of their beginning. */
  summarization?: SummarizationConfig | null;
  /** Gives threads a title. */
  title?: TitleConfig | null;
  /** Bounds of uploaded files. */
  uploads?: UploadsConfig | null;
  /** Counts tokens. */
  token_usage?: TokenUsageConfig | null;
  /** Bounds the tokens of a run. */
  token_budget?: TokenBudgetConfig | null;
  /** Stops models that repeat themselves. */
  loop_detection?: LoopDetectionConfig | null;
  /** Recognises replies that a provider cut for safety. */
  safety_finish_reason?: SafetyFinishReasonConfig | null;
  /** Asks somebody before each tool call: lists of tools, or the host. */
  guardrails?: GuardrailsConfig | null;
  /** Who may use which model and tool. */
  authorization?: AuthorizationConfig | null;
  /** How many model calls of lead agents run at once, and how they are tried again. */
  llm_call?: LlmCallConfig | null;
  /** Stops calling a model that keeps failing, in lead agents. */
  circuit_breaker?: CircuitBreakerConfig | null;
  /** Agents behind the Agent Client Protocol. Not available in this version. */
  acp_agents?: Record<string, null> | null;
  /** Custom agents, by name: what DeerFlow keeps in a `config.yaml` each, with a `soul`. They are the operator's, come before those of users, and do not change themselves. */
  agents?: Agent[] | null;
  /** Most steps that a run may ask for, 1 to 1000. Default 1000. */
  max_recursion_limit?: number | null;
  /** The directory that holds `users/…` and `agents/…`: DeerFlow's `DEER_FLOW_HOME`. Default: none, and then nothing is read or written there. */
  home?: string | null;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  config_version?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  log_level?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  logging?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  agents_api?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  suggestions?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  input_polish?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  scheduler?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  mcp_tasks?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  skill_scan?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  subagent_batches?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  channels?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  channel_connections?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  auth?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  run_ownership?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  run_events?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  agent_storage?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  stream_bridge?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  dedupe_storage?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  checkpointer?: unknown;
  [yours: `x-${string}`]: unknown;
};

/** Input of fawn_assembly_new. */
export type AssemblyConfig = {
  /** The model. */
  model: ModelRef;
  /** System text, as it is. */
  system_prompt?: string | null;
  /** Tools that the host runs. */
  tools?: HostToolConfig[];
  /** The chain, outermost first. Default: `["dangling_tool_call"]`, which repairs what a cancelled run left open. */
  middleware?: MiddlewareConfig[] | null;
  /** Steps of a run unless the run says otherwise, 1 to 1000. Default 100. */
  recursion_limit?: number | null;
  /** Exactly what is given; the default. */
  factory?: "custom";
  [yours: `x-${string}`]: unknown;
} | {
  /** The model. */
  model: ModelRef;
  /** Name of the agent. Default `default`. */
  name?: string | null;
  /** System text, as it is. */
  system_prompt?: string | null;
  /**
   * Tools that the host runs. They win over the factory's own of the same name: the calls of an `ask_clarification` of yours are
   * made like any others, and a warning (`tool_duplicate`) says so.
   */
  tools?: HostToolConfig[];
  /** What the agent is made of besides. Not together with `middleware`. */
  features?: Features | null;
  /** Full takeover: this chain, outermost first, instead of the factory's. */
  middleware?: MiddlewareConfig[] | null;
  /** Middleware in addition to the factory's. Not together with `middleware`. */
  extra_middleware?: ExtraMiddleware[];
  /** Whether the agent keeps a list of todos. Not together with `middleware`. */
  plan_mode?: boolean;
  /**
   * The `fawn_subagents` whose capacity and limits the agent's subagents have, by its handle. Needs `features.subagent`.
   * Default: the capacity that all assemblies of the process without one share.
   */
  subagent_runtime?: number | null;
  /** Steps of a run unless the run says otherwise, 1 to 1000. Default 100. */
  recursion_limit?: number | null;
  /** Plain arguments and features. */
  factory: "direct";
  [yours: `x-${string}`]: unknown;
} | {
  /**
   * Options by key: `model_name`, `thinking_enabled`, `reasoning_effort`, `is_plan_mode`, `subagent_enabled`,
   * `max_concurrent_subagents`, `max_total_subagents`, `agent_name`, `is_bootstrap`, `non_interactive`,
   * `interaction_mode`, `channel_name`, `user_id`, `user_role`, `authz_attributes`. Others are let through.
   */
  configurable?: Record<string, unknown>;
  /** Options by key as well, and facts about the request; they win over `configurable` (RC-1). */
  context?: Record<string, unknown>;
  /** `lead_agent`, or the name of a custom agent (RC-8). */
  assistant_id?: string | null;
  /** Tools that the host runs for this agent, besides those of the configuration. */
  tools?: HostToolConfig[];
  /**
   * Middleware in addition to the agent's: beside another by `after` or `before`, else after the limits of tokens and loops
   * (the place of the caller's own in DeerFlow's list).
   */
  extra_middleware?: ExtraMiddleware[];
  /**
   * Sections of the configuration for this agent alone, in place of all of the runtime's (EP-3). References to the
   * environment are resolved when the agent is assembled.
   */
  app_config?: AppConfig | null;
  /** What the host lets this agent use, besides what the configuration says: it can only narrow that. */
  authorization?: AuthorizationLists | null;
  /** Facts about the build that runs, for the descriptor. */
  build?: BuildLabels;
  /**
   * The `fawn_subagents` whose capacity and limits the agent's subagents have, by its handle. Default: the capacity that all
   * assemblies of the process without one share, and the limits of the configuration.
   */
  subagent_runtime?: number | null;
  /** Steps of a run unless the run says otherwise, 1 to 1000. Default 100. */
  recursion_limit?: number | null;
  /** The lead agent, with its descriptor. */
  factory: "lead";
  [yours: `x-${string}`]: unknown;
} | {
  /**
   * Options by key: `model_name`, `thinking_enabled`, `reasoning_effort`, `is_plan_mode`, `subagent_enabled`,
   * `max_concurrent_subagents`, `max_total_subagents`, `agent_name`, `is_bootstrap`, `non_interactive`,
   * `interaction_mode`, `channel_name`, `user_id`, `user_role`, `authz_attributes`. Others are let through.
   */
  configurable?: Record<string, unknown>;
  /** Options by key as well, and facts about the request; they win over `configurable` (RC-1). */
  context?: Record<string, unknown>;
  /** `lead_agent`, or the name of a custom agent (RC-8). */
  assistant_id?: string | null;
  /** Tools that the host runs for this agent, besides those of the configuration. */
  tools?: HostToolConfig[];
  /**
   * Middleware in addition to the agent's: beside another by `after` or `before`, else after the limits of tokens and loops
   * (the place of the caller's own in DeerFlow's list).
   */
  extra_middleware?: ExtraMiddleware[];
  /**
   * Sections of the configuration for this agent alone, in place of all of the runtime's (EP-3). References to the
   * environment are resolved when the agent is assembled.
   */
  app_config?: AppConfig | null;
  /** What the host lets this agent use, besides what the configuration says: it can only narrow that. */
  authorization?: AuthorizationLists | null;
  /** Facts about the build that runs, for the descriptor. */
  build?: BuildLabels;
  /**
   * The `fawn_subagents` whose capacity and limits the agent's subagents have, by its handle. Default: the capacity that all
   * assemblies of the process without one share, and the limits of the configuration.
   */
  subagent_runtime?: number | null;
  /** Steps of a run unless the run says otherwise, 1 to 1000. Default 100. */
  recursion_limit?: number | null;
  /** The lead agent as a bare graph: its descriptor is null. */
  factory: "lead_graph";
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

/** Who may use which model and tool (MD-2 to MD-4, TL-8). */
export type AuthorizationConfig = {
  /** Whether anybody is asked. Default false. */
  enabled?: boolean;
  /** Whether what cannot be decided is denied. Default true. */
  fail_closed?: boolean;
  /** The role of whoever has none. Default `user`. */
  default_role?: string;
  /** Who is asked. Without it, the assembly has to say. */
  provider?: AuthorizationProvider | null;
  [yours: `x-${string}`]: unknown;
};

/** Lists that hold for everybody. A resource that is not named is not restricted. */
export type AuthorizationLists = {
  /** Tools, by name. */
  tools?: AccessPolicy | null;
  /** Models, by name. */
  models?: AccessPolicy | null;
  [yours: `x-${string}`]: unknown;
};

/** Who is asked for authorization. */
export type AuthorizationProvider = {
  use: "deerflow.authz.rbac:RbacAuthorizationProvider" | "rbac";
  config: {
    roles: Record<string, RoleConfig>;
    [yours: `x-${string}`]: unknown;
  };
  [yours: `x-${string}`]: unknown;
} | {
  use: "lists";
  config?: AuthorizationLists;
  [yours: `x-${string}`]: unknown;
};

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

/** Facts about the build that runs; no part of an agent's fingerprint (AD-22, AD-25). */
export type BuildLabels = {
  /** Digest of the image. Default `unknown`. */
  image_digest?: string | null;
  /** Commit of the sources. Default `unknown`. */
  git_commit?: string | null;
  [yours: `x-${string}`]: unknown;
};

/** Input of fawn_call_finish. */
export type CallAnswer = {
  /** The answer. A tool: its content (text, content blocks, or any JSON), or an object with content and, if wanted, artifact (for the host, not the model), additional_kwargs (facts that are kept with the message), update (channel writes; no system messages) and end_run. A model: text, or an object with content, tool_calls [{name, args, id}], usage, reasoning, response_metadata. A guardrail: an object with allow (schema guardrail_answer). A middleware: a verdict (schema middleware_verdict). A sandbox: {sandbox_id} for acquire, {text} for read_file or null when there is no such file, null for release and write_file. A memory: null. */
  ok?: unknown;
  /** It could not be done; the text is for the model. From a guardrail or a middleware it counts as no answer. */
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

/** How many subagents of a subagents object run at once. What is absent is as the runtime's section `subagent_runtime` has it. */
export type CapacityConfig = {
  /** How many run at once, 1 to 64. */
  max_running?: number | null;
  /** How many may wait, 0 to 10000. */
  max_queued?: number | null;
  /** What happens when all places are taken. */
  admission_policy?: AdmissionPolicy | null;
  /** Longest wait, in seconds, 1 to 86400. */
  queue_timeout_seconds?: number | null;
  [yours: `x-${string}`]: unknown;
};

/** How DeerFlow keeps messages in checkpoints (EP-4). */
export type ChannelMode = "full" | "delta";

/** A step is stored. */
export type CheckpointData = {
  checkpoint_id: string;
  parent_checkpoint_id: string | null;
  /** -1 for the input of a new thread, then counting. */
  step: number;
  /** What made it: the input of a run, a step of a run, an update from outside, a branch from an older checkpoint; more may come. */
  source: "input" | "loop" | "update" | "fork" | (string & {});
};

/** Settings of the mode `delta`. */
export type CheckpointDeltaConfig = {
  /** Writes between two checkpoints with all messages. Default 10. */
  snapshot_frequency?: number;
  [yours: `x-${string}`]: unknown;
};

/** A step is stored. */
export type CheckpointEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
  type: "checkpoint";
  /** When. */
  at: string;
  data: CheckpointData;
};

/** Stops calling a model that keeps failing (MW-LLM-6). Each assembly counts for itself. */
export type CircuitBreakerConfig = {
  /** Failures in a row that open it: calls that failed for good for a reason that passes. Default 5. */
  failure_threshold?: number;
  /** How long it stays open, in seconds; then one call is let through to see. Default 60. */
  recovery_timeout_sec?: number;
  [yours: `x-${string}`]: unknown;
};

/** A tool of lead agents. */
export type ConfiguredTool = {
  /** Name, 1 to 64 characters of `A-Z a-z 0-9 _ -`, unique within the assembly. */
  name: string;
  /** What it does, for the model. */
  description?: string;
  /** JSON Schema of the arguments object. Default: an object without members. */
  parameters?: Record<string, unknown> | null;
  /**
   * The group that agents choose it by (`tool_groups`). Default: none, and then it is there for every agent
   * but those whose list of groups is empty.
   */
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
} | {
  name: string;
  /** The group that agents choose it by (`tool_groups`). */
  group?: string | null;
  /** Where DeerFlow finds it: `module:variable`. */
  use: string;
};

/** An amount of a thread. */
export type ContextSize = {
  /** What is counted. */
  type: ContextSizeKind;
  /** How many; of `fraction`, more than 0 and at most 1. */
  value: number;
  [yours: `x-${string}`]: unknown;
};

/** What an amount of a thread is counted in. */
export type ContextSizeKind = "fraction" | "tokens" | "messages";

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
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
  type: "custom";
  /** When. */
  at: string;
  data: CustomData;
};

/** A subagent of the operator's. */
export type CustomSubagentConfig = {
  /** When to delegate to it. */
  description: string;
  /** What it is told. */
  system_prompt: string;
  /**
   * Tools that it has; empty for none. One that its agent does not have is a warning of the assembly. Default: those of its
   * agent.
   */
  tools?: string[] | null;
  /** Tools that it does not have. Default `task`, `ask_clarification`, `present_files`. */
  disallowed_tools?: string[] | null;
  /** Skills that it may find and activate; empty for none. Default: all that are on. */
  skills?: string[] | null;
  /** Its model; `inherit` for its agent's. Default `inherit`. */
  model?: string;
  /** Most turns. Default 50. */
  max_turns?: number;
  /** Longest time, in seconds. Default 900. */
  timeout_seconds?: number;
  [yours: `x-${string}`]: unknown;
};

/** Where threads are kept. */
export type DatabaseConfig = {
  /** The kind of store. Default `memory`. */
  backend?: Backend;
  /** `sqlite`: the folder that holds `fawn.db`. It must exist. */
  sqlite_dir?: string | null;
  /** `sqlite`: the file itself, instead of `sqlite_dir`. */
  sqlite_path?: string | null;
  /**
   * How DeerFlow keeps messages in checkpoints. Default `full`; both read the same, and `delta` is not available in this
   * version: here no checkpoint copies a message.
   */
  checkpoint_channel_mode?: ChannelMode;
  /** Settings of the mode `delta`. */
  checkpoint_delta?: CheckpointDeltaConfig;
  /** Size of a cache of DeerFlow's server; nothing here. */
  checkpoint_graph_cache?: Record<string, unknown>;
  /** A cache of DeerFlow's server; nothing here. */
  checkpoint_cache?: Record<string, unknown>;
  /** `postgres`: where the server is. Not available in this version. */
  postgres_url?: null;
  /** `postgres`: the schema for the tables. Not available in this version. */
  postgres_schema?: null;
  /** `postgres`: connections that are kept; nothing to other backends. */
  pool_size?: number | null;
  /** `postgres`: seconds after which a connection is made anew; nothing to other backends. */
  pool_recycle?: number | null;
  /** `postgres`: longest time for one command, in seconds; nothing to other backends. */
  command_timeout?: number | null;
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
  code: "argument" | "handle" | "not_utf8" | "abi" | "forked" | "panic" | "closed" | "wrong_thread" | "too_large" | "unsupported" | "json_syntax" | "json_depth" | "unknown_member" | "wrong_type" | "out_of_range" | "missing_member" | "unknown_variant" | "unknown_channel" | "conflict" | "null_write" | "message_incomplete" | "unknown_role" | "not_a_message" | "message_invalid" | "message_member" | "arguments_syntax" | "message_extra" | "unknown_message_id" | "sandbox_conflict" | "entry_member" | "entry_type" | "conflicting_writes" | "unknown_model" | "assembly_invalid" | "unknown_agent" | "not_authorized" | "thread_busy" | "unknown_checkpoint" | "store" | "store_corrupt" | "thread_stale" | "recursion_limit" | "cancelled" | "middleware" | "no_queue" | "deadline_exceeded" | "queue_closed" | "behind" | "model_auth" | "model_request" | "model_rate_limit" | "model_server" | "model_connection" | "model_timeout" | "model_protocol" | "model_truncated" | "script_exhausted" | "model_host" | "model_unavailable" | "model_no_answer" | "internal";
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
  | MiddlewareEvent
  | UsageEvent
  | MessageEvent
  | UpdateEvent
  | ValuesEvent
  | CheckpointEvent
  | GoalEvent
  | HostCallEvent
  | HostCallCancelledEvent
  | CustomEvent
  | TaskStartedEvent
  | TaskRunningEvent
  | TaskCompletedEvent
  | TaskFailedEvent
  | TaskCancelledEvent
  | TaskTimedOutEvent
  | GapEvent
  | LogEvent
  | AgentAssembledEvent
  | RunEndEvent;

/** Which skills are on. DeerFlow keeps this in `extensions_config.json`. */
export type ExtensionsConfig = {
  /** Skills by name; one that is not named is on. */
  skills?: Record<string, SkillStateConfig>;
  /** MCP servers by name. Only such as are switched off are taken in this version. */
  mcpServers?: Record<string, unknown>;
  /** Middleware by class. Not available in this version. */
  middlewares?: string[];
  [yours: `x-${string}`]: unknown;
};

/** A middleware by name; an object has its settings beside the name, or the member host, which makes it one that the host is, and at most one anchor. Without an anchor it stands before the last of a direct agent, which is the clarification, and outside of a lead agent's last checks of a reply. */
export type ExtraMiddleware = string | {
  name: string;
  host?: HostMiddlewareConfig;
  /** Right after the middleware of this name. */
  after?: string | null;
  /** Right before the middleware of this name. */
  before?: string | null;
};

/** Whether an agent has something; an object holds its settings. */
export type Feature = boolean | Record<string, unknown>;

/** What `direct` makes an agent of (FA-3). Each is `false`, `true`, or an object of settings. */
export type Features = {
  /**
   * What tells the model of uploads, on your word: such an agent keeps no files. Default true. A sandbox is a lead agent's, so that
   * `true` here asks for something that is not there and is refused.
   */
  sandbox?: Feature | null;
  /** Memory. Only lead agents have one; `true` is refused. */
  memory?: Feature | null;
  /** Compaction of long threads; needs settings, those of the section `summarization` without `model_name`. Default false. */
  summarization?: Feature | null;
  /**
   * Delegation to subagents; settings are those of the middleware `subagent_limit` and replace the limits that it is given
   * otherwise. Default false.
   */
  subagent?: Feature | null;
  /** Looking at images. Only lead agents have files to look at; `true` is refused. */
  vision?: Feature | null;
  /** Titles for new threads. Default false. */
  auto_title?: Feature | null;
  /** A guard of tool calls; needs settings. Default false. */
  guardrail?: Feature | null;
  /** Breaking loops of repeated calls. Default true. */
  loop_detection?: Feature | null;
  /** A limit of tokens. Default false. `true` is a limit that is on, with the default amount. */
  token_budget?: Feature | null;
  [yours: `x-${string}`]: unknown;
};

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
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
  type: "gap";
  /** When. */
  at: string;
  data: GapData;
};

/** A repository that a custom agent answers on. */
export type GithubBinding = {
  /** `owner/name`. */
  repo: string;
  /** What of an event wakes the agent, by the event's name. Events that are not named have the channel's defaults. */
  triggers?: Record<string, GithubTrigger>;
  [yours: `x-${string}`]: unknown;
};

/** The repositories that a custom agent answers on. */
export type GithubConfig = {
  /** The app installation whose tokens its runs get. Default: no tokens. */
  installation_id?: number | null;
  /** The login that it posts as, by which its own events are known. Blank counts as none. Default: none. */
  bot_login?: string | null;
  /** Steps of a run; taken as it is when positive, else the channel's 250 hold. */
  recursion_limit?: number | null;
  /** The repositories, each at most once. Without any the agent never wakes. */
  bindings?: GithubBinding[];
  [yours: `x-${string}`]: unknown;
};

/** What of an event wakes a custom agent. */
export type GithubTrigger = {
  /** Actions that wake it. Default: all. */
  actions?: string[] | null;
  /** Whether a comment must mention it. Default false. */
  require_mention?: boolean;
  /** Logins that need not mention it. */
  allow_authors?: string[];
  /** The login that counts as its mention. Blank counts as none. Default: the agent's `bot_login`. */
  mention_login?: string | null;
  [yours: `x-${string}`]: unknown;
};

/** Answer of fawn_thread_goal. */
export type GoalAnswer = {
  /** What was done; a command comes to one of these. */
  op: "get" | "set" | "clear";
  /** The thread's goal; null when it has none. The channel takes any value; one without an objective and the status active is judged by nobody. */
  goal: {
    /** What is to be reached. */
    objective?: string;
    /** Always active. */
    status?: string;
    /** When it was set; tells it from another of the same words. */
    created_at?: string;
    /** When it was set or judged last. */
    updated_at?: string;
    /** Turns that runs have added for it. */
    continuation_count?: number;
    max_continuations?: number;
    /** Judgements in a row that saw no progress. */
    no_progress_count?: number;
    max_no_progress_continuations?: number;
    /** The last judgement; absent before the first. */
    last_evaluation?: {
      satisfied?: boolean;
      /** What stands in the way: none, missing_evidence, needs_user_input, run_failed, external_wait or goal_not_met_yet, the only one for which a run goes on. */
      blocker?: string;
      reason?: string;
      evidence_summary?: string;
      run_id?: string;
      evaluated_at?: string;
      /** Equal for two judgements between which nothing moved. */
      progress_key?: string;
      /** Why the run did not go on: blocked:BLOCKER, max_continuations_reached, no_progress_detected, no_durable_end_of_turn, thread_changed_after_evaluation or thread_changed_before_continuation. Absent when it did. */
      stand_down_reason?: string;
      /** Whether it counts as reached by way of an assumption that the agent has stated; only where nobody could be asked. */
      relied_on_assumption?: boolean;
    } | null;
  } | null;
  /** The newest checkpoint: of a write that changed something, the one that it made. */
  checkpoint_id: string | null;
  /** Of that checkpoint. */
  step: number | null;
};

/** The goal of the thread is judged after a turn of the run: that it begins, and what came of it. */
export type GoalData = {
  /** evaluating: a judgement begins. satisfied: the goal is reached, and gone. continuing: the run adds a turn. stood_down: the run ends although the goal is not reached. stopped: nothing was judged or kept. */
  status: "evaluating" | "satisfied" | "continuing" | "stood_down" | "stopped" | (string & {});
  /** Of the goal that was judged. */
  objective: string;
  /** Why it stood down, or stopped: evaluator_failed, goal_changed, thread_stale or store_failed. Null for all else. */
  reason: string | null;
  /** What the channel holds now. The channel takes any value; one without an objective and the status active is judged by nobody. */
  goal: {
    /** What is to be reached. */
    objective?: string;
    /** Always active. */
    status?: string;
    /** When it was set; tells it from another of the same words. */
    created_at?: string;
    /** When it was set or judged last. */
    updated_at?: string;
    /** Turns that runs have added for it. */
    continuation_count?: number;
    max_continuations?: number;
    /** Judgements in a row that saw no progress. */
    no_progress_count?: number;
    max_no_progress_continuations?: number;
    /** The last judgement; absent before the first. */
    last_evaluation?: {
      satisfied?: boolean;
      /** What stands in the way: none, missing_evidence, needs_user_input, run_failed, external_wait or goal_not_met_yet, the only one for which a run goes on. */
      blocker?: string;
      reason?: string;
      evidence_summary?: string;
      run_id?: string;
      evaluated_at?: string;
      /** Equal for two judgements between which nothing moved. */
      progress_key?: string;
      /** Why the run did not go on: blocked:BLOCKER, max_continuations_reached, no_progress_detected, no_durable_end_of_turn, thread_changed_after_evaluation or thread_changed_before_continuation. Absent when it did. */
      stand_down_reason?: string;
      /** Whether it counts as reached by way of an assumption that the agent has stated; only where nobody could be asked. */
      relied_on_assumption?: boolean;
    } | null;
  } | null;
  /** The judgement; null before there is one. */
  evaluation: {
    satisfied?: boolean;
    /** What stands in the way: none, missing_evidence, needs_user_input, run_failed, external_wait or goal_not_met_yet, the only one for which a run goes on. */
    blocker?: string;
    reason?: string;
    evidence_summary?: string;
    run_id?: string;
    evaluated_at?: string;
    /** Equal for two judgements between which nothing moved. */
    progress_key?: string;
    /** Why the run did not go on: blocked:BLOCKER, max_continuations_reached, no_progress_detected, no_durable_end_of_turn, thread_changed_after_evaluation or thread_changed_before_continuation. Absent when it did. */
    stand_down_reason?: string;
    /** Whether it counts as reached by way of an assumption that the agent has stated; only where nobody could be asked. */
    relied_on_assumption?: boolean;
  } | null;
  /** Tokens of the judgement, which are no part of the run's usage; null when none were told. */
  usage: Record<string, unknown> | null;
};

/** The goal of the thread is judged after a turn of the run: that it begins, and what came of it. */
export type GoalEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
  type: "goal";
  /** When. */
  at: string;
  data: GoalData;
};

/** Input of fawn_thread_goal. */
export type GoalOp = {
  op: "get";
  [yours: `x-${string}`]: unknown;
} | {
  op: "set";
  /** What is to be reached: 1 to 4000 characters, once runs of white space are single spaces. */
  objective: string;
  /** How many turns a run may add on its own before it gives up: 0 to 8, numbers beyond are moved there. Default 8. */
  max_continuations?: number | null;
  /** How many judgements in a row may see no progress before a run gives up; negative numbers are 0. Default 2. */
  max_no_progress_continuations?: number | null;
  /** Writes only if this is the thread's newest checkpoint. */
  expected_checkpoint_id?: string | null;
  /** Who writes, for the checkpoint's metadata, 1 to 255 bytes. Default `goal`. */
  as_node?: string | null;
  [yours: `x-${string}`]: unknown;
} | {
  op: "clear";
  /** Writes only if this is the thread's newest checkpoint. */
  expected_checkpoint_id?: string | null;
  /** Who writes, for the checkpoint's metadata, 1 to 255 bytes. Default `goal`. */
  as_node?: string | null;
  [yours: `x-${string}`]: unknown;
} | {
  op: "command";
  /** Blank: get. clear, reset or off, in any case: clear. Anything else: set, with this as the objective. */
  argument: string;
  /** How many turns a run may add on its own before it gives up: 0 to 8, numbers beyond are moved there. Default 8. */
  max_continuations?: number | null;
  /** How many judgements in a row may see no progress before a run gives up; negative numbers are 0. Default 2. */
  max_no_progress_continuations?: number | null;
  /** Writes only if this is the thread's newest checkpoint. */
  expected_checkpoint_id?: string | null;
  /** Who writes, for the checkpoint's metadata, 1 to 255 bytes. Default `goal`. */
  as_node?: string | null;
  [yours: `x-${string}`]: unknown;
};

/** What stands under ok in the answer to such a call. */
export type GuardrailAnswer = {
  /** Whether it may be made. */
  allow: boolean;
  /** Why; the model is told the first reason of a denial. */
  reasons?: GuardrailReason[];
  /** The policy that decided, for records. */
  policy_id?: string | null;
  [yours: `x-${string}`]: unknown;
};

/** Somebody who is asked before each tool call. */
export type GuardrailProvider = {
  use: "allowlist" | "deerflow.guardrails.builtin:AllowlistProvider";
  config?: AllowlistConfig | null;
  [yours: `x-${string}`]: unknown;
} | {
  use: "host";
  config?: HostGuardrailConfig | null;
  [yours: `x-${string}`]: unknown;
} | {
  use: string;
  config?: Record<string, unknown> | null;
  [yours: `x-${string}`]: unknown;
};

/** Why a guardrail decided as it did. */
export type GuardrailReason = {
  /** For programs. Default `oap.denied`. */
  code?: string | null;
  /** For the model. */
  message?: string | null;
  [yours: `x-${string}`]: unknown;
};

/** The args of a host call of the kind guardrail: the tool call that is asked about. */
export type GuardrailRequest = {
  /** The tool. */
  tool_name: string;
  /** The arguments as the model gave them; they are checked against the tool's schema only after this. */
  tool_input: Record<string, unknown>;
  /** The agent: `passport` of the configuration. */
  agent_id: string | null;
  /** The thread. */
  thread_id: string;
  /** The run. */
  run_id: string;
  /** The model's id of the call. */
  tool_call_id: string;
  /** Whether a subagent calls. */
  is_subagent: boolean;
  /** When it is asked, as RFC 3339 in UTC. */
  timestamp: string;
  /** For whom the agent works. */
  user_id: string | null;
  /** Their role. */
  user_role: string | null;
  /** Who vouched for them. */
  oauth_provider: string | null;
  /** What they are called there. */
  oauth_id: string | null;
  /** What they are called in the channel that the request came by. */
  channel_user_id: string | null;
  /** Whether the request comes from the host itself. */
  is_internal: boolean;
  /** Whatever else the host said of them: `authz_attributes`. */
  attributes: Record<string, unknown>;
};

/** Asks somebody before each tool call (MW-GRD). */
export type GuardrailsConfig = {
  /**
   * Whether anybody is asked. Default false, whatever else stands here; a section with settings and without this is a warning
   * (`section_off`) of each assembly.
   */
  enabled?: boolean | null;
  /** Whether a call is denied when they cannot answer. Default true. */
  fail_closed?: boolean;
  /** What names the agent to them. */
  passport?: string | null;
  /** Who is asked. */
  provider?: GuardrailProvider | null;
  [yours: `x-${string}`]: unknown;
};

/** A hook. */
export type HookName = "before_agent" | "before_model" | "wrap_model_call" | "after_model" | "wrap_tool_call" | "after_agent";

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
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
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
  kind: "tool" | "model" | "guardrail" | "middleware" | "sandbox" | "memory" | (string & {});
  /** The tool, the model, the guardrail or the middleware; of a sandbox acquire, release, read_file or write_file; of a memory add. */
  name: string;
  /** A tool: its arguments. A model: system, messages, tools, tool_choice. A guardrail: the tool call that it is asked about (schema guardrail_request). A middleware: where in the run it is asked, and about what (schema middleware_question). A sandbox: user_id, thread_id, and as the name needs them sandbox_id, path, text. A memory: user_id, agent_name, thread_id, trace_id, messages. */
  args: Record<string, unknown>;
  /** The model's id of the tool call that is asked for, or asked about. */
  tool_call_id: string | null;
  /** How long the answer may take. The run, or the subagent that asks, may end before; then host_call_cancelled says so. */
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
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
  type: "host_call";
  /** When. */
  at: string;
  data: HostCallData;
};

/** How the host is asked. */
export type HostGuardrailConfig = {
  /** The `name` of the host calls. Default `guardrail`. */
  name?: string;
  /** How long the host has for an answer, in milliseconds. Default 10000. */
  timeout_ms?: number;
  [yours: `x-${string}`]: unknown;
};

/** A middleware that the host is: at each of its hooks a host call of the kind `middleware` asks for a verdict. */
export type HostMiddlewareConfig = {
  /** Where the host is asked, at least one hook. Other hooks cost nothing. */
  hooks: HookName[];
  /** Only calls of these tools, for `wrap_tool_call`. Default: all calls. */
  tools?: string[] | null;
  /** When the host is asked about a tool call. Default `before`. */
  when?: When | null;
  /** Channels whose values come with each question; `messages` has a member of its own. */
  reads?: string[];
  /** How many of the newest messages come with each question but those about tool calls, 0 to 1000. Default 1. */
  messages?: number | null;
  /** How long the host has for one verdict, in milliseconds. Default 600000. */
  timeout_ms?: number | null;
  /** What counts when there is no verdict by then. Default `fail`. */
  on_timeout?: OnTimeout;
  [yours: `x-${string}`]: unknown;
};

/** A tool that the host runs. */
export type HostToolConfig = {
  /** Name, 1 to 64 characters of `A-Z a-z 0-9 _ -`, unique within the assembly. */
  name: string;
  /** What it does, for the model. */
  description?: string;
  /** JSON Schema of the arguments object. Default: an object without members. */
  parameters?: Record<string, unknown> | null;
  /**
   * The group that agents choose it by (`tool_groups`). Default: none, and then it is there for every agent
   * but those whose list of groups is empty.
   */
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

/**
 * How many model calls run at once, and how they are tried again, in lead agents (MW-LLM). What a model's own configuration
 * says about its retries wins.
 */
export type LlmCallConfig = {
  /**
   * Most at once in a runtime, 0 for any number; calls beyond it wait in the order in which they came. It bounds attempts:
   * who waits to try again holds no place, while a host model does until it has answered, also if it waits for other runs
   * of the runtime. The first number that the runtime or one of its lead agents has counts for as long as the runtime lives.
   * Default 0.
   */
  max_concurrent_calls?: number;
  /** Attempts, the first included, 1 to 101. Default 3. */
  retry_max_attempts?: number;
  /** The first wait, in milliseconds; later ones are drawn between it and three times the one before. Default 1000. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8000. */
  retry_cap_delay_ms?: number;
  /** The first wait where an endpoint is called too fast, in milliseconds. Default 5000. */
  burst_retry_base_delay_ms?: number;
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
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
  type: "log";
  /** When. */
  at: string;
  data: LogData;
};

/** Stops models that repeat themselves (MW-LOOP). */
export type LoopDetectionConfig = {
  /** Whether it does. Default true. */
  enabled?: boolean | null;
  /** Replies with the same calls before the model is warned. Default 3. */
  warn_threshold?: number;
  /** Replies with the same calls before it is stopped. Default 5. */
  hard_limit?: number;
  /** Replies that are looked at. Default 20. */
  window_size?: number;
  /** Runs that are remembered. Default 100. */
  max_tracked_threads?: number;
  /** Calls of one tool before the model is warned. Default 30. */
  tool_freq_warn?: number;
  /** Calls of one tool before it is stopped. Default 50. */
  tool_freq_hard_limit?: number;
  /** The last two, by tool. */
  tool_freq_overrides?: Record<string, ToolFrequencyConfig>;
  [yours: `x-${string}`]: unknown;
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

/** What is remembered between threads (MEM-1). */
export type MemoryConfig = {
  /** Whether anything is. Default true; an agent's record can only switch it off (CA-7). */
  enabled?: boolean;
  /** Who writes: the library after each turn, or the model with tools. Default `middleware`. */
  mode?: MemoryMode;
  /** Whether the model is shown what is remembered. Default true. */
  injection_enabled?: boolean;
  /** How long shutting down waits for what is still to be written, in seconds, 1 to 300. Default 30. */
  shutdown_flush_timeout_seconds?: number;
  /**
   * Which memory: `host` for one that the host has, which it is told each turn for by a host call of the kind `memory`;
   * `deermem`, which does nothing in this version; or `noop` for none. Default `deermem`.
   */
  manager_class?: string;
  /** Settings of that memory, as they are. */
  backend_config?: Record<string, unknown>;
  [yours: `x-${string}`]: unknown;
};

/** Who writes to the memory. */
export type MemoryMode = "middleware" | "tool";

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
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
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
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
  type: "message";
  /** When. */
  at: string;
  data: MessageData;
};

/** A middleware by name; an object has its settings beside the name, or the member host, which makes it one that the host is, under a name of its own. */
export type MiddlewareConfig = string | {
  name: string;
  host?: HostMiddlewareConfig;
};

/** A middleware did something that is worth a record. No secret is ever part of it. */
export type MiddlewareData = {
  /** What it is about: skill_activation (a skill was activated by a slash), skill_secrets (which secrets active skills may use, by name), guardrail (a call was denied, or nobody could tell), sandbox_audit (a shell command was refused, or is risky); more may come. */
  tag: string;
  /** What was done: activate, bind_secrets, deny_tool_call, allow_tool_call_after_provider_error, block_command, warn_of_command; more may come. */
  action: string;
  /** The facts. activate: skill_name, category, path, content_hash. bind_secrets: skills, secrets (names), missing (names by skill). Of a call: tool_name, tool_call_id, what decided and why, never its arguments. Of a command: its rule, and its first 200 characters. */
  changes: Record<string, unknown>;
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

/** A middleware did something that is worth a record. No secret is ever part of it. */
export type MiddlewareEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
  type: "middleware";
  /** When. */
  at: string;
  data: MiddlewareData;
};

/** The args of a host call of the kind middleware. */
export type MiddlewareQuestion = {
  /** Where in the run; it decides which members there are. */
  hook: "before_agent" | "before_model" | "wrap_model_call" | "after_model" | "wrap_tool_call" | "after_agent";
  /** Of wrap_tool_call: whether the call is yet to be made, or has its result. */
  phase?: "before" | "after";
  run_id: string;
  thread_id: string;
  /** How many messages there are: of the thread, or of the request of wrap_model_call. Not with tool calls. */
  message_count?: number;
  /** The newest of them, as many as the configuration asks for, oldest first. Not with tool calls. */
  messages?: Message[];
  /** The channels of "reads" that have a value; as they stood before the call, with calls. */
  channels?: Record<string, unknown>;
  /** Of wrap_model_call: names of the tools that the model is told of. */
  tools?: string[];
  /** Of wrap_model_call: the lower-case hex SHA-256 of the system text as JSON; null without one. */
  system_hash?: string | null;
  /** Of wrap_tool_call: the ai message that calls. */
  message_id?: string;
  /** Of wrap_tool_call: the call. */
  call?: {
    id: string;
    name: string;
    /** As the model said them, or as middleware outside of this one changed them: not checked yet. */
    args: Record<string, unknown>;
  };
  /** Of wrap_tool_call after the call: what the model is to read. */
  result?: {
    /** Text, or a list of content blocks. */
    content: unknown;
    status: "success" | "error";
    /** What is for the host and not for the model; absent without one. */
    artifact?: unknown;
  };
};

/** What stands under ok in the answer to a host call of the kind middleware. */
export type MiddlewareVerdict = {
  verdict: "continue";
  [yours: `x-${string}`]: unknown;
} | {
  verdict: "change";
  /** State hooks: channel writes, like a tool's. No system messages, and not the channel jump_to. */
  update?: Record<string, unknown> | null;
  /** State hooks: where the run goes from here. */
  jump_to?: "model" | "tools" | "end" | null;
  /** wrap_model_call: texts at the end of this request, as hidden human messages; not stored. */
  append?: string[];
  /** wrap_model_call: names of tools that the model is not told of in this request. */
  without_tools?: string[];
  /** wrap_model_call: the reply, as a host model gives one; the model is not asked. */
  reply?: unknown;
  /** wrap_tool_call, before: the arguments; they are checked against the tool's schema. */
  args?: Record<string, unknown> | null;
  /** wrap_tool_call, before: the answer, as a host tool gives one; the tool is not called. */
  result?: unknown;
  /** wrap_tool_call, after: what the model reads in place of the tool's content. */
  content?: unknown;
  [yours: `x-${string}`]: unknown;
} | {
  verdict: "deny";
  /** Why; not blank. */
  reason: string;
  [yours: `x-${string}`]: unknown;
} | {
  verdict: "end";
  /** What the agent says last; not after a tool call, whose result stands. */
  message?: string | null;
  [yours: `x-${string}`]: unknown;
} | {
  verdict: "pause";
  /** What is waited for; part of the result's cancel_reason. */
  reason?: string | null;
  [yours: `x-${string}`]: unknown;
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
  /**
   * Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients; in lead
   * agents one less than `llm_call.retry_max_attempts`.
   */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500; in lead agents `llm_call.retry_base_delay_ms`. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000; in lead agents `llm_call.retry_cap_delay_ms`. */
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
   * streamed of the message is void. Default false: the call fails, and the part is kept.
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
  /**
   * Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients; in lead
   * agents one less than `llm_call.retry_max_attempts`.
   */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500; in lead agents `llm_call.retry_base_delay_ms`. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000; in lead agents `llm_call.retry_cap_delay_ms`. */
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
   * streamed of the message is void. Default false: the call fails, and the part is kept.
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
  /**
   * Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients; in lead
   * agents one less than `llm_call.retry_max_attempts`.
   */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500; in lead agents `llm_call.retry_base_delay_ms`. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000; in lead agents `llm_call.retry_cap_delay_ms`. */
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
   * streamed of the message is void. Default false: the call fails, and the part is kept.
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
  /**
   * Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients; in lead
   * agents one less than `llm_call.retry_max_attempts`.
   */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500; in lead agents `llm_call.retry_base_delay_ms`. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000; in lead agents `llm_call.retry_cap_delay_ms`. */
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
   * streamed of the message is void. Default false: the call fails, and the part is kept.
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
  /** How many this model is given, as things stand. */
  max_attempts: number;
  /** The class of the failure; new classes may come. */
  reason: "quota" | "auth" | "burst_rate" | "transient" | "busy" | "generic" | (string & {});
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
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
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
  /**
   * Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients; in lead
   * agents one less than `llm_call.retry_max_attempts`.
   */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500; in lead agents `llm_call.retry_base_delay_ms`. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000; in lead agents `llm_call.retry_cap_delay_ms`. */
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
   * streamed of the message is void. Default false: the call fails, and the part is kept.
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
  /**
   * Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients; in lead
   * agents one less than `llm_call.retry_max_attempts`.
   */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500; in lead agents `llm_call.retry_base_delay_ms`. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000; in lead agents `llm_call.retry_cap_delay_ms`. */
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
   * streamed of the message is void. Default false: the call fails, and the part is kept.
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
  /**
   * Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients; in lead
   * agents one less than `llm_call.retry_max_attempts`.
   */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500; in lead agents `llm_call.retry_base_delay_ms`. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000; in lead agents `llm_call.retry_cap_delay_ms`. */
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
   * streamed of the message is void. Default false: the call fails, and the part is kept.
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
  /**
   * Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients; in lead
   * agents one less than `llm_call.retry_max_attempts`.
   */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500; in lead agents `llm_call.retry_base_delay_ms`. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000; in lead agents `llm_call.retry_cap_delay_ms`. */
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
   * streamed of the message is void. Default false: the call fails, and the part is kept.
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

/** What a model costs, for a million tokens. */
export type ModelPricing = {
  /** Of the prices, such as `USD`. */
  currency?: string | null;
  /** Read. */
  input_per_million?: number | null;
  /** Written. */
  output_per_million?: number | null;
  /** Read from the endpoint's cache. Default: as read. */
  input_cache_hit_per_million?: number | null;
  [yours: `x-${string}`]: unknown;
};

/** A model given in place, or the name of one of the runtime's. */
export type ModelRef = string | Model;

/** A directory of the machine that agents see. */
export type MountConfig = {
  /** Where it is. */
  host_path: string;
  /** Where agents see it. */
  container_path: string;
  /** Whether they may only read it. Default false. */
  read_only?: boolean;
  [yours: `x-${string}`]: unknown;
};

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
  /**
   * Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients; in lead
   * agents one less than `llm_call.retry_max_attempts`.
   */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500; in lead agents `llm_call.retry_base_delay_ms`. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000; in lead agents `llm_call.retry_cap_delay_ms`. */
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
   * streamed of the message is void. Default false: the call fails, and the part is kept.
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
  /** Its name for people. */
  display_name?: string | null;
  /** What it is for. */
  description?: string | null;
  /** Tokens that it takes and writes together. */
  context_window?: number | null;
  /** What it costs. */
  pricing?: ModelPricing | null;
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
  /**
   * Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients; in lead
   * agents one less than `llm_call.retry_max_attempts`.
   */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500; in lead agents `llm_call.retry_base_delay_ms`. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000; in lead agents `llm_call.retry_cap_delay_ms`. */
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
   * streamed of the message is void. Default false: the call fails, and the part is kept.
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
  /** Its name for people. */
  display_name?: string | null;
  /** What it is for. */
  description?: string | null;
  /** Tokens that it takes and writes together. */
  context_window?: number | null;
  /** What it costs. */
  pricing?: ModelPricing | null;
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
  /**
   * Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients; in lead
   * agents one less than `llm_call.retry_max_attempts`.
   */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500; in lead agents `llm_call.retry_base_delay_ms`. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000; in lead agents `llm_call.retry_cap_delay_ms`. */
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
   * streamed of the message is void. Default false: the call fails, and the part is kept.
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
  /** Its name for people. */
  display_name?: string | null;
  /** What it is for. */
  description?: string | null;
  /** Tokens that it takes and writes together. */
  context_window?: number | null;
  /** What it costs. */
  pricing?: ModelPricing | null;
  [yours: `x-${string}`]: unknown;
} | {
  provider: "host";
  /** Told to the host in each call, so that one host can answer several models. */
  model?: string | null;
  /** How long the host has for one reply, in milliseconds. Default 600000. */
  deadline_ms?: number | null;
  /**
   * Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients; in lead
   * agents one less than `llm_call.retry_max_attempts`.
   */
  max_retries?: number;
  /** The first wait, in milliseconds. Default 500; in lead agents `llm_call.retry_base_delay_ms`. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000; in lead agents `llm_call.retry_cap_delay_ms`. */
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
   * streamed of the message is void. Default false: the call fails, and the part is kept.
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
  /** Its name for people. */
  display_name?: string | null;
  /** What it is for. */
  description?: string | null;
  /** Tokens that it takes and writes together. */
  context_window?: number | null;
  /** What it costs. */
  pricing?: ModelPricing | null;
  [yours: `x-${string}`]: unknown;
} | {
  /** The class. */
  use: "langchain_openai:ChatOpenAI" | "deerflow.models.patched_openai:PatchedChatOpenAI" | "deerflow.models.patched_mimo:PatchedChatMiMo" | "deerflow.models.patched_stepfun:PatchedChatStepFun" | "deerflow.models.patched_minimax:PatchedChatMiniMax" | "deerflow.models.vllm_provider:VllmChatModel" | "langchain_deepseek:ChatDeepSeek" | "deerflow.models.patched_deepseek:PatchedChatDeepSeek" | "langchain_groq:ChatGroq" | "langchain_xai:ChatXAI" | "langchain_together:ChatTogether" | "langchain_fireworks:ChatFireworks";
  /** Name of the model, as the endpoint knows it. */
  model?: string;
  /** Name of the model, as the endpoint knows it. */
  model_name?: string;
  /** The key. A literal, or `$NAME` for a variable of the environment. Without it no such header is sent. */
  api_key?: string | null;
  /** The key. A literal, or `$NAME` for a variable of the environment. Without it no such header is sent. */
  openai_api_key?: string | null;
  /** The key. A literal, or `$NAME` for a variable of the environment. Without it no such header is sent. */
  groq_api_key?: string | null;
  /** The key. A literal, or `$NAME` for a variable of the environment. Without it no such header is sent. */
  xai_api_key?: string | null;
  /** The key. A literal, or `$NAME` for a variable of the environment. Without it no such header is sent. */
  together_api_key?: string | null;
  /** The key. A literal, or `$NAME` for a variable of the environment. Without it no such header is sent. */
  fireworks_api_key?: string | null;
  /** Where the endpoint is; `/chat/completions` is added to its path. A query stays in place. */
  base_url?: string;
  /** Where the endpoint is; `/chat/completions` is added to its path. A query stays in place. */
  api_base?: string;
  /** Where the endpoint is; `/chat/completions` is added to its path. A query stays in place. */
  openai_api_base?: string;
  /** Where the endpoint is; `/chat/completions` is added to its path. A query stays in place. */
  groq_api_base?: string;
  /** Where the endpoint is; `/chat/completions` is added to its path. A query stays in place. */
  xai_api_base?: string;
  /** In seconds. */
  timeout?: number;
  /** In seconds. */
  request_timeout?: number;
  /** In seconds. */
  stream_chunk_timeout?: number;
  /**
   * Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients; in lead
   * agents one less than `llm_call.retry_max_attempts`.
   */
  max_retries?: number;
  /** More headers, by name. Values are literals or `$NAME` and are treated as secrets. */
  default_headers?: Record<string, string>;
  organization?: string;
  openai_organization?: string;
  /**
   * URL of an HTTP proxy (`http://host:port`), literal or `$NAME`. Proxies that the environment names are not
   * used unless they are named here, as in `"$HTTPS_PROXY"`.
   */
  openai_proxy?: string | null;
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
  /**
   * More members of the request body. Members that are set elsewhere are refused; `stream_options` replaces
   * ours, and null there leaves it out.
   */
  extra_body?: Record<string, unknown>;
  model_kwargs?: Record<string, unknown>;
  frequency_penalty?: unknown;
  presence_penalty?: unknown;
  logit_bias?: unknown;
  logprobs?: unknown;
  top_logprobs?: unknown;
  stop?: unknown;
  service_tier?: unknown;
  store?: unknown;
  metadata?: unknown;
  verbosity?: unknown;
  /** Whether the reply is streamed. Default true. */
  streaming?: boolean;
  disable_streaming?: boolean;
  stream_usage?: boolean;
  cumulative_stream_usage?: unknown;
  use_responses_api?: boolean;
  output_version?: string;
  /** How the key is sent. Default `bearer`. */
  auth?: AuthStyle;
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
  /** Whether the reasoning of earlier replies goes back to the model as `reasoning_content`. Default false. */
  replay_reasoning?: boolean;
  /** Added to the address as `api-version=…`, for endpoints that want it there. */
  api_version?: string | null;
  /** The first wait, in milliseconds. Default 500; in lead agents `llm_call.retry_base_delay_ms`. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000; in lead agents `llm_call.retry_cap_delay_ms`. */
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
   * streamed of the message is void. Default false: the call fails, and the part is kept.
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
  /** Its name for people. */
  display_name?: string | null;
  /** What it is for. */
  description?: string | null;
  /** Tokens that it takes and writes together. */
  context_window?: number | null;
  /** What it costs. */
  pricing?: ModelPricing | null;
  [yours: `x-${string}`]: unknown;
} | {
  /** The class. */
  use: "langchain_anthropic:ChatAnthropic" | "deerflow.models.claude_provider:ClaudeChatModel";
  /** Name of the model, as the endpoint knows it. */
  model?: string;
  /** Name of the model, as the endpoint knows it. */
  model_name?: string;
  /** The key. A literal, or `$NAME` for a variable of the environment. Without it no such header is sent. */
  api_key?: string | null;
  /** The key. A literal, or `$NAME` for a variable of the environment. Without it no such header is sent. */
  anthropic_api_key?: string | null;
  /**
   * Where the endpoint is; `/v1/messages` is added to its path, or `/messages` where the path ends with `/v1`. A
   * query stays in place.
   */
  base_url?: string;
  /**
   * Where the endpoint is; `/v1/messages` is added to its path, or `/messages` where the path ends with `/v1`. A
   * query stays in place.
   */
  anthropic_api_url?: string;
  /** In seconds. */
  timeout?: number;
  /** In seconds. */
  default_request_timeout?: number;
  stream_chunk_timeout?: unknown;
  /**
   * Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients; in lead
   * agents one less than `llm_call.retry_max_attempts`.
   */
  max_retries?: number;
  /** More headers, by name, such as `anthropic-beta`. Values are literals or `$NAME` and are treated as secrets. */
  default_headers?: Record<string, string>;
  /**
   * URL of an HTTP proxy (`http://host:port`), literal or `$NAME`. Proxies that the environment names are not
   * used unless they are named here, as in `"$HTTPS_PROXY"`.
   */
  anthropic_proxy?: string | null;
  betas?: string[];
  /** Sampling temperature. */
  temperature?: number | null;
  /**
   * Most tokens that the model may write, thinking included. Default: what the model is known to allow, else 4096,
   * beside a `budget_tokens` that is larger.
   */
  max_tokens?: number | null;
  /**
   * Most tokens that the model may write, thinking included. Default: what the model is known to allow, else 4096,
   * beside a `budget_tokens` that is larger.
   */
  max_tokens_to_sample?: number | null;
  /** Nucleus sampling: the probability mass to draw from. */
  top_p?: number | null;
  /** How many of the likeliest tokens to draw from. */
  top_k?: number | null;
  /** Texts at which the model stops. */
  stop_sequences?: string[];
  /** Texts at which the model stops. */
  stop?: string[];
  /**
   * How the model thinks, sent as given: `{"type":"enabled","budget_tokens":10000}`, `{"type":"adaptive"}`,
   * `{"type":"disabled"}`, or a form to come.
   */
  thinking?: Record<string, unknown> | null;
  /** How hard the model works, in the endpoint's own words; sent as `output_config.effort`. */
  effort?: string | null;
  /** How hard the model works, in the endpoint's own words; sent as `output_config.effort`. */
  reasoning_effort?: string | null;
  model_kwargs?: Record<string, unknown>;
  /** Whether the reply is streamed. Default true. */
  streaming?: boolean;
  disable_streaming?: boolean;
  stream_usage?: unknown;
  retry_max_attempts?: number;
  enable_prompt_caching?: boolean;
  prompt_cache_size?: unknown;
  auto_thinking_budget?: boolean;
  /** How the key is sent. Default `x-api-key`. */
  auth?: AuthStyle;
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
  /** Whether the model may call several tools at once. Sent only when set. */
  parallel_tool_calls?: boolean | null;
  /** Sent as `anthropic-version`. Default `2023-06-01`. */
  api_version?: string;
  /** More members of the request body. Members that are set elsewhere are refused. */
  extra_body?: Record<string, unknown>;
  /** The first wait, in milliseconds. Default 500; in lead agents `llm_call.retry_base_delay_ms`. */
  retry_base_delay_ms?: number;
  /** The longest wait of our own choosing, in milliseconds. Default 8,000; in lead agents `llm_call.retry_cap_delay_ms`. */
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
   * streamed of the message is void. Default false: the call fails, and the part is kept.
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
  /** Its name for people. */
  display_name?: string | null;
  /** What it is for. */
  description?: string | null;
  /** Tokens that it takes and writes together. */
  context_window?: number | null;
  /** What it costs. */
  pricing?: ModelPricing | null;
  [yours: `x-${string}`]: unknown;
};

/** What counts when the host gives no verdict: its time is up, it says that it cannot, or its queue is gone. */
export type OnTimeout = "continue" | "deny" | "fail";

/** What makes Markdown of PDF in DeerFlow. */
export type PdfConverter = "auto" | "pymupdf4llm" | "markitdown";

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

/** Wants a file to be read before it is written (MW-RBW). */
export type ReadBeforeWriteConfig = {
  /** Whether it does. Default true. */
  enabled?: boolean | null;
  [yours: `x-${string}`]: unknown;
};

/** How hard a custom agent thinks. */
export type ReasoningEffort = "low" | "medium" | "high";

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

/** What a role may use. A resource that is not named is not restricted. */
export type RoleConfig = {
  /** Tools, by name. */
  tools?: AccessPolicy | null;
  /** Models, by name. */
  models?: AccessPolicy | null;
  /** Routes of DeerFlow's server, which mean nothing here. */
  routes?: AccessPolicy | null;
  /** Skills. Not available in this version. */
  skills?: null;
  /** The sandbox. Not available in this version. */
  sandbox?: null;
  /** MCP servers. Not available in this version. */
  mcp_servers?: null;
  [yours: `x-${string}`]: unknown;
};

/** The last event of a run: its result. */
export type RunEndData = {
  run_id: string;
  thread_id: string;
  /** How it ended: with an answer, with an error, or cancelled or paused. */
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
  /** Tokens of the run's delegations that have ended, all model calls of the subagents; there only when some were told of. */
  subagent_usage?: {
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
  /** What the run asked the user, when it ended with a question: version, kind, request_id, question, and options or a form. */
  human_input?: Record<string, unknown>;
  /** An error object; only with the status error. */
  error?: Record<string, unknown>;
  /** Which limit ended the run early, though it succeeded; there only when one did. */
  stop_reason?: "loop_capped" | "token_capped" | "safety_capped" | "subagent_limit_capped" | "model_length_capped";
  /** Why it was cancelled, or what a middleware of the host paused it for; only with the status interrupted. */
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
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
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
  op: "cancel_task";
  /** The task call, as the events task_started and those after it name it. */
  task_id: string;
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
  /** Whether the run, or a delegation of this call, was still going. */
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
   * Messages are taken as the host's own: their roles, names and `additional_kwargs` decide how they are treated, so do not
   * pass on those of a client unread. Channel writes that start the run, such as `{"messages":[{"role":"user","content":"…"}]}`. Null or absent: go on
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
  /**
   * Facts about the request, for middleware. Members whose names begin with `__` are nobody's and are dropped. `secrets`, an
   * object of texts, are secrets for skills: they are kept out of what parts of the agent, events and stores are shown.
   */
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
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
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
  /** Deterministic mode, for tests and replays. */
  testing?: TestingConfig | null;
  /** Models that assemblies name. Each needs a `name` of its own; the first is the default. */
  models?: NamedModel[] | null;
  /** Tools that lead agents have, in order: those of the host, and those that DeerFlow would load by class. */
  tools?: ConfiguredTool[] | null;
  /** Groups of tools, for the record: what counts is the `group` of a tool. */
  tool_groups?: ToolGroupConfig[] | null;
  /** Whether tools of MCP servers are kept back until they are searched for. */
  tool_search?: ToolSearchConfig | null;
  /** What happens to tool results that are too long. */
  tool_output?: ToolOutputConfig | null;
  /** Stops tools that get nowhere. */
  tool_progress?: ToolProgressConfig | null;
  /** Wants a file to be read before it is written. */
  read_before_write?: ReadBeforeWriteConfig | null;
  /** Where commands and files live. */
  sandbox?: SandboxConfig | null;
  /** Where skills are found, and how the model learns of them. */
  skills?: SkillsConfig | null;
  /** Whether agents write skills. */
  skill_evolution?: SkillEvolutionConfig | null;
  /** Which skills are on; MCP servers and middleware by class are not available in this version. */
  extensions?: ExtensionsConfig | null;
  /** What is remembered between threads. */
  memory?: MemoryConfig | null;
  /** Subagents: kinds, limits and overrides. */
  subagents?: SubagentsConfig | null;
  /** How many subagents run at once. */
  subagent_runtime?: SubagentRuntimeConfig | null;
  /** Shortens long threads: a summary takes the place of their beginning. */
  summarization?: SummarizationConfig | null;
  /** Gives threads a title. */
  title?: TitleConfig | null;
  /** Bounds of uploaded files. */
  uploads?: UploadsConfig | null;
  /** Counts tokens. */
  token_usage?: TokenUsageConfig | null;
  /** Bounds the tokens of a run. */
  token_budget?: TokenBudgetConfig | null;
  /** Stops models that repeat themselves. */
  loop_detection?: LoopDetectionConfig | null;
  /** Recognises replies that a provider cut for safety. */
  safety_finish_reason?: SafetyFinishReasonConfig | null;
  /** Asks somebody before each tool call: lists of tools, or the host. */
  guardrails?: GuardrailsConfig | null;
  /** Who may use which model and tool. */
  authorization?: AuthorizationConfig | null;
  /** How many model calls of lead agents run at once, and how they are tried again. */
  llm_call?: LlmCallConfig | null;
  /** Stops calling a model that keeps failing, in lead agents. */
  circuit_breaker?: CircuitBreakerConfig | null;
  /** Agents behind the Agent Client Protocol. Not available in this version. */
  acp_agents?: Record<string, null> | null;
  /** Custom agents, by name: what DeerFlow keeps in a `config.yaml` each, with a `soul`. They are the operator's, come before those of users, and do not change themselves. */
  agents?: Agent[] | null;
  /** Most steps that a run may ask for, 1 to 1000. Default 1000. */
  max_recursion_limit?: number | null;
  /** The directory that holds `users/…` and `agents/…`: DeerFlow's `DEER_FLOW_HOME`. Default: none, and then nothing is read or written there. */
  home?: string | null;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  config_version?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  log_level?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  logging?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  agents_api?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  suggestions?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  input_polish?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  scheduler?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  mcp_tasks?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  skill_scan?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  subagent_batches?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  channels?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  channel_connections?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  auth?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  run_ownership?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  run_events?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  agent_storage?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  stream_bridge?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  dedupe_storage?: unknown;
  /** A section of DeerFlow's server; taken while it asks for nothing of a library. */
  checkpointer?: unknown;
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
  /** Which agent. Default: all. */
  agent_name?: string | null;
  /** Whose, by the id that runs have. Default: everybody's. */
  user_id?: string | null;
  op: "reset_agent";
  [yours: `x-${string}`]: unknown;
} | {
  op: "reload_skills";
  [yours: `x-${string}`]: unknown;
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

/** Something that recognises a cut reply. */
export type SafetyDetectorConfig = {
  /** How DeerFlow names its class. */
  use: string;
  /** Its settings. */
  config?: Record<string, unknown>;
  [yours: `x-${string}`]: unknown;
};

/** Recognises replies that a provider cut for safety (MW-SAF). */
export type SafetyFinishReasonConfig = {
  /** Whether it does. Default true. */
  enabled?: boolean | null;
  /** What recognises them, as DeerFlow names the classes. Default: all that there are; an empty list is refused. */
  detectors?: SafetyDetectorConfig[] | null;
  [yours: `x-${string}`]: unknown;
};

/** Where commands and files live. */
export type SandboxConfig = {
  /**
   * Which sandbox: `host` for one that the host has, which it is asked for by host calls of the kind `sandbox`. The classes
   * that DeerFlow names are not available in this version.
   */
  use?: "host" | null;
  /** Of the host's sandbox: how long the host has for one call, in milliseconds. Default 120000. */
  deadline_ms?: number | null;
  /**
   * Of the host's sandbox: whether it is asked for at the first call of a tool that works in it, and not at the beginning of
   * a run. Default true.
   */
  lazy_init?: boolean | null;
  /** Whether commands may run on the machine itself. Default false; true is not available in this version. */
  allow_host_bash?: boolean;
  /** Directories of the machine that agents see. Not available in this version. */
  mounts?: MountConfig[];
  /** Variables for commands. Not available in this version. */
  environment?: Record<string, null>;
  /** Characters of a command's output that are kept, 0 for all. Default 20000. */
  bash_output_max_chars?: number;
  /** Characters of a file that are read at once, 0 for all. Default 50000. */
  read_file_output_max_chars?: number;
  /** Characters of a listing that are kept, 0 for all. Default 20000. */
  ls_output_max_chars?: number;
  /** Longest time for one command, in seconds. Default 600. */
  bash_command_timeout?: number;
  /** Of containers. Not available in this version. */
  image?: null;
  /** Of containers. Not available in this version. */
  port?: null;
  /** Of containers. Not available in this version. */
  replicas?: null;
  /** Of containers. Not available in this version. */
  container_prefix?: null;
  /** Of containers. Not available in this version. */
  idle_timeout?: null;
  /** Of containers. Not available in this version. */
  ownership?: null;
  /** Of the host's sandbox: whether its `/mnt/user-data` is the thread's directory below `home`. Default false. */
  thread_data_mounts?: boolean | null;
  /** Of containers. Not available in this version. */
  provisioner_url?: null;
  /** Of containers. Not available in this version. */
  provisioner_api_key?: null;
  [yours: `x-${string}`]: unknown;
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

/** Whether agents write skills (TL-1). */
export type SkillEvolutionConfig = {
  /** Whether they do. Default false. */
  enabled?: boolean;
  /** Model that looks at what they write. Default: the first model. */
  moderation_model_name?: string | null;
  /** Whether nothing is written while that model cannot be asked. Default true. */
  security_fail_closed?: boolean;
  [yours: `x-${string}`]: unknown;
};

/** Whether a skill is on. */
export type SkillStateConfig = {
  /** Whether it is. Default true. */
  enabled?: boolean;
  [yours: `x-${string}`]: unknown;
};

/** Where skills are found, and how the model learns of them. */
export type SkillsConfig = {
  /** How DeerFlow names the class that keeps them: in files, and nothing else in this version. */
  use?: string | null;
  /**
   * The operator's directory of skills; `public/` below it is looked at. Default: none, and then there are none of the
   * operator's.
   */
  path?: string | null;
  /** Where the model sees the directory. Default `/mnt/skills`. */
  container_path?: string;
  /** Whether the model is told the names alone and asks for the rest (PR-5). Default false. */
  deferred_discovery?: boolean;
  [yours: `x-${string}`]: unknown;
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
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
  type: "stream_reset";
  /** When. */
  at: string;
  data: StreamResetData;
};

/** What is different for one subagent. */
export type SubagentOverrideConfig = {
  /** Longest time, in seconds. */
  timeout_seconds?: number | null;
  /** Most turns. */
  max_turns?: number | null;
  /** Its model. Default: its agent's. */
  model?: string | null;
  /** Skills that it may find and activate; empty for none. Default: all that are on. */
  skills?: string[] | null;
  /** Its tokens. */
  token_budget?: TokenBudgetConfig | null;
  [yours: `x-${string}`]: unknown;
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

/** How many subagents run at once (FA-13, RT-30). */
export type SubagentRuntimeConfig = {
  /** How many run at once, 1 to 64. Default 3. */
  max_running?: number;
  /** How many may wait, 0 to 10000. Default 64. */
  max_queued?: number;
  /** What happens when all places are taken. Default `queue`. */
  admission_policy?: AdmissionPolicy;
  /** Longest wait, in seconds, 1 to 86400. Default 300. */
  queue_timeout_seconds?: number;
  [yours: `x-${string}`]: unknown;
};

/** Answer of fawn_subagents_start and fawn_subagents_stop. */
export type SubagentsAnswer = {
  /** Whether the object is started now. */
  started: boolean;
};

/** Subagents: kinds, limits and overrides (SUB-6 to SUB-12). */
export type SubagentsConfig = {
  /** Longest time of a built-in subagent, in seconds. Default 1800. */
  timeout_seconds?: number;
  /** Most turns of a built-in subagent. Default: its own. */
  max_turns?: number | null;
  /**
   * Most delegations of one run, 1 to 50, unless the request says otherwise: the option `max_total_subagents` comes first,
   * more or less. Default 6.
   */
  max_total_per_run?: number;
  /** Tokens of one subagent. Default: on, 2000000, or 1000000 while threads are summarised, with a warning at 0.7. */
  token_budget?: TokenBudgetConfig | null;
  /** What is different for a subagent, by name. One that there is not is a warning of the assembly. */
  agents?: Record<string, SubagentOverrideConfig>;
  /**
   * More subagents, by name; models are told of them in this order. One with the name of a built-in subagent is not used,
   * which is a warning of the assembly; a blank name is refused.
   */
  custom_agents?: Record<string, CustomSubagentConfig>;
  [yours: `x-${string}`]: unknown;
};

/** Input of fawn_subagents_new. */
export type SubagentsObjectConfig = {
  /** How many subagents run at once. Default: the runtime's section `subagent_runtime`. */
  config?: CapacityConfig | null;
  /**
   * Most delegations of one run of an assembly that names the object, 1 to 50, unless the request says otherwise: the option
   * `max_total_subagents` of a lead agent comes first, more or less (RT-40). Default: the runtime's
   * `subagents.max_total_per_run`.
   */
  max_total_per_run?: number | null;
  /** Durable batches. Not available in this version. */
  batch_config?: null;
  [yours: `x-${string}`]: unknown;
};

/** Answer of fawn_subagents_stats. */
export type SubagentsStats = {
  /** How many may run at once. */
  max_running: number;
  /** How many do. */
  running: number;
  /** How many may wait. */
  max_queued: number;
  /** How many do. */
  queued: number;
  /** What happens when all places are taken. */
  admission_policy: AdmissionPolicy;
  /** Most delegations of one run. */
  max_total_per_run: number;
  /** Whether the object was started and not stopped since. */
  started: boolean;
};

/** Runtime-wide events. */
export type Subscription = "log" | "runtime";

/** Shortens long threads (MW-SUM). */
export type SummarizationConfig = {
  /** Whether it does. Default false. */
  enabled?: boolean | null;
  /** Model that writes the summary. Default: the run's. */
  model_name?: string | null;
  /** When: one size or a list of them, of which one is enough. Default: never. */
  trigger?: null | ContextSize | ContextSize[];
  /** How much stays as it is. Default: 20 messages. */
  keep?: ContextSize;
  /** Most tokens that the summary is made from; null for all. Default 4000. */
  trim_tokens_to_summarize?: number | null;
  /** What the model is told, instead of our own text. */
  summary_prompt?: string | null;
  /** Tools whose reading of a SKILL.md is remembered. Default `read_file`, `read`, `view`, `cat`. */
  skill_file_read_tool_names?: string[];
  [yours: `x-${string}`]: unknown;
};

/** A delegation was ended by the host, or with its run. */
export type TaskCancelledData = {
  /** The model's id of the task call. It may come again in a later run. */
  task_id: string;
  /** Why. */
  error: string | null;
  /** Tokens of all the subagent's model calls so far; null when none were told of. Each event has the whole sum. */
  usage: {
    input_tokens: number;
    output_tokens: number;
    total_tokens: number;
    /** Of the input: cache_read, and what else the provider tells. */
    input_token_details?: Record<string, unknown>;
    /** Of the output: reasoning, and what else the provider tells. */
    output_token_details?: Record<string, unknown>;
  } | null;
  /** The model that the subagent uses. */
  model_name: string | null;
  /** What was ended: this delegation alone, by cancel_task (task), or its run, or the calls that the run was making (run). */
  scope: "task" | "run" | (string & {});
  /** The reason given with cancel_task, or with the cancel of the run. */
  reason: string | null;
};

/** A delegation was ended by the host, or with its run. */
export type TaskCancelledEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
  type: "task_cancelled";
  /** When. */
  at: string;
  data: TaskCancelledData;
};

/** A delegation ended with a result. */
export type TaskCompletedData = {
  /** The model's id of the task call. It may come again in a later run. */
  task_id: string;
  /** The whole result. */
  result: string;
  /** The limit that ended the work early; null when none did. */
  stop_reason: "token_capped" | "turn_capped" | "loop_capped" | string | null;
  /** Tokens of all the subagent's model calls so far; null when none were told of. Each event has the whole sum. */
  usage: {
    input_tokens: number;
    output_tokens: number;
    total_tokens: number;
    /** Of the input: cache_read, and what else the provider tells. */
    input_token_details?: Record<string, unknown>;
    /** Of the output: reasoning, and what else the provider tells. */
    output_token_details?: Record<string, unknown>;
  } | null;
  /** The model that the subagent uses. */
  model_name: string | null;
};

/** A delegation ended with a result. */
export type TaskCompletedEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
  type: "task_completed";
  /** When. */
  at: string;
  data: TaskCompletedData;
};

/** A delegation failed, or there was no place for it. */
export type TaskFailedData = {
  /** The model's id of the task call. It may come again in a later run. */
  task_id: string;
  /** Why. */
  error: string | null;
  /** Tokens of all the subagent's model calls so far; null when none were told of. Each event has the whole sum. */
  usage: {
    input_tokens: number;
    output_tokens: number;
    total_tokens: number;
    /** Of the input: cache_read, and what else the provider tells. */
    input_token_details?: Record<string, unknown>;
    /** Of the output: reasoning, and what else the provider tells. */
    output_token_details?: Record<string, unknown>;
  } | null;
  /** The model that the subagent uses. */
  model_name: string | null;
  /** The limit that ended the work early; null when none did. */
  stop_reason: "token_capped" | "turn_capped" | "loop_capped" | string | null;
};

/** A delegation failed, or there was no place for it. */
export type TaskFailedEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
  type: "task_failed";
  /** When. */
  at: string;
  data: TaskFailedData;
};

/** A step of a subagent: a reply of its model, or the result of one of its tools. With the stream mode messages or custom. */
export type TaskRunningData = {
  /** The model's id of the task call. It may come again in a later run. */
  task_id: string;
  /** A message in canonical form, the layout of LangChain's model_dump. Each class has members of its own besides these. */
  message: Message;
  /** Which step it is, from 1. */
  message_index: number;
  /** Steps so far. */
  total_messages: number;
  /** Tokens of all the subagent's model calls so far; null when none were told of. Each event has the whole sum. */
  usage: {
    input_tokens: number;
    output_tokens: number;
    total_tokens: number;
    /** Of the input: cache_read, and what else the provider tells. */
    input_token_details?: Record<string, unknown>;
    /** Of the output: reasoning, and what else the provider tells. */
    output_token_details?: Record<string, unknown>;
  } | null;
  /** The model that the subagent uses. */
  model_name: string | null;
};

/** A step of a subagent: a reply of its model, or the result of one of its tools. With the stream mode messages or custom. */
export type TaskRunningEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
  type: "task_running";
  /** When. */
  at: string;
  data: TaskRunningData;
};

/** A delegation begins: a subagent is to do a piece of work. It may wait for a place first. */
export type TaskStartedData = {
  /** The model's id of the task call. It may come again in a later run. */
  task_id: string;
  /** Name of the subagent. */
  subagent_type: string;
  /** What the agent calls the work; may be empty. */
  description: string;
  /** The model that the subagent uses. */
  model_name: string | null;
};

/** A delegation begins: a subagent is to do a piece of work. It may wait for a place first. */
export type TaskStartedEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
  type: "task_started";
  /** When. */
  at: string;
  data: TaskStartedData;
};

/** The time of a delegation was over. */
export type TaskTimedOutData = {
  /** The model's id of the task call. It may come again in a later run. */
  task_id: string;
  /** Why. */
  error: string | null;
  /** Tokens of all the subagent's model calls so far; null when none were told of. Each event has the whole sum. */
  usage: {
    input_tokens: number;
    output_tokens: number;
    total_tokens: number;
    /** Of the input: cache_read, and what else the provider tells. */
    input_token_details?: Record<string, unknown>;
    /** Of the output: reasoning, and what else the provider tells. */
    output_token_details?: Record<string, unknown>;
  } | null;
  /** The model that the subagent uses. */
  model_name: string | null;
};

/** The time of a delegation was over. */
export type TaskTimedOutEvent = {
  /** Strictly increasing within a run; a hole is told by a gap event. */
  seq: number;
  /** Absent in events of no run. */
  run_id?: string;
  /** Absent in events of no run. */
  thread_id?: string;
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
  type: "task_timed_out";
  /** When. */
  at: string;
  data: TaskTimedOutData;
};

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

/** Gives threads a title (MW-TTL). */
export type TitleConfig = {
  /** Whether it does. Default true. */
  enabled?: boolean | null;
  /** How many words the model of titles is told to keep to, 1 to 20; what it says is cut by `max_chars` alone. Default 6. */
  max_words?: number;
  /** Most characters, 10 to 200. Default 60. */
  max_chars?: number;
  /** Model that writes it. Default: none, the beginning of the first message is the title. */
  model_name?: string | null;
  /** What the model is told, instead of our own text. */
  prompt_template?: string | null;
  [yours: `x-${string}`]: unknown;
};

/** TLS settings of a provider. */
export type TlsConfig = {
  /** File of CA certificates in PEM form. Only these are trusted then, not those of the system. */
  ca_file?: string | null;
  [yours: `x-${string}`]: unknown;
};

/** Bounds the tokens of a run (MW-TBG). */
export type TokenBudgetConfig = {
  /** Whether it does. Default false. */
  enabled?: boolean | null;
  /** Most tokens, read and written. Default 200000. */
  max_tokens?: number;
  /** Most tokens read. */
  max_input_tokens?: number | null;
  /** Most tokens written. */
  max_output_tokens?: number | null;
  /** The part after which the model is warned, 0 to 1. Default 0.8. */
  warn_threshold?: number;
  /** The part after which the run is stopped, 0 to 1 and not below the warning. Default 1. */
  hard_stop_threshold?: number;
  [yours: `x-${string}`]: unknown;
};

/** Counts tokens (MW-TKU). */
export type TokenUsageConfig = ReadBeforeWriteConfig;

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

/** How often one tool may be called. */
export type ToolFrequencyConfig = {
  /** Calls before the model is warned. */
  warn: number;
  /** Calls before it is stopped; not below `warn`. */
  hard_limit: number;
  [yours: `x-${string}`]: unknown;
};

/** A group of tools. */
export type ToolGroupConfig = {
  /** Name. */
  name: string;
  [yours: `x-${string}`]: unknown;
};

/** What happens to tool results that are too long (MW-TOB). */
export type ToolOutputConfig = {
  /** Whether anything does. Default true. */
  enabled?: boolean | null;
  /** Characters beyond which a result goes into a file, 0 for never. Default 12000. */
  externalize_min_chars?: number;
  /** Characters of its beginning that the model still sees. Default 2000. */
  preview_head_chars?: number;
  /** Characters of its end that the model still sees. Default 1000. */
  preview_tail_chars?: number;
  /** Characters beyond which a result is cut where there is no file, 0 for never. Default 30000. */
  fallback_max_chars?: number;
  /** Characters of its beginning that are left then. Default 8000. */
  fallback_head_chars?: number;
  /** Characters of its end that are left then. Default 3000. */
  fallback_tail_chars?: number;
  /** Name of the directory for the files, without separators. Default `.tool-results`. */
  storage_subdir?: string;
  /** Tools whose results stay. Default `read_file`, `read_file_tool`. */
  exempt_tools?: string[];
  /** `externalize_min_chars` by tool. */
  tool_overrides?: Record<string, number>;
  [yours: `x-${string}`]: unknown;
};

/** Stops tools that get nowhere (MW-TPR). */
export type ToolProgressConfig = {
  /** Whether it does. Default false. */
  enabled?: boolean | null;
  /** Problems in a row before the model is warned. Default 3. */
  stagnation_threshold?: number;
  /** Problems after the warning before the tool is blocked. Default 2. */
  warn_escalation_count?: number;
  /** Whether the model is told. Default true. */
  inject_assessment?: boolean;
  /** How alike two results are that count as the same, 0 to 1. Default 0.8. */
  jaccard_similarity_threshold?: number;
  /** Results with fewer different words are not compared. Default 10. */
  min_word_count_for_similarity?: number;
  /** Tools that are left alone. Default `ask_clarification`, `write_todos`, `present_files`, `task`. */
  exempt_tools?: string[];
  /** Threads that are remembered. Default 100. */
  max_tracked_threads?: number;
  [yours: `x-${string}`]: unknown;
};

/** Whether tools of MCP servers are kept back until they are searched for (TL-11). */
export type ToolSearchConfig = {
  /** Whether they are. Default false. */
  enabled?: boolean;
  /** How many tools a request may bring forward by its keywords (TL-18); taken as 1 to 5. Default 3. */
  auto_promote_top_k?: number;
  [yours: `x-${string}`]: unknown;
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
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
  type: "update";
  /** When. */
  at: string;
  data: UpdateData;
};

/** Bounds of uploaded files. Uploading is the host's; these are for whoever asks. */
export type UploadsConfig = {
  /** Most files at once. Default 10. */
  max_files?: number;
  /** Most bytes of one. Default 52428800. */
  max_file_size?: number;
  /** Most bytes of all together. Default 104857600. */
  max_total_size?: number;
  /** Whether documents become Markdown. Default false; true is not available in this version. */
  auto_convert_documents?: boolean;
  /** What would do it for PDF. */
  pdf_converter?: PdfConverter;
  [yours: `x-${string}`]: unknown;
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
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
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
  /** In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself. */
  task_id?: string;
  type: "values";
  /** When. */
  at: string;
  data: ValuesData;
};

/** When the host is asked about a tool call. */
export type When = "before" | "after" | "both";
