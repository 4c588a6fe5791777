// Writes types/payloads.d.ts: a TypeScript type for every JSON Schema in include/schema. Run it when a schema has changed;
// a test compares.
//
//   node generate.mjs            writes the file
//   node generate.mjs --check    only says whether it is as it should be
//
// A schema becomes a type of its title in PascalCase, its $defs become types of their names. It reads the part of JSON Schema
// that the library's schemas use, and stops at a keyword that it does not know rather than pass over it.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const folder = path.join(process.env.FAWN_INCLUDE_DIR ?? path.join(here, '..', '..', 'include'), 'schema');
const output = path.join(here, 'types', 'payloads.d.ts');

/** Types that no schema has a name for, because it says them in place; told by how their description begins. */
const HOISTED = { 'A message in canonical form': 'Message' };

/** Types that the schemas leave open, written out here; told likewise. */
const WRITTEN = {
  'Channel name to value': {
    name: 'ThreadValues',
    text: `{
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
}`,
    description: 'Channel name to value. A channel that was never written, or not asked for, is absent; more channels may come.',
  },
};

/** Types that would hide one of the language's own, or are called as a section of the configuration is. */
const RENAMED = { error: 'ErrorObject', event: 'EventObject', subagents_config: 'SubagentsObjectConfig' };

/** Keywords that say nothing about the type. */
const SILENT = new Set([
  ...['$schema', '$defs', 'title', 'description', 'default', 'format', 'minimum', 'maximum', 'minLength', 'maxLength', 'pattern'],
  ...['writeOnly', 'readOnly', 'minProperties', 'maxProperties', 'minItems', 'maxItems', 'uniqueItems', 'examples', 'deprecated'],
]);
const KNOWN = new Set([
  ...['type', 'properties', 'required', 'additionalProperties', 'patternProperties', 'items', 'oneOf', 'anyOf', 'allOf', 'enum'],
  ...['const', '$ref'],
]);

const pascal = (name) => name.replace(/(^|_)([a-z])/g, (_, __, letter) => letter.toUpperCase());
const isSnake = (name) => /^[a-z0-9_]+$/.test(name);

/** Type declarations by name, in the order in which they are met. */
const declarations = new Map();
const hoisted = new Set();

function declare(name, text, description) {
  const known = declarations.get(name);
  if (known !== undefined && known.text !== text) throw new Error(`two types want to be called ${name}`);
  declarations.set(name, { text, description });
}

/** The types of one schema file. */
class File {
  constructor(schema) {
    this.schema = schema;
    this.title = RENAMED[schema.title] ?? pascal(schema.title);
    /** Names of the definitions that are being written: one may name itself, by way of others. */
    this.open = new Map();
  }

  /** A definition that another file defines otherwise gets this file's name in front. */
  nameOf(def) {
    if (this.open.has(def)) return this.open.get(def);
    const name = isSnake(def) ? `${pascal(def)}Data` : def;
    const textAs = (called) => {
      this.open.set(def, called);
      const text = this.type(this.schema.$defs[def], '');
      this.open.delete(def);
      return text;
    };
    const known = declarations.get(name);
    const text = textAs(name);
    if (known === undefined || known.text === text) {
      declare(name, text, this.schema.$defs[def].description);
      return name;
    }
    const free = `${this.title}${name}`;
    declare(free, textAs(free), this.schema.$defs[def].description);
    return free;
  }

  declare() {
    const variants = this.variants();
    if (variants === undefined) declare(this.title, this.type(this.schema, ''), this.schema.description);
    else declare(this.title, variants.map((name) => `\n  | ${name}`).join(''), this.schema.description);
  }

  /** An object whose member `type` says what its member `data` is, told by a list of if and then: one type each. */
  variants() {
    const { allOf, ...base } = this.schema;
    if (allOf === undefined) return undefined;
    const names = allOf.map(({ if: condition, then, ...rest }) => {
      const [member, { const: value }] = Object.entries(condition.properties)[0];
      if (Object.keys(rest).length > 0 || value === undefined) throw new Error(`${this.schema.title}: an unknown form of allOf`);
      const says = base.properties[member].anyOf?.flatMap((one) => one.oneOf ?? []).find((one) => one.const === value);
      const properties = { ...base.properties, [member]: { const: value }, ...then.properties };
      const name = `${pascal(value)}${pascal(this.schema.title)}`;
      declare(name, this.object({ ...base, properties }, ''), says?.description);
      return name;
    });
    return names;
  }

  /** The type of a schema, as it stands at this indentation. */
  type(schema, indent) {
    if (schema === true || (schema !== false && Object.keys(schema).every((key) => SILENT.has(key)))) return 'unknown';
    if (schema === false) return 'never';
    for (const [start, name] of Object.entries(HOISTED)) {
      if (schema.description?.startsWith(start)) {
        hoisted.add(name);
        declare(name, this.plain(schema, ''), schema.description);
        return name;
      }
    }
    for (const [start, { name, text, description }] of Object.entries(WRITTEN)) {
      if (schema.description?.startsWith(start)) {
        hoisted.add(name);
        declare(name, text, description);
        return name;
      }
    }
    return this.plain(schema, indent);
  }

