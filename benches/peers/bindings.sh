#!/bin/sh
# Runs the same calls from C and through each binding in one go and prints the table of ratios with what is asked of them.
#   FAWN_LIB_DIR      folder with libfawn.so and libfawn.so.0; default target/release
#   FAWN_INCLUDE_DIR  folder with fawn.h; default include/
#   CC, CXX           compilers; default cc, c++
#   BENCH_TURNS       how often each program runs; default 3
#   BENCH_CHECK=1     exit code 1 if a figure is short of what is asked
# A language whose tools or whose folder are missing is left out with a message.
set -eu
. "$(dirname "$0")/prepare.sh"

export FAWN_LIB_DIR="${FAWN_LIB_DIR:-$root/target/release}"
export FAWN_INCLUDE_DIR="${FAWN_INCLUDE_DIR:-$root/include}"
[ -e "$FAWN_LIB_DIR/libfawn.so" ] || skip "no library in $FAWN_LIB_DIR; make lib builds it"
FAWN_LIB_DIR=$(cd "$FAWN_LIB_DIR" && pwd)
export LD_LIBRARY_PATH="$FAWN_LIB_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
out=$tools/bindings
mkdir -p "$out"
# Programs look for the library by its SONAME.
if [ ! -e "$FAWN_LIB_DIR/libfawn.so.0" ]; then
    ln -sf "$FAWN_LIB_DIR/libfawn.so" "$out/libfawn.so.0"
    LD_LIBRARY_PATH="$out:$LD_LIBRARY_PATH"
fi
link="-L$FAWN_LIB_DIR -lfawn -pthread"

# Whether a language has a folder and its tools.
has() {
    [ -d "$root/bindings/$1" ] || { say "$1: there is no bindings/$1"; return 1; }
    shift
    for tool in "$@"; do
        command -v "$tool" >/dev/null || { say "left out: there is no $tool"; return 1; }
    done
}

build_c() {
    "${CC:-cc}" -O2 -Wall -Wextra -I "$FAWN_INCLUDE_DIR" -o "$out/c" "$here/bindings/bench.c" $link
}

build_cpp() {
    "${CXX:-c++}" -std=c++17 -O2 -Wall -Wextra -I "$FAWN_INCLUDE_DIR" -I "$root/bindings/cpp" -o "$out/cpp" \
        "$root/bindings/cpp/bench/bench.cpp" $link
}

build_go() {
    (cd "$root/bindings/go" && CGO_ENABLED=1 CGO_CFLAGS="-I$FAWN_INCLUDE_DIR -O2 -g" CGO_LDFLAGS="-L$FAWN_LIB_DIR" \
        go build -o "$out/go" ./cmd/bench)
}

build_node() {
    node "$root/bindings/node/build.mjs" >/dev/null
    printf '#!/bin/sh\nexec node "%s"\n' "$root/bindings/node/bench/bench.mjs" >"$out/node"
    chmod +x "$out/node"
}

languages=c
build_c
if has cpp "${CXX:-c++}"; then build_cpp; languages="$languages cpp"; fi
if has go go; then build_go; languages="$languages go"; fi
if has node node; then build_node; languages="$languages node"; fi

# In turns, so that a machine that is busy for a while is so for all of them. The best figure of each counts.
: >"$out/lines.jsonl"
turn=0
while [ $turn -lt "${BENCH_TURNS:-3}" ]; do
    turn=$((turn + 1))
    for language in $languages; do "$out/$language" >>"$out/lines.jsonl"; done
done

python=$(command -v "${PYTHON:-python3}") || skip "there is no python3 to print the table; the lines are in $out/lines.jsonl"
"$python" "$here/bindings/table.py" <"$out/lines.jsonl"
