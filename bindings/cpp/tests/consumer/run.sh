#!/bin/sh
# Builds the consumer against the source folder and against an installed package that has been moved, and runs it.
#   run.sh BUILD_FOLDER LIB_DIR INCLUDE_DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1 lib=$2 include=$3
rm -rf "$out" && mkdir -p "$out"

quietly() { "$@" >"$out/log" 2>&1 || { cat "$out/log"; exit 1; }; }

quietly cmake -S "$here" -B "$out/source" -DFAWN_SOURCE_DIR="$here/../.." -DFAWN_LIB_DIR="$lib" -DFAWN_INCLUDE_DIR="$include"
quietly cmake --build "$out/source"
"$out/source/consumer" | grep -q '^fawn .*"runs"'

quietly cmake -S "$here/../.." -B "$out/package" -DFAWN_LIB_DIR="$lib" -DFAWN_INCLUDE_DIR="$include"
quietly cmake --install "$out/package" --prefix "$out/first"
mv "$out/first" "$out/moved"
quietly cmake -S "$here" -B "$out/installed" -DCMAKE_PREFIX_PATH="$out/moved"
quietly cmake --build "$out/installed"
"$out/installed/consumer" | grep -q '^fawn .*"runs"'
