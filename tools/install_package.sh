#!/usr/bin/env bash
# Builds the wheel and installs it into .venv: extension, program `traindbg`, stubs. Quick when
# nothing changed: a stamp holds a hash of everything that goes into the wheel.
set -euo pipefail
cd "$(dirname "$0")/.."

environment=.venv
stamp="$environment/.package"
wanted="$(find src include cmake python CMakeLists.txt pyproject.toml -type f \
    -not -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1)"
if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && [ -x "$environment/bin/traindbg" ] &&
    [ "$("$environment/bin/python" -c 'import traindbg' 2>&1)" = "" ]; then
    printf 'Package: traindbg is installed and up to date.\n'
    exit 0
fi
rm -f "$stamp"
printf 'Package: building and installing traindbg ...\n'
log=build/install.log
mkdir -p build
CMAKE_BUILD_PARALLEL_LEVEL="${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" \
    "$environment/bin/python" -m pip install --disable-pip-version-check --no-build-isolation --no-deps \
    --force-reinstall --verbose . >"$log" 2>&1 </dev/null || {
    tail -n 60 "$log"
    printf 'Package: the build failed; all of its output is in %s\n' "$log" >&2
    exit 1
}
printf '%s' "$wanted" >"$stamp"
printf 'Package: %s\n' "$("$environment/bin/traindbg" version 2>/dev/null | head -n 1)"
