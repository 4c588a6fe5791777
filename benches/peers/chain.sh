#!/bin/sh
# Measures model turns with fawn's whole chain, with its bare one, and with LangChain in one go and prints the table of ratios.
#   FAWN_CHAIN_BENCH  a program that measures fawn and prints the JSON lines of README.md. Without it only the peer runs.
#   PEER_THREADS      see README.md
set -eu
. "$(dirname "$0")/prepare.sh"
prepare_python

{
    if [ -n "${FAWN_CHAIN_BENCH:-}" ]; then
        "$FAWN_CHAIN_BENCH"
    else
        say "FAWN_CHAIN_BENCH is not set: only the peer runs"
    fi
    "$python" "$here/chain_langchain.py"
} >"$tools/chain.jsonl"

"$python" "$here/table.py" <"$tools/chain.jsonl"
grep chain_added "$tools/chain.jsonl" || true
