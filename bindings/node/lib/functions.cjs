'use strict';
// Functions of the host that stand in a configuration, taken out of it: the library gets the rest.

const { errorOf } = require('./error.cjs');
const { bytesOf, fromText, isNoJson } = require('./text.cjs');

function isObject(value) {
  return typeof value === 'object' && value !== null && bytesOf(value) === undefined && !isNoJson(value);
}

/** What stands in a configuration without its `execute`, which goes to `found`. */
function without(object, what, found) {
  if (!isObject(object) || !('execute' in object)) return object;
  const { execute, ...rest } = object;
  found(checked(execute, `${what}.execute`));
  return rest;
}

/** Functions apart from a configuration. */
function apart(functions = {}) {
  if (!isObject(functions)) throw new TypeError('fawn: functions must be an object with tools and model');
  const { tools = {}, model, ...others } = functions;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw errorOf('unknown_member', `functions of the host are in tools and model, not in ${unknown}`, `/${unknown}`);
  }
  if (!isObject(tools) || Array.isArray(tools)) throw new TypeError('fawn: tools must be an object of functions');
  for (const [name, run] of Object.entries(tools)) checked(run, `tools.${name}`);
  return { tools: new Map(Object.entries(tools)), model: model === undefined ? undefined : checked(model, 'model') };
}

/** An assembly's configuration without functions, and the functions: those of `tools` by name, and that of the model. */
function split(config, functions) {
  const { tools, model: other } = apart(functions);
  let model = other;
  if (!isObject(config)) return { given: config, tools, model };
  const given = { ...config };
  if (Array.isArray(config.tools)) {
    given.tools = config.tools.map((tool) => without(tool, `tool ${tool?.name}`, (run) => tools.set(tool.name, run)));
  }
  if ('model' in config) given.model = without(config.model, 'model', (run) => (model ??= run));
  return { given, tools, model };
}

/** A runtime's configuration without functions, and the functions of its models by name. */
function splitModels(config) {
  const functions = new Map();
  if (!isObject(config) || !Array.isArray(config.models)) return { given: config, functions };
  const models = config.models.map((model) => without(model, `model ${model?.name}`, (run) => functions.set(model.name, run)));
  return { given: { ...config, models }, functions };
}

/** The host models of a configuration that the library has accepted: their functions by name, undefined for one without. */
function hostModels(text, functions) {
  const { models = [] } = fromText(text);
  for (const { name, provider } of models ?? []) {
    if (provider !== 'host' && functions.has(name)) throw notHost(`the model ${name}`, '/models');
  }
  return new Map((models ?? []).filter(({ provider }) => provider === 'host').map(({ name }) => [name, functions.get(name)]));
}

/** Whether each function is one that the configuration, which the library has accepted, asks for. Answers the model's. */
function checkFunctions(text, tools, model, models) {
  const config = fromText(text);
  const names = (config.tools ?? []).map(({ name }) => name);
  for (const name of tools.keys()) {
    if (names.includes(name)) continue;
    const there = names.length > 0 ? `it has ${names.join(', ')}` : 'it has none';
    const message = `there is a function for the tool ${name}, but the assembly has no such tool; ${there}`;
    throw errorOf('unknown_member', message, `/tools/${name}`);
  }
  const isNamed = typeof config.model === 'string';
  const asksHost = isNamed ? models.has(config.model) : config.model.provider === 'host';
  if (model !== undefined && !asksHost) throw notHost("the assembly's model", '/model');
  return { model: model ?? (isNamed ? models.get(config.model) : undefined), asksHost };
}

function notHost(what, path) {
  return errorOf('conflict', `${what} has a function, which only a model of the provider "host" has`, path);
}

function checked(run, what) {
  if (typeof run !== 'function') throw new TypeError(`fawn: ${what} must be a function`);
  return run;
}

module.exports = { checkFunctions, hostModels, split, splitModels };
