// Fetches what the test of the types needs, typescript and @types/node, into test/consumer. Without it that test is skipped.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('./consumer/', import.meta.url));
if (!fs.existsSync(path.join(folder, 'node_modules', 'typescript'))) {
  const options = ['install', '--no-audit', '--no-fund', '--no-package-lock', '--ignore-scripts', '--loglevel=error'];
  const { status, error } = spawnSync('npm', options, { cwd: folder, stdio: 'inherit', shell: process.platform === 'win32' });
  if (error || status !== 0) console.log('skipping the test of the TypeScript types: typescript could not be installed');
}
