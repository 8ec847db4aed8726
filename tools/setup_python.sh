#!/usr/bin/env bash
# Makes .venv with what requirements/ names. Does nothing when that is already there: a stamp in the
# environment holds the hash of the requirements and the Python they were installed for.
#
#   tools/setup_python.sh          what building, the demo and the benchmarks need
#   tools/setup_python.sh test     also what the tests and checks need
#   PYTHON=python3.12 tools/setup_python.sh
set -euo pipefail
cd "$(dirname "$0")/.."

scope="${1:-build}"
python="${PYTHON:-python3}"
environment=.venv
case "$scope" in
build) requirements=(requirements/build.txt) ;;
test) requirements=(requirements/build.txt requirements/dev.txt) ;;
*)
    printf 'usage: %s [build|test]\n' "$0" >&2
    exit 2
    ;;
esac

# wanted FILE...: what the stamp of these requirements says.
wanted() {
    "$python" -c 'import sys; print(sys.version_info[:2])'
    cat "$@" | sha256sum
}
stamp="$environment/.requirements-$scope"

if [ -x "$environment/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$(wanted "${requirements[@]}")" ]; then
    printf 'Python: %s is up to date.\n' "$environment"
    exit 0
fi

if [ -x "$environment/bin/python" ]; then
    have="$("$environment/bin/python" -c 'import sys; print(sys.version_info[:2])')"
    if [ "$have" != "$("$python" -c 'import sys; print(sys.version_info[:2])')" ]; then
        printf 'Python: %s is of another Python; making it again.\n' "$environment"
        rm -rf "$environment"
    fi
fi
if [ ! -x "$environment/bin/python" ]; then
    printf 'Python: making %s with %s ...\n' "$environment" "$("$python" --version)"
    "$python" -m venv "$environment"
fi

install() { "$environment/bin/python" -m pip install --quiet --disable-pip-version-check "$@" </dev/null; }

torch="$(grep -E '^torch==' requirements/build.txt)"
printf 'Python: installing %s (about 200 MB, the longest part) ...\n' "$torch"
install "$torch"
printf 'Python: installing the rest of %s ...\n' "${requirements[-1]}"
install -r "${requirements[-1]}"
wanted "${requirements[@]}" >"$stamp"
# What tests need holds what building needs.
[ "$scope" = build ] || wanted requirements/build.txt >"$environment/.requirements-build"
printf 'Python: %s is ready (%s).\n' "$environment" "$("$environment/bin/python" --version)"
