#!/bin/sh
# Folds the same messages with fawn, LangGraph and LangGraph.js in one go and prints the table of ratios.
#   FAWN_LIB      the library; default target/release/libfawn.so. Without it only the peers are timed.
#   FAWN_INCLUDE  where fawn.h is; default include/
#   FOLD_RUNS     runs per case; default 5
set -eu
. "$(dirname "$0")/prepare.sh"
prepare_python
prepare_node

export FOLD_RUNS="${FOLD_RUNS:-5}"
library=${FAWN_LIB:-$root/target/release/libfawn.so}
data=$tools/fold
# Written anew each time: it takes two seconds, and nobody has to ask whether the files are the current ones.
"$python" "$here/data.py" "$data"

{
    if [ -e "$library" ]; then
        FAWN_LIB=$(cd "$(dirname "$library")" && pwd)/$(basename "$library")
        export FAWN_LIB
        # Linked by its path; a library with a SONAME is then looked for by that name, which the link beside it has.
        soname=$(readelf -d "$FAWN_LIB" 2>/dev/null | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
        ln -sf "$FAWN_LIB" "$tools/${soname:-libfawn.so}"
        cc -O2 -Wall -Wextra -I "${FAWN_INCLUDE:-$root/include}" -o "$tools/fold_text" "$here/fold_text.c" \
            "$FAWN_LIB" -Wl,-rpath,"$tools"
        "$tools/fold_text" "$data"
    else
        say "no library at $library: only the peers are timed"
        unset FAWN_LIB
    fi
    "$python" "$here/fold.py" "$data"
    node "$node_dir/fold.mjs" "$data"
} >"$tools/fold.jsonl"

"$python" "$here/table.py" <"$tools/fold.jsonl"
