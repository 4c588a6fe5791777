# Sourced by fold.sh, run.sh, stream.sh and bindings.sh: where things are, and the peers' packages under target/bench-tools.
# Preparing is quick when it was done before; it is done again when a list of versions changed.

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
tools=$root/target/bench-tools

say() { echo "$*" >&2; }

# Exit code 77: not a failure of fawn, there is nothing to compare with.
skip() {
    say "skipped: $*"
    exit 77
}

# Sets $python. The stamp is written last: an environment that was interrupted is made again.
prepare_python() {
    python=$tools/python/bin/python
    cmp -s "$here/requirements.txt" "$tools/python/stamp" && return
    say "installing the Python peers"
    rm -rf "$tools/python"
    mkdir -p "$tools"
    "${PYTHON:-python3}" -m venv "$tools/python" >&2 || skip "python3 -m venv does not work"
    "$python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt" >&2 ||
        skip "the packages of requirements.txt cannot be installed"
    cp "$here/requirements.txt" "$tools/python/stamp"
}

# Sets $node_dir, where fold.mjs and stream.mjs must lie to find their packages. No lock file: it would carry addresses of a registry.
prepare_node() {
    node_dir=$tools/node
    mkdir -p "$node_dir"
    cp "$here/fold.mjs" "$here/stream.mjs" "$node_dir/"
    cmp -s "$here/package.json" "$node_dir/stamp" && return
    say "installing the Node peers"
    rm -rf "$node_dir/node_modules" "$node_dir/stamp"
    cp "$here/package.json" "$node_dir/"
    (cd "$node_dir" && npm install --silent --no-audit --no-fund --no-package-lock --ignore-scripts >&2) ||
        skip "the packages of package.json cannot be installed"
    cp "$here/package.json" "$node_dir/stamp"
}
