'use strict';
// What a configuration asks the host for, and which functions answer: by the name in the host call, those of an assembly first,
// then those of its runtime. A function that surely nothing can call is an error.

const { errorOf } = require('./error.cjs');
const { CHAINS, isObject } = require('./functions.cjs');
const { fromText } = require('./text.cjs');

/** What a host call says of a model that has no `model`. */
const UNNAMED = 'host';
/** The factories that are made of an application's configuration. */
const LEADS = ['lead', 'lead_graph'];

/** Text of an application's configuration as the library reads it: `$NAME` is a variable of the environment, `$$` a sign. */
function resolved(text) {
  if (typeof text !== 'string' || !text.startsWith('$')) return text;
  return text.startsWith('$$') ? text.slice(1) : process.env[text.slice(1)];
}

/** What matters here of a model of an application's configuration. */
function entryOf(model) {
  if (!isObject(model)) return resolved(model);
  const { name, provider, model: called, execute, fallbacks } = model;
  const [label, kind, key] = [name, provider, called].map(resolved);
  return { name: label, provider: kind, model: key, execute, fallbacks: fallbacks?.map(entryOf) };
}

/** A model and all its fallbacks, of a configuration that the library has accepted. */
function* family(model, models, seen = new Set()) {
  const entry = typeof model === 'string' ? models.get(model) : model;
  if (entry === undefined || seen.has(entry)) return;
  seen.add(entry);
  yield entry;
  for (const fallback of entry.fallbacks ?? []) yield* family(fallback, models, seen);
}

const isHost = ({ provider }) => provider === 'host';
const keyOf = ({ model }) => model ?? UNNAMED;

/**
 * The functions that answer for models, by name. `other` answers for those of the host that have none of their own; one that
 * answers for none is an error. Two functions of one name are passed to `twice`.
 */
function functionsOf(entries, other, twice) {
  const found = new Map();
  for (const entry of entries) {
    const { name, provider, model, execute } = entry;
    if (!isHost(entry)) {
      if (execute !== undefined) throw notHost(`the model ${model ?? name ?? provider}`);
      continue;
    }
    const [key, run] = [keyOf(entry), execute ?? other];
    if (run === undefined) continue;
    if ((found.get(key) ?? run) === run) found.set(key, run);
    else twice(key);
  }
  if (other !== undefined && ![...found.values()].includes(other)) throw notHost("the assembly's model");
  return found;
}

function notHost(what) {
  return errorOf('conflict', `${what} has a function, which only a model of the provider "host" calls`, '/model');
}

function notTold(key) {
  throw errorOf('conflict', `two functions answer for the model ${key}; tell them apart by "model"`, '/model');
}

/** Why nobody asks a guardrail, a sandbox or a memory of an application's configuration; undefined where somebody may. */
function idle({ guardrails, sandbox, memory }) {
  const asksGuardrail = guardrails?.enabled && resolved(guardrails.provider?.use) === 'host';
  const asksMemory = resolved(memory?.manager_class) === 'host' && memory.enabled !== false && resolved(memory.mode) !== 'tool';
  return {
    guardrail: asksGuardrail ? undefined : '"guardrails": {"enabled": true, "provider": {"use": "host"}}',
    sandbox: resolved(sandbox?.use) === 'host' ? undefined : '"sandbox": {"use": "host"}',
    memory: asksMemory ? undefined : '"memory": {"manager_class": "host"}, switched on',
  };
}

