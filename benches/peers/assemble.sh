#!/bin/sh
# Assembles an agent of 50 tools with fawn and with LangChain in one go and prints the table of ratios.
#   FAWN_ASSEMBLE_BENCH  a program that measures fawn and prints the JSON lines of README.md. Without it only the peer runs.
#   PEER_BUILDS          see README.md
set -eu
. "$(dirname "$0")/prepare.sh"
prepare_python

{
    if [ -n "${FAWN_ASSEMBLE_BENCH:-}" ]; then
        "$FAWN_ASSEMBLE_BENCH"
    else
        say "FAWN_ASSEMBLE_BENCH is not set: only the peer runs"
    fi
    "$python" "$here/assemble_langchain.py"
} >"$tools/assemble.jsonl"

"$python" "$here/table.py" <"$tools/assemble.jsonl"
