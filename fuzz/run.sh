#!/bin/sh
# Runs each fuzz target for a while, beginning with the recorded streams of the tests. `sh fuzz/run.sh [SECONDS]`
set -eu
cd "$(dirname "$0")"
seconds=${1:-60}
command -v cargo-fuzz >/dev/null || { echo "missing: cargo-fuzz (cargo install cargo-fuzz)" >&2; exit 1; }
rustup run nightly rustc --version >/dev/null 2>&1 || { echo "missing: a nightly toolchain" >&2; exit 1; }
for target in sse openai_chunks anthropic_events replies; do
    mkdir -p "corpus/$target"
    case $target in
        anthropic_events) seeds=../tests/models/streams/anthropic ;;
        *) seeds=../tests/models/streams/openai ;;
    esac
    cargo +nightly fuzz run "$target" "corpus/$target" "$seeds" -- \
        -max_total_time="$seconds" -max_len=8192 -timeout=10 -rss_limit_mb=1024
done