/** What an application's configuration says of the host: a runtime's, or the one that an assembly has instead. */
class Scope {
  /** `config` with its functions; or, where it is text itself, `text` as the library has accepted it. */
  constructor(config, text) {
    const accepted = isObject(config) ? config : fromText(text);
    const entries = (accepted.models ?? []).map(entryOf);
    /** Models by the name that assemblies use. */
    this.models = new Map(entries.map((entry) => [entry.name, entry]));
    /** Names of host calls that several functions answer. */
    this.untold = new Set();
    for (const entry of entries) functionsOf(family(entry, this.models), undefined, notTold);
    /** Functions of models by the name of the host call, but for those. */
    this.functions = functionsOf(this.entries(), undefined, (key) => this.untold.add(key));
    for (const key of this.untold) this.functions.delete(key);
    /** Tools of the host by name, each with its function if it has one. */
    this.tools = new Map();
    (accepted.tools ?? []).forEach(({ name, use, execute }, place) => {
      if (use === undefined || use === null) return this.tools.set(resolved(name), execute);
      if (execute === undefined) return undefined;
      const message = `the tool ${name} has a function, which only a tool of the host calls: one without "use"`;
      throw errorOf('conflict', message, `/tools/${place}`);
    });
    this.idle = idle(accepted);
  }

  /** Every model that there is, those among fallbacks included. */
  *entries() {
    const seen = new Set();
    for (const model of this.models.values()) yield* family(model, this.models, seen);
  }

  /** The functions of tools by name. */
  get toolFunctions() {
    return [...this.tools].filter(([, run]) => run !== undefined);
  }
}

/** Checks that each function by name is one of those that there are. */
function checkNames(functions, names, what, kind) {
  for (const name of functions.keys()) {
    if (names.includes(name)) continue;
    const there = names.length > 0 ? `it has ${names.join(', ')}` : 'it has none';
    const message = `there is a function for the ${what} ${name}, but the assembly has no such ${what}; ${there}`;
    throw errorOf('unknown_member', message, `/${kind}/${name}`);
  }
}

/** Checks that somebody may ask what there is one of. */
function checkAsked(own, unasked) {
  for (const [kind, wanted] of Object.entries(unasked)) {
    if (own[kind] === undefined || wanted === undefined) continue;
    const message = `there is a function for the ${kind}, but nothing asks it: the configuration wants ${wanted}`;
    throw errorOf('conflict', message, `/${kind}`);
  }
}

/** Whether an agent that a host composes itself asks the host as its guardrail, or a lead agent does besides. */
function namesGuardrail({ features }, chain) {
  const parts = chain.filter((part) => part.name === 'guardrail_provider');
  return [...parts, features?.guardrail].some((part) => part?.provider?.use === 'host');
}

/**
 * The functions that answer an assembly's host calls: `own`, which it was given, and those of its runtime. `config` is its
 * configuration, which the library has accepted as `text`. `answersModels`: a run can go on without somebody else who answers.
 */
function functionsFor(config, text, own, runtime) {
  const accepted = isObject(config) ? config : fromText(text);
  const isLead = LEADS.includes(accepted.factory);
  const scope = isLead && isObject(accepted.app_config) ? new Scope(accepted.app_config) : runtime;

  const names = (accepted.tools ?? []).map(({ name }) => name);
  checkNames(own.tools, isLead ? [...names, ...scope.tools.keys()] : names, 'tool', 'tools');
  const chain = CHAINS.flatMap((member) => accepted[member] ?? []);
  const hosted = chain.filter(({ host }) => isObject(host)).map(({ name }) => name);
  checkNames(own.middleware, hosted, 'middleware of the host', 'middleware');
  const none = { sandbox: 'the factory "lead"', memory: 'the factory "lead"', guardrail: 'a "guardrail_provider" with {"use": "host"}' };
  const unasked = isLead ? scope.idle : none;
  checkAsked(own, namesGuardrail(accepted, chain) ? { ...unasked, guardrail: undefined } : unasked);

  for (const key of isLead ? scope.untold : []) notTold(key);
  const entries = [...(isLead ? scope.entries() : family(accepted.model, runtime.models))];
  const models = new Map([...runtime.functions, ...functionsOf(entries, own.model, notTold)]);
  const answered = (entry) => !isHost(entry) || models.has(keyOf(entry));
  // Which of its models a lead agent comes to is the library's to say.
  const answersModels = isLead ? entries.length === 0 || entries.some(answered) : entries.every(answered);
  const tools = isLead ? new Map([...runtime.toolFunctions, ...scope.toolFunctions, ...own.tools]) : own.tools;
  return { ...own, tools, models, answersModels };
}

module.exports = { Scope, functionsFor };
