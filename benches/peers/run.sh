#!/bin/sh
# Does the same agent run with fawn, rig and LangChain in one go and prints the table of ratios.
#   FAWN_RUN_BENCH  a program that measures fawn and prints the JSON lines of README.md. Without it only the peers run.
#   CARGO           the command that builds rig's program; default cargo
#   PEER_RUNS, PEER_ROUNDS, PEER_THREADS  see README.md; defaults differ by peer, as a run of LangChain takes long
set -eu
. "$(dirname "$0")/prepare.sh"
prepare_python
say "building rig's program"
(cd "$here/run_rig" && CARGO_TARGET_DIR="$tools/run_rig" ${CARGO:-cargo} build --release --quiet) ||
    skip "rig's program cannot be built"

{
    if [ -n "${FAWN_RUN_BENCH:-}" ]; then
        "$FAWN_RUN_BENCH"
    else
        say "FAWN_RUN_BENCH is not set: only the peers run"
    fi
    "$tools/run_rig/release/run_rig"
    "$python" "$here/run_langchain.py"
} >"$tools/run.jsonl"

"$python" "$here/table.py" <"$tools/run.jsonl"
