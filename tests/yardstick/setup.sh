#!/bin/sh
# Installs what the yardstick needs, the vendors' own SDKs and llmock, and prints the Python that has the SDKs.
# Exit code 77 when they cannot be had.
here=$(cd "$(dirname "$0")" && pwd)
sh "$here/../llmock/setup.sh" >/dev/null || exit $?
exec sh "$here/../support/venv.sh" yardstick "$here/requirements.txt" "the yardstick"
