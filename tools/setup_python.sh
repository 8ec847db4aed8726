#!/usr/bin/env bash
# Makes .venv with what requirements/dev.txt names. Does nothing when that is already there: a stamp
# in the environment holds the hash of the requirements and the Python they were installed for.
#
#   PYTHON=python3.12 tools/setup_python.sh
set -euo pipefail
cd "$(dirname "$0")/.."

python="${PYTHON:-python3}"
environment=.venv
requirements=requirements/dev.txt
stamp="$environment/.requirements"

wanted="$("$python" -c 'import sys; print(sys.version_info[:2])') $(sha256sum "$requirements" | cut -d ' ' -f 1)"
if [ -x "$environment/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
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

torch="$(grep -E '^torch==' "$requirements")"
printf 'Python: installing %s (about 200 MB, the longest part) ...\n' "$torch"
install "$torch"
printf 'Python: installing the rest of %s ...\n' "$requirements"
install -r "$requirements"
printf '%s' "$wanted" >"$stamp"
printf 'Python: %s is ready (%s).\n' "$environment" "$("$environment/bin/python" --version)"
