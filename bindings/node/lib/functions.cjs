'use strict';
// Functions of the host that stand in a configuration, taken out of it: the library gets the rest.
//
// Tools and middlewares are told apart by their names. Models of the host, of which there may be several among fallbacks, are by what their
// configurations have as `model`: it is the name in the host call.

const { errorOf } = require('./error.cjs');
const { bytesOf, fromText, isNoJson } = require('./text.cjs');

/** What a host call says of a model that has no `model`. */
const UNNAMED = 'host';

function isObject(value) {
  return typeof value === 'object' && value !== null && bytesOf(value) === undefined && !isNoJson(value);
}

function checked(run, what) {
  if (typeof run !== 'function') throw new TypeError(`fawn: ${what} must be a function`);
  return run;
}

/** What stands in a configuration, without its `execute`. */
function without(object, what) {
  if (!isObject(object) || !('execute' in object)) return object;
  const { execute, ...rest } = object;
  checked(execute, `${what}.execute`);
  return rest;
}

/** A model without its function and those of its fallbacks. */
function withoutModels(model, what) {
  const rest = without(model, what);
  if (!isObject(rest) || !Array.isArray(rest.fallbacks)) return rest;
  return { ...rest, fallbacks: rest.fallbacks.map((fallback) => withoutModels(fallback, `a fallback of ${what}`)) };
}

/** Functions apart from a configuration. */
function apart(functions = {}) {
  if (!isObject(functions)) throw new TypeError('fawn: functions must be an object with tools, middleware and model');
  const { tools = {}, middleware = {}, model, ...others } = functions;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw errorOf('unknown_member', `functions of the host are in tools, middleware and model, not in ${unknown}`, `/${unknown}`);
  }
  for (const [kind, list] of Object.entries({ tools, middleware })) {
    if (!isObject(list) || Array.isArray(list)) throw new TypeError(`fawn: ${kind} must be an object of functions`);
    for (const [name, run] of Object.entries(list)) checked(run, `${kind}.${name}`);
  }
  return {
    tools: new Map(Object.entries(tools)),
    middleware: new Map(Object.entries(middleware)),
    model: model === undefined ? undefined : checked(model, 'model'),
  };
}

/** The members of an assembly's configuration in which middlewares stand. */
const CHAINS = ['middleware', 'extra_middleware'];

/** An assembly's configuration without functions, and the functions: by name, and one for models apart. */
function split(config, functions) {
  const { tools, middleware, model } = apart(functions);
  if (!isObject(config)) return { given: config, tools, middleware, model };
  const given = { ...config };
  const take = (member, what, found) => {
    if (!Array.isArray(config[member])) return;
    given[member] = config[member].map((part) => {
      const rest = without(part, `${what} ${part?.name}`);
      if (rest !== part) found.set(part.name, part.execute);
      return rest;
    });
  };
  take('tools', 'tool', tools);
  for (const member of CHAINS) take(member, 'middleware', middleware);
  if ('model' in config) given.model = withoutModels(config.model, 'model');
  return { given, tools, middleware, model };
}

/** A runtime's configuration without functions. */
function splitModels(config) {
  if (!isObject(config) || !Array.isArray(config.models)) return config;
  return { ...config, models: config.models.map((model) => withoutModels(model, `model ${model?.name}`)) };
}

/** A model and all its fallbacks, of a configuration that the library has accepted. */
function* family(model, models, seen = new Set()) {
  const entry = typeof model === 'string' ? models.get(model) : model;
  if (entry === undefined || seen.has(entry)) return;
  seen.add(entry);
  yield entry;
  for (const fallback of entry.fallbacks ?? []) yield* family(fallback, models, seen);
}

/** The models of a runtime by name, with their functions. `text` is its configuration as the library has accepted it. */
function modelsOf(config, text) {
  const list = (isObject(config) ? config : fromText(text)).models ?? [];
  const models = new Map(list.map((model) => [model.name, model]));
  for (const model of list) functionsOf(model, undefined, models);
  return models;
}

/**
 * The functions that answer for a model and its fallbacks, by name. `other` answers for those that have none of their own.
 * `isWhole`: all that are the host's have one.
 */
function functionsOf(model, other, models) {
  const found = new Map();
  let isWhole = true;
  for (const { provider, model: name, execute } of family(model, models)) {
    if (provider !== 'host') {
      if (execute !== undefined) throw notHost(`the model ${name ?? provider}`);
      continue;
    }
    const [key, run] = [name ?? UNNAMED, execute ?? other];
    if (run === undefined) isWhole = false;
    else if ((found.get(key) ?? run) === run) found.set(key, run);
    else throw errorOf('conflict', `two functions answer for the model ${key}; tell them apart by "model"`, '/model');
  }
  if (other !== undefined && ![...found.values()].includes(other)) throw notHost("the assembly's model");
  return { found, isWhole };
}

function notHost(what) {
  return errorOf('conflict', `${what} has a function, which only a model of the provider "host" calls`, '/model');
}

/**
 * Checks that each function is one that the configuration asks for, which the library has accepted as `text`. Answers those of
 * models.
 */
function checkFunctions(config, text, { tools, middleware, model }, models) {
  const accepted = isObject(config) ? config : fromText(text);
  const known = (functions, list, what, kind) => {
    const names = list.map(({ name }) => name);
    for (const name of functions.keys()) {
      if (names.includes(name)) continue;
      const there = names.length > 0 ? `it has ${names.join(', ')}` : 'it has none';
      const message = `there is a function for the ${what} ${name}, but the assembly has no such ${what}; ${there}`;
      throw errorOf('unknown_member', message, `/${kind}/${name}`);
    }
  };
  known(tools, accepted.tools ?? [], 'tool', 'tools');
  const chain = CHAINS.flatMap((member) => accepted[member] ?? []);
  known(middleware, chain.filter((part) => isObject(part.host)), 'middleware of the host', 'middleware');
  return functionsOf(accepted.model, model, models);
}

module.exports = { checkFunctions, modelsOf, split, splitModels };
