// Which configurations the types take and which they refuse; what they refuse, the library refuses too. Compiled, not run.
import { Runtime } from 'fawn';
import type { AgentConfig, AssemblyConfig, HostRuntimeConfig, Memory, Sandbox, Subagents, Tool } from 'fawn';

const execute = async (): Promise<string> => 'y';
const tool: Tool = { name: 'x', execute };
const names: string[] = ['orders', 'refund'];
declare const asks: boolean;
declare const payload: AssemblyConfig;
declare const subagents: Subagents;

// Lead agents: everything but a model.
const lead: AgentConfig[] = [
  { factory: 'lead' },
  { factory: 'lead_graph' },
  { factory: 'lead', configurable: { is_plan_mode: true, model_name: 'main' }, context: { user_id: 'u-1' } },
  { factory: 'lead', tools: [{ name: 'x', execute }, tool, ...names.map((name) => ({ name, execute }))] },
  { factory: 'lead', tools: [{ name: 'x', execute: ({ city }: { city: string }, { signal }) => [city, signal.aborted] }] },
  { factory: 'lead', app_config: { models: [{ name: 'm', provider: 'scripted', replies: [] }] } },
  { factory: 'lead', app_config: { models: [{ name: 'm', provider: 'host', execute: ({ messages }) => String(messages.length) }] } },
  { factory: 'lead', app_config: { tools: [tool, { name: 'web', use: 'somewhere:web', results: 5 }], guardrails: null } },
  { factory: 'lead', app_config: null, recursion_limit: 5, assistant_id: null, 'x-mine': () => 1 },
  { factory: 'lead', extra_middleware: ['title', { name: 'm', after: 'title', host: { hooks: ['before_agent'] }, execute: () => ({ verdict: 'continue' }) }] },
  { factory: asks ? 'lead' : 'lead_graph', tools: [] },
  { factory: 'lead', subagent_runtime: subagents, app_config: { subagent_runtime: { max_running: 5 } } },
  { factory: 'lead_graph', subagent_runtime: subagents.toJSON() },
];

// Agents that a host composes itself.
const composed: AgentConfig[] = [
  { model: 'm' },
  { model: 'm', factory: 'custom', system_prompt: 'Be brief.', tools: [tool], middleware: null },
  { factory: 'direct', model: 'm', plan_mode: true },
  { factory: 'direct', model: 'm', features: { loop_detection: false, token_budget: { max_tokens: 5 } }, name: 'clerk' },
  { factory: 'direct', model: { provider: 'host', execute }, extra_middleware: [{ name: 'title', before: 'todo', max_words: 5 }] },
  { model: { provider: 'openai', model: 'm', fallbacks: ['n', { provider: 'host', execute }] }, 'x-mine': 1 },
  { factory: 'direct', model: 'm', features: { subagent: true }, subagent_runtime: subagents },
  { factory: 'direct', model: 'm', features: { subagent: true }, subagent_runtime: null },
  payload,
];

const wrong: AgentConfig[] = [
  // @ts-expect-error a lead agent takes its model from the configuration
  { factory: 'lead', model: 'm' },
  // @ts-expect-error so does its bare graph
  { factory: 'lead_graph', model: 'm', tools: [] },
  // @ts-expect-error its system text is the library's
  { factory: 'lead', system_prompt: 'Be brief.' },
  // @ts-expect-error it has no chain of its own
  { factory: 'lead', middleware: [] },
  // @ts-expect-error plan mode is an option of the request
  { factory: 'lead', plan_mode: true },
  // @ts-expect-error others need one
  { tools: [tool] },
  // @ts-expect-error and so does this
  { factory: 'direct', plan_mode: true },
  // @ts-expect-error an unknown member
  { model: 'm', bogus: 1 },
  // @ts-expect-error the plain factory has no features
  { model: 'm', features: {} },
  // @ts-expect-error options are of lead agents
  { factory: 'direct', model: 'm', configurable: {} },
  // @ts-expect-error the plain factory has no subagents
  { model: 'm', subagent_runtime: subagents },
  // @ts-expect-error a subagents object, not its configuration
  { factory: 'lead', subagent_runtime: { max_running: 5 } },
  // @ts-expect-error there is no such factory
  { factory: 'leader' },
  // @ts-expect-error a member of the application's configuration is misspelt
  { factory: 'lead', app_config: { model: [] } },
  // @ts-expect-error only a model of the host has a function
  { factory: 'lead', app_config: { models: [{ name: 'm', provider: 'scripted', replies: [], execute }] } },
  // @ts-expect-error functions of tools are called execute
  { factory: 'lead', tools: [{ name: 'x', run: execute }] },
];

const configs: HostRuntimeConfig[] = [
  {},
  { models: [{ name: 'main', provider: 'host', execute }], tools: [tool, { name: 'web', use: 'somewhere:web' }], workers: 0, 'x-mine': 1 },
  { models: [{ name: 'main', use: 'langchain_openai:ChatOpenAI', model: 'gpt-5', fallbacks: [{ provider: 'host', execute }] }] },
  { subagent_runtime: { max_running: 5, admission_policy: 'reject' } },
  { sandbox: { use: 'host' }, memory: { manager_class: 'host' }, models: null, tools: null },
  // @ts-expect-error a section, not a subagents object
  { subagent_runtime: subagents },
  // @ts-expect-error an unknown member
  { tool: [] },
];

class Box implements Sandbox {
  acquire({ thread_id }: { thread_id: string }): { sandbox_id: string } {
    return { sandbox_id: thread_id };
  }
  async read_file({ path }: { path: string }): Promise<{ text: Uint8Array } | null> {
    return path === '/' ? null : { text: new Uint8Array() };
  }
}
const memory: Memory = { add: ({ agent_name, messages }, { idempotencyKey }) => console.log(agent_name?.length, messages.length, idempotencyKey) };

export function use(runtime: Runtime): void {
  for (const config of [...lead, ...composed, ...wrong]) runtime.assembly(config).close();
  for (const config of configs) new Runtime(config).close();
  runtime.assembly({ factory: 'lead' }, { sandbox: new Box(), memory, tools: { orders: execute }, model: () => 'text' });
  runtime.assembly('{"factory":"lead"}', { guardrail: ({ tool_name }) => ({ allow: tool_name !== 'refund' }) });
  // @ts-expect-error operations have the names of their host calls
  runtime.assembly({ factory: 'lead' }, { sandbox: { acquire: () => ({ sandbox_id: 's' }), readFile: () => null } });
  // @ts-expect-error the answer of a sandbox
  runtime.assembly({ factory: 'lead' }, { sandbox: { acquire: () => 's' } });
  // @ts-expect-error a memory takes in what it is told
  runtime.assembly({ factory: 'lead' }, { memory: {} });
  // @ts-expect-error a misspelt kind
  runtime.assembly({ factory: 'lead' }, { gaurdrail: () => ({ allow: true }) });
}
