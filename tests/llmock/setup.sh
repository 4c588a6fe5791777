#!/bin/sh
# Installs llmock, a mock of the model wire that breaks on demand and grades its client, and prints its Python.
# Exit code 77 when it cannot be had; its tests then skip with a message.
here=$(cd "$(dirname "$0")" && pwd)
exec sh "$here/../support/venv.sh" llmock "$here/requirements.txt" "the tests against llmock"
