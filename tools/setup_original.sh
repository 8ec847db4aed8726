#!/usr/bin/env bash
# Makes an environment with the original client library (smdebug) and prints the path of its Python.
#
#   python="$(tools/setup_original.sh)"
#
# It lies outside of the checkout, so that `make clean` and other checkouts keep it:
# $TRAINDBG_ORIGINAL_ENV, or ~/.cache/traindbg/original-<hash of requirements/original.txt>. Exits with 1
# and the reason on standard error when it cannot be made (no network, no such packages).
set -euo pipefail
cd "$(dirname "$0")/.."

python="${PYTHON:-python3}"
requirements=requirements/original.txt
version="$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
hash="$({ printf '%s ' "$version"; cat "$requirements"; } | sha256sum | cut -c 1-12)"
environment="${TRAINDBG_ORIGINAL_ENV:-${XDG_CACHE_HOME:-$HOME/.cache}/traindbg/original-$hash}"
stamp="$environment/.complete"

if [ ! -e "$stamp" ]; then
    printf 'The original library: making %s (about a minute, once) ...\n' "$environment" >&2
    mkdir -p "$(dirname "$environment")"
    # Two of these at a time must not fill one directory.
    exec 9>"$environment.lock"
    flock 9
    if [ ! -e "$stamp" ]; then
        rm -rf "$environment"
        "$python" -m venv "$environment" >&2
        if ! "$environment/bin/python" -m pip install --quiet --disable-pip-version-check \
            -r "$requirements" </dev/null >&2; then
            printf 'The original library could not be installed from %s.\n' "$requirements" >&2
            exit 1
        fi
        touch "$stamp"
    fi
fi
printf '%s\n' "$environment/bin/python"
