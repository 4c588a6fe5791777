#!/bin/sh
# Runs the same calls from C and through each binding in one go and prints the table of ratios with what is asked of them.
#   FAWN_LIB_DIR      folder with libfawn.so and libfawn.so.0; default target/release
#   FAWN_INCLUDE_DIR  folder with fawn.h; default include/
#   CC, CXX           compilers; default cc, c++
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

bench_c() {
    "${CC:-cc}" -O2 -Wall -Wextra -I "$FAWN_INCLUDE_DIR" -o "$out/c" "$here/bindings/bench.c" $link
    "$out/c"
}

bench_cpp() {
    "${CXX:-c++}" -std=c++17 -O2 -Wall -Wextra -I "$FAWN_INCLUDE_DIR" -I "$root/bindings/cpp" -o "$out/cpp" \
        "$root/bindings/cpp/bench/bench.cpp" $link
    "$out/cpp"
}

bench_go() {
    (cd "$root/bindings/go" && CGO_ENABLED=1 CGO_CFLAGS="-I$FAWN_INCLUDE_DIR" CGO_LDFLAGS="-L$FAWN_LIB_DIR" \
        go build -o "$out/go" ./cmd/bench)
    "$out/go"
}

bench_node() {
    node "$root/bindings/node/build.mjs" >/dev/null
    node "$root/bindings/node/bench/bench.mjs"
}

# C first and last: if the machine became slower or faster meanwhile, the two differ.
: >"$out/lines.jsonl"
bench_c >>"$out/lines.jsonl"
if has cpp "${CXX:-c++}"; then bench_cpp >>"$out/lines.jsonl"; fi
if has go go; then bench_go >>"$out/lines.jsonl"; fi
if has node node; then bench_node >>"$out/lines.jsonl"; fi
bench_c >>"$out/lines.jsonl"

python=$(command -v "${PYTHON:-python3}") || skip "there is no python3 to print the table; the lines are in $out/lines.jsonl"
"$python" "$here/bindings/table.py" <"$out/lines.jsonl"
