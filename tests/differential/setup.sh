#!/bin/sh
# Makes the virtual environment that run.py needs, under target/test-tools/differential, and prints its Python.
# Does nothing when it is there already. Exit code 77 when the packages cannot be had, so that a test run can skip.
set -u
here=$(cd "$(dirname "$0")" && pwd)
venv=$(cd "$here/../.." && pwd)/target/test-tools/differential

skip() {
    echo "skipped: the comparison with LangGraph needs $1" >&2
    exit 77
}

python=""
for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
    # Types in the scripts need 3.11.
    if "$candidate" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || skip "Python 3.11 or later with venv"

# The stamp is written last: an environment that was interrupted is made again.
if cmp -s "$here/requirements.txt" "$venv/stamp" && [ -x "$venv/bin/python" ]; then
    echo "$venv/bin/python"
    exit 0
fi
rm -rf "$venv"
mkdir -p "$venv"
"$python" -m venv "$venv" >&2 || skip "python -m venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt" >&2 ||
    { rm -rf "$venv"; skip "the packages of requirements.txt, which could not be installed"; }
cp "$here/requirements.txt" "$venv/stamp"
echo "$venv/bin/python"