  plain(schema, indent) {
    for (const key of Object.keys(schema)) {
      if (!KNOWN.has(key) && !SILENT.has(key)) throw new Error(`${this.schema.title}: an unknown keyword ${key}`);
    }
    if (schema.$ref === '#') return this.title;
    if (schema.$ref !== undefined) return this.nameOf(schema.$ref.replace('#/$defs/', ''));
    if (schema.const !== undefined) return JSON.stringify(schema.const);
    if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
    const several = schema.oneOf ?? schema.anyOf;
    if (several !== undefined) {
      // What stands beside the list holds for each of its schemas.
      const { oneOf, anyOf, description, ...shared } = schema;
      return union(
        several.map((one) => {
          const merged = { ...shared, ...one };
          if (shared.required) merged.required = [...shared.required, ...(one.required ?? [])];
          if (shared.properties) merged.properties = { ...shared.properties, ...one.properties };
          return this.type(merged, indent);
        }),
      );
    }
    const types = [schema.type ?? (schema.properties ? 'object' : undefined)].flat();
    return union(types.map((type) => this.simple(type, schema, indent)));
  }

  simple(type, schema, indent) {
    switch (type) {
      case 'string':
      case 'boolean':
      case 'null':
        return type;
      case 'integer':
      case 'number':
        return 'number';
      case 'array': {
        const items = this.type(schema.items ?? true, indent);
        return /[|]/.test(items) ? `Array<${items}>` : `${items}[]`;
      }
      case 'object':
        return this.object(schema, indent);
      default:
        throw new Error(`${this.schema.title}: an unknown type ${type}`);
    }
  }

  object(schema, indent) {
    const deeper = `${indent}  `;
    const required = new Set(schema.required);
    const lines = Object.entries(schema.properties ?? {}).flatMap(([name, property]) => [
      ...comment(property.description, deeper),
      `${deeper}${/^\w+$/.test(name) ? name : JSON.stringify(name)}${required.has(name) ? '' : '?'}: ${this.type(property, deeper)};`,
    ]);
    if (schema.patternProperties?.['^x-']) lines.push(`${deeper}[yours: \`x-\${string}\`]: unknown;`);
    const others = schema.additionalProperties;
    if (typeof others === 'object') return `Record<string, ${this.type(others, indent)}>`;
    if (lines.length === 0) return others === false ? 'Record<string, never>' : 'Record<string, unknown>';
    return `{\n${lines.join('\n')}\n${indent}}`;
  }
}

/** A union without repetitions; names that are only examples of a string keep the string open. */
function union(types) {
  const distinct = [...new Set(types)];
  if (distinct.includes('unknown')) return 'unknown';
  const hasNames = distinct.some((type) => /^"/.test(type));
  return distinct.map((type) => (type === 'string' && hasNames ? '(string & {})' : type)).join(' | ');
}

function comment(text, indent) {
  if (text === undefined) return [];
  const lines = text.replaceAll('*/', '* /').split('\n');
  if (lines.length === 1) return [`${indent}/** ${lines[0]} */`];
  return [`${indent}/**`, ...lines.map((line) => `${indent} * ${line}`), `${indent} */`];
}

function generate() {
  for (const file of fs.readdirSync(folder).sort()) {
    if (file.endsWith('.schema.json')) new File(JSON.parse(fs.readFileSync(path.join(folder, file), 'utf8'))).declare();
  }
  for (const name of [...Object.values(HOISTED), ...Object.values(WRITTEN).map((type) => type.name)]) {
    if (!hoisted.has(name)) throw new Error(`no schema describes a ${name} any more`);
  }
  const lines = [
    '// The payloads of fawn: what goes in as JSON and comes out as JSON.',
    '//',
    '// Written by generate.mjs from include/schema; change the schemas instead. Objects that come out may gain members, and events',
    '// types, in later versions.',
  ];
  // Of two names for one thing the later is an alias.
  const names = new Map();
  for (const [name, { text, description }] of [...declarations].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const same = text.startsWith('{') ? names.get(text) : undefined;
    if (same === undefined) names.set(text, name);
    const type = same ?? text;
    lines.push('', ...comment(description, ''), `export type ${name} =${type.startsWith('\n') ? '' : ' '}${type};`);
  }
  return `${lines.join('\n')}\n`;
}

const text = generate();
if (!process.argv.includes('--check')) {
  fs.mkdirSync(path.dirname(output), { recursive: true });
  fs.writeFileSync(output, text);
} else if (!fs.existsSync(output) || fs.readFileSync(output, 'utf8') !== text) {
  console.error(`${output} is not what the schemas say; run: node generate.mjs`);
  process.exit(1);
}
