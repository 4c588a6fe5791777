'use strict';
// Functions of the host that stand in a configuration, or come beside one: taken out of it, since the library gets the rest.

const { errorOf } = require('./error.cjs');
const { bytesOf, isNoJson } = require('./text.cjs');

/** What a sandbox and a memory of the host are asked for: the names of their host calls. */
const OPERATIONS = { sandbox: ['acquire', 'release', 'read_file', 'write_file'], memory: ['add'] };
/** Where functions may come beside a configuration. */
const KINDS = ['tools', 'middleware', 'model', 'guardrail', ...Object.keys(OPERATIONS)];

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

/** Functions by name. */
function table(functions, kind) {
  if (!isObject(functions) || Array.isArray(functions)) throw new TypeError(`fawn: ${kind} must be an object of functions`);
  return new Map(Object.entries(functions).map(([name, run]) => [name, checked(run, `${kind}.${name}`)]));
}

/** An object whose methods are what a sandbox or a memory is asked for. One of a class may have others besides. */
function handler(object, kind) {
  if (object === undefined) return undefined;
  const known = OPERATIONS[kind];
  if (!isObject(object) || Array.isArray(object)) throw new TypeError(`fawn: ${kind} must be an object with ${known.join(', ')}`);
  for (const name of known) if (object[name] !== undefined) checked(object[name], `${kind}.${name}`);
  const isPlain = [Object.prototype, null].includes(Object.getPrototypeOf(object));
  const other = isPlain ? Object.keys(object).find((name) => !known.includes(name)) : undefined;
  if (other !== undefined || !known.some((name) => object[name] !== undefined)) {
    const message = `a ${kind} is asked for ${known.join(', ')}${other === undefined ? ', and has none of these' : `, and never for ${other}`}`;
    throw errorOf('unknown_member', message, other === undefined ? `/${kind}` : `/${kind}/${other}`);
  }
  return object;
}

/** Functions apart from a configuration. */
function apart(functions = {}) {
  if (!isObject(functions)) throw new TypeError(`fawn: functions must be an object with some of ${KINDS.join(', ')}`);
  const unknown = Object.keys(functions).find((kind) => !KINDS.includes(kind));
  if (unknown !== undefined) {
    throw errorOf('unknown_member', `functions of the host are in ${KINDS.join(', ')}, not in ${unknown}`, `/${unknown}`);
  }
  const { tools = {}, middleware = {}, model, guardrail, sandbox, memory } = functions;
  return {
    tools: table(tools, 'tools'),
    middleware: table(middleware, 'middleware'),
    model: model === undefined ? undefined : checked(model, 'model'),
    guardrail: guardrail === undefined ? undefined : checked(guardrail, 'guardrail'),
    sandbox: handler(sandbox, 'sandbox'),
    memory: handler(memory, 'memory'),
  };
}

/** The members of an assembly's configuration in which middlewares stand. */
const CHAINS = ['middleware', 'extra_middleware'];

/** A list without the functions of its members; each is passed to `found`. */
function withoutEach(list, what, found = () => {}) {
  return list.map((part) => {
    const rest = without(part, `${what} ${part?.name}`);
    if (rest !== part) found(part);
    return rest;
  });
}

/** An assembly's configuration without functions, and those that are the assembly's: by name, and one of some kinds. */
function split(config, functions) {
  const own = apart(functions);
  if (!isObject(config)) return { given: config, ...own };
  const given = { ...config };
  const take = (member, what, found) => {
    if (Array.isArray(config[member])) given[member] = withoutEach(config[member], what, (part) => found.set(part.name, part.execute));
  };
  take('tools', 'tool', own.tools);
  for (const member of CHAINS) take(member, 'middleware', own.middleware);
  if ('model' in config) given.model = withoutModels(config.model, 'model');
  if ('app_config' in config) given.app_config = splitApp(config.app_config);
  return { given, ...own };
}

/** The configuration of an application, which is a runtime's or an assembly's own, without functions. */
function splitApp(config) {
  if (!isObject(config)) return config;
  const given = { ...config };
  if (Array.isArray(config.models)) given.models = config.models.map((model) => withoutModels(model, `model ${model?.name}`));
  if (Array.isArray(config.tools)) given.tools = withoutEach(config.tools, 'tool');
  return given;
}

module.exports = { CHAINS, isObject, split, splitApp };
