// Builds build/fawn.node: the C files of src/, with a plain C compiler, against fawn.h and the shared library.
//
//   node build.mjs [--force]
//
//   FAWN_INCLUDE_DIR  folder with fawn.h (default: include/ of this repository)
//   FAWN_LIB_DIR      folder with libfawn.so and libfawn.so.0 (default: target/release, else target/debug)
//   CC, CFLAGS        the compiler (default: cc) and more options for it
//
// Node's own headers stand beside the running node, or come from the npm package node-api-headers.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.resolve(here, '..', '..');

function missing(what, remedy) {
  console.error(`fawn for Node.js cannot be built: ${what}\n${remedy}`);
  process.exit(1);
}

function nodeHeaders() {
  const beside = path.resolve(path.dirname(fs.realpathSync(process.execPath)), '..', 'include', 'node');
  if (fs.existsSync(path.join(beside, 'node_api.h'))) return beside;
  try {
    return createRequire(import.meta.url)('node-api-headers').include_dir;
  } catch {
    return missing(`node_api.h is missing (looked in ${beside})`, `install it: npm install --no-save --prefix ${here} node-api-headers`);
  }
}

function folderWith(file, variable, defaults) {
  const folders = process.env[variable] ? [path.resolve(process.env[variable])] : defaults.map((name) => path.join(root, name));
  const found = folders.find((folder) => fs.existsSync(path.join(folder, file)));
  return found ?? missing(`${file} is missing (looked in ${folders.join(', ')})`, `set ${variable} to its folder, or run: make lib`);
}

const cc = process.env.CC || 'cc';
if (spawnSync(cc, ['--version']).error) missing(`there is no C compiler (${cc})`, 'on Debian: apt-get install gcc; or set CC');

const isMac = process.platform === 'darwin';
const library = isMac ? 'libfawn.dylib' : 'libfawn.so';
const includeDir = folderWith('fawn.h', 'FAWN_INCLUDE_DIR', ['include']);
const libDir = folderWith(library, 'FAWN_LIB_DIR', ['target/release', 'target/debug']);
const headers = nodeHeaders();
const sources = fs
  .readdirSync(path.join(here, 'src'))
  .sort()
  .map((name) => path.join(here, 'src', name));
const output = path.join(here, 'build', 'fawn.node');

const args = [
  ...'-std=c11 -O2 -g -fPIC -fvisibility=hidden -Wall -Wextra -Wpedantic -Wshadow'.split(' '),
  ...(process.env.CFLAGS?.split(' ').filter(Boolean) ?? []),
  `-I${includeDir}`,
  // System headers: their warnings are not ours.
  '-isystem',
  headers,
  ...sources.filter((name) => name.endsWith('.c')),
  `-L${libDir}`,
  '-lfawn',
  // Beside the addon first, as a package would have it; LD_LIBRARY_PATH goes before both.
  ...(isMac
    ? ['-bundle', '-undefined', 'dynamic_lookup', '-Wl,-rpath,@loader_path', `-Wl,-rpath,${libDir}`]
    : // A worker's end does not unload code that another OS thread may be about to leave.
      ['-shared', '-Wl,--enable-new-dtags', '-Wl,-rpath,$ORIGIN', `-Wl,-rpath,${libDir}`, '-Wl,-z,nodelete']),
];

// Built again when anything that goes in has changed: sources, header, options.
const hash = createHash('sha256').update(JSON.stringify([cc, args, process.version]));
for (const file of [...sources, path.join(includeDir, 'fawn.h')]) hash.update(fs.readFileSync(file));
const stamp = hash.digest('hex');
const stampFile = `${output}.stamp`;
const isFresh = fs.existsSync(output) && fs.existsSync(stampFile) && fs.readFileSync(stampFile, 'utf8') === stamp;
if (!isFresh || process.argv.includes('--force')) {
  fs.mkdirSync(path.dirname(output), { recursive: true });
  // Written aside and moved, so that a process that has the old one loaded keeps it.
  const aside = `${output}.${process.pid}`;
  const { status } = spawnSync(cc, [...args, '-o', aside], { stdio: 'inherit' });
  if (status !== 0) process.exit(1);
  fs.renameSync(aside, output);
  fs.writeFileSync(stampFile, stamp);
}
console.log(output);
