#!/bin/sh
# Gets what the thread sanitizer needs and prints the C compiler to use with it: a clang that has the sanitizer's runtime
# (installed with apt when this is root on a Debian, along with the tool that names the places in its reports), and the
# source of std (by rustup), which is built with the sanitizer too.
# Exit code 1, with what is missing, when it cannot be had.
set -u
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo 'int main(void) { return 0; }' > "$folder/empty.c"

missing() {
    echo "missing for the thread sanitizer: $1" >&2
    exit 1
}

# Links and starts, since a compiler may lack the runtime, and an old runtime may not cope with the kernel's address layout.
works() {
    command -v "$1" >/dev/null && "$1" -fsanitize=thread "$folder/empty.c" -o "$folder/empty" 2>/dev/null &&
        "$folder/empty" 2>/dev/null
}

# Prints the first clang that works.
find_clang() {
    for candidate in ${FAWN_CC:-} clang clang-22 clang-21 clang-20 clang-19 clang-18 clang-17 clang-16 clang-15 clang-14; do
        if works "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

install_clang() {
    command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] || return 1
    apt-get update -qq >/dev/null 2>&1
    for version in 19 18 14; do
        if apt-cache show "clang-$version" >/dev/null 2>&1; then
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
                "clang-$version" "libclang-rt-$version-dev" "llvm-$version" >/dev/null 2>&1
            return
        fi
    done
    return 1
}

clang=$(find_clang) || { install_clang && clang=$(find_clang); } ||
    missing "clang with its sanitizer runtime; on Debian, as root: apt-get install clang-19 libclang-rt-19-dev llvm-19"

std=$(rustc --print sysroot)/lib/rustlib/src/rust/library/Cargo.lock
if ! [ -f "$std" ]; then
    command -v rustup >/dev/null && rustup component add rust-src >/dev/null 2>&1
    [ -f "$std" ] || missing "the source of std; with rustup: rustup component add rust-src"
fi
echo "$clang"
