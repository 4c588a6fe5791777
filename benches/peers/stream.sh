#!/bin/sh
# Reads the same streamed reply with fetch, the vendor's SDK and fawn in one Node process and prints the table of ratios.
#   FAWN_LIB_DIR   folder with libfawn.so and libfawn.so.0; default target/release
#   STREAM_ROUNDS  replies each; default 15
set -eu
. "$(dirname "$0")/prepare.sh"
prepare_python
prepare_node
export FAWN_LIB_DIR="${FAWN_LIB_DIR:-$root/target/release}" FAWN_NODE="$root/bindings/node"
[ -e "$FAWN_LIB_DIR/libfawn.so" ] || skip "no library in $FAWN_LIB_DIR; make lib builds it"
node "$FAWN_NODE/build.mjs" >/dev/null
node "$node_dir/stream.mjs" >"$tools/stream.jsonl"
"$python" "$here/table.py" <"$tools/stream.jsonl"
