'use strict';
// Functions of the host that stand in a configuration, taken out of it: the library gets the rest.

/** A model's configuration without its `execute`, which goes to `found`. */
function splitModel(model, found) {
  if (typeof model !== 'object' || model === null || !('execute' in model)) return model;
  const { execute, ...rest } = model;
  found(checked(execute, 'model.execute'));
  return rest;
}

/** An assembly's configuration without functions, and the functions: those of `tools` by name, and that of the model. */
function split(config, functions = {}, models) {
  const tools = new Map(Object.entries(functions.tools ?? {}));
  for (const [name, run] of tools) checked(run, `tools.${name}`);
  let model = functions.model === undefined ? undefined : checked(functions.model, 'model');
  let given = config;
  if (typeof config === 'object' && config !== null && !(config instanceof Uint8Array)) {
    given = { ...config };
    if (Array.isArray(config.tools)) {
      given.tools = config.tools.map((tool) => {
        if (typeof tool !== 'object' || tool === null || !('execute' in tool)) return tool;
        const { execute, ...rest } = tool;
        tools.set(rest.name, checked(execute, `tool ${rest.name}: execute`));
        return rest;
      });
    }
    if ('model' in config) given.model = splitModel(config.model, (run) => (model ??= run));
    if (typeof config.model === 'string') model ??= models.get(config.model);
  }
  return { config: given, tools, model };
}

function checked(run, what) {
  if (typeof run !== 'function') throw new TypeError(`fawn: ${what} must be a function`);
  return run;
}

module.exports = { split, splitModel };
