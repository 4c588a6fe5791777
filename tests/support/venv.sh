#!/bin/sh
# Makes the virtual environment target/test-tools/NAME with what a requirements file says, and prints its Python.
# Does nothing when it is there already. Exit code 77 when it cannot be had, so that a test run can skip.
# Usage: venv.sh NAME REQUIREMENTS WHAT_FOR
set -u
name=$1 requirements=$2 purpose=$3
root=$(cd "$(dirname "$0")/../.." && pwd)
venv=$root/target/test-tools/$name

skip() {
    echo "skipped: $purpose: no $1" >&2
    exit 77
}

# The stamp is written last: an environment that was interrupted is made again.
if cmp -s "$requirements" "$venv/stamp" && [ -x "$venv/bin/python" ]; then
    echo "$venv/bin/python"
    exit 0
fi
python=""
for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import sys, venv; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || skip "Python 3.10 or later with venv"
rm -rf "$venv"
mkdir -p "$venv"
"$python" -m venv "$venv" >&2 || { rm -rf "$venv"; skip "venv in this Python (on Debian: apt-get install python3-venv)"; }
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: -r "$requirements" >&2 ||
    { rm -rf "$venv"; skip "packages: what $requirements names could not be installed"; }
cp "$requirements" "$venv/stamp"
echo "$venv/bin/python"
