#!/bin/sh
# Compiles and runs the tests of fawn.hpp: the header alone in every standard with each compiler that is there, with and
# without exceptions and RTTI; the programs in the oldest standard with exceptions and in the newest without, with the
# address and undefined behaviour sanitizers, and the small ones under valgrind. What is missing is said and left out.
#
#   FAWN_CPP_FULL     1: the programs in every combination, and all of them under valgrind
#   FAWN_LIB_DIR      folder with libfawn.so and libfawn.so.0
#   FAWN_INCLUDE_DIR  folder with fawn.h; default include/
#   CXX, CLANGXX      compilers; default c++, and clang++ of any version
#   FAWN_CPP_BUILD    where programs go; default build/cpp
#   JOBS              compilers at a time; default 2
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
include=${FAWN_INCLUDE_DIR:-$root/include}
lib=$(cd "${FAWN_LIB_DIR:?the folder of libfawn.so}" && pwd)
out=${FAWN_CPP_BUILD:-$root/build/cpp}
cxx=${CXX:-c++}
clangxx=${CLANGXX:-$(command -v clang++ || ls /usr/bin/clang++-[0-9]* 2>/dev/null | sort -V | tail -n 1 || true)}
jobs=${JOBS:-2}
export out

warnings="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Werror"
paths="-I$include -I$here/.. -I$here"
link="-L$lib -lfawn -Wl,-rpath,$lib"
programs="json objects queue calls runs load"
bare="-fno-exceptions -fno-rtti"
full=${FAWN_CPP_FULL:-}

say() { printf '%s\n' "$*"; }

supports() { # COMPILER STANDARD
    printf 'int main() {}\n' | "$1" -std="$2" -x c++ -fsyntax-only - 2>/dev/null
}

build() { # VARIANT COMPILER FLAGS...: all programs
    variant=$1 compiler=$2
    shift 2
    mkdir -p "$out/$variant"
    printf '%s\n' $programs | xargs -P "$jobs" -I{} "$compiler" "$@" -g -pthread $warnings $paths "$here/{}.cpp" -o "$out/$variant/{}" $link
}

run() { # VARIANT RUNS COMMAND...: all programs
    variant=$1 runs=$2
    shift 2
    for program in $programs; do
        arguments=
        [ "$program" = load ] && arguments="$runs 3"
        "$@" "$out/$variant/$program" $arguments || { say "failed: $variant/$program"; exit 1; }
    done
    say "passed: $variant"
}

# Nothing of the C interface is missing here.
for name in $(sed -n 's/^#define \(FAWN_ERR_[A-Z0-9_]*\).*/\1/p' "$include/fawn.h") \
    $(sed -n 's/^FAWN_API.* \**\(fawn_[a-z_]*\)(.*/\1/p; s/^[a-z0-9_ ]*[ *]\(fawn_[a-z_]*\)(.*/\1/p' "$include/fawn.h" | sort -u); do
    grep -qw "$name" "$here/../fawn.hpp" || { say "fawn.hpp lacks $name"; exit 1; }
done

# The page shows the program that is run below.
awk '/^```cpp$/ { on = 1; next } /^```$/ { if (on) exit } on' "$here/../README.md" | diff - "$root/examples/cpp/readme.cpp" ||
    { say "the program in bindings/cpp/README.md is not examples/cpp/readme.cpp"; exit 1; }

# The header alone in every combination; that it comes twice must not matter.
header() { # COMPILER STANDARD FLAGS...
    compiler=$1 standard=$2
    shift 2
    printf '#include <fawn.hpp>\n#include <fawn.hpp>\n' | "$compiler" -std="$standard" "$@" $warnings $paths -x c++ -fsyntax-only -
}
both() { # COMPILER STANDARD [FLAGS...]: builds the programs and runs them
    compiler=$1 standard=$2
    shift 2
    kind=$(basename "$compiler")-$standard${1:+-bare}
    build "$kind" "$compiler" -std="$standard" -O0 "$@"
    run "$kind" 100 env
}
newest=
for compiler in "$cxx" $clangxx; do
    for standard in c++17 c++20 c++23; do
        supports "$compiler" "$standard" || { say "left out: $compiler has no $standard"; continue; }
        header "$compiler" "$standard"
        [ "$standard" = c++20 ] || header "$compiler" "$standard" $bare
        newest="$compiler $standard"
        [ "$full" = 1 ] || continue
        both "$compiler" "$standard"
        [ "$standard" = c++20 ] || both "$compiler" "$standard" $bare
    done
done
say "passed: the header alone"
if [ "$full" != 1 ]; then
    both "$cxx" c++17
    both $newest $bare
fi
[ -n "$clangxx" ] || say "left out: there is no clang++"

# Objects of two kinds in one program.
mkdir -p "$out/mixed"
newest=c++23
supports "$cxx" $newest || newest=c++20
"$cxx" -std=$newest -O0 -g -pthread $warnings $paths -c "$here/mixed.cpp" -o "$out/mixed/mixed.o"
"$cxx" -std=c++17 $bare -O0 -g -pthread $warnings $paths -c "$here/mixed_other.cpp" -o "$out/mixed/mixed_other.o"
"$cxx" -pthread "$out/mixed/mixed_other.o" "$out/mixed/mixed.o" -o "$out/mixed/mixed" $link
"$out/mixed/mixed"
say "passed: mixed"

# A thousand runs at once; the figures are what it prints.
all=$programs
[ "$full" = 1 ] || programs=load
build optimised "$cxx" -std=c++17 -O2
run optimised 1000 env
programs=$all

sanitizers="-fsanitize=address,undefined -fno-sanitize-recover=all"
if printf 'int main() {}\n' | "$cxx" $sanitizers -x c++ - -o "$out/probe" 2>/dev/null; then
    [ "$full" = 1 ] || programs="json queue calls runs" # the others load the library more than the header
    build sanitized "$cxx" -std=c++20 -O1 $sanitizers
    run sanitized 200 env ASAN_OPTIONS=detect_leaks=1
    programs=$all
else
    say "left out: $cxx has no sanitizers (on Debian: apt-get install libasan8 libubsan1)"
fi

if command -v valgrind >/dev/null; then
    [ "$full" = 1 ] || programs="json objects"
    # What is only possibly lost is the library's: its tests look at that, with the symbols that this takes.
    run "$(basename "$cxx")-c++17" 50 valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite \
        --errors-for-leak-kinds=definite --fair-sched=yes
    say "passed: valgrind"
else
    say "left out: there is no valgrind"
fi

# The examples, and the runner of scripts.
mkdir -p "$out/examples"
"$cxx" -std=c++17 -O0 -pthread $warnings $paths "$root/examples/cpp/readme.cpp" -o "$out/examples/readme" $link
for program in examples/cpp/quickstart bindings/cpp/conformance/runner bindings/cpp/bench/bench; do
    "$cxx" -std=c++17 -pthread $warnings $paths -fsyntax-only "$root/$program.cpp"
done
"$out/examples/readme" | grep -q 'In Paris it is clear, with 18 degrees.' || { say "failed: readme"; exit 1; }
say "passed: readme"

if command -v cmake >/dev/null; then
    sh "$here/consumer/run.sh" "$out/consumer" "$lib" "$include"
    say "passed: consumer"
else
    say "left out: there is no cmake"
fi
