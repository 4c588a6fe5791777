#!/bin/sh
# Installs the mock model server that the tests use, pinned by package-lock.json, beside this script.
# Exit status: 0 installed, 1 not to be had (no node, no npm, no registry); tests then skip with a message.
set -eu
cd "$(dirname "$0")"
wanted=$(sed -n 's/.*"@copilotkit\/aimock": "\(.*\)".*/\1/p' package.json)
installed=node_modules/@copilotkit/aimock/package.json
if [ -f "$installed" ] && grep -q "\"version\": \"$wanted\"" "$installed"; then
    exit 0
fi
command -v node >/dev/null 2>&1 || { echo "aimock: node is not installed" >&2; exit 1; }
command -v npm >/dev/null 2>&1 || { echo "aimock: npm is not installed" >&2; exit 1; }
npm ci --ignore-scripts --no-audit --no-fund --silent || { echo "aimock: npm could not install it" >&2; exit 1; }
