#!/usr/bin/env bash
# All tests and checks, one phase after the other. A failing phase does not hide those after it; at
# the end stand how long each took, what failed and the totals of the test runners.
#
#   tools/run_tests.sh              all phases
#   tools/run_tests.sh lint build   these only
#
# Each phase is a target of the Makefile, so that a failing one can be run alone. One that takes longer
# than PHASE_SECONDS (default: 2700) is ended and has failed; so is what is left after ALL_SECONDS, where
# that is set.
set -uo pipefail
cd "$(dirname "$0")/.."

phases=(setup check-layers lint-cpp test-cpp install lint-python lint-web check-docs test-python
    test-e2e test-original check-headers asan tsan fuzz tidy-some)
[ $# -gt 0 ] && phases=("$@")
results=build/results
rm -rf "$results"
mkdir -p "$results"

limit=(timeout --kill-after=30)
if [ -t 1 ]; then limit+=(--foreground); fi  # else Ctrl-C would not reach the phase
names=()
seconds=()
states=()
failures=0
started=$SECONDS
for phase in "${phases[@]}"; do
    before=$SECONDS
    printf '\n==== %s (after %d s)\n' "$phase" $((before - started))
    most="${PHASE_SECONDS:-2700}"
    left=$((${ALL_SECONDS:-1000000} - (before - started)))
    [ "$left" -gt 0 ] || left=1
    [ "$most" -le "$left" ] || most=$left
    if "${limit[@]}" "$most" make "$phase" </dev/null; then
        state=ok
    else
        state=FAILED
        failures=$((failures + 1))
    fi
    names+=("$phase")
    seconds+=($((SECONDS - before)))
    states+=("$state")
    if [ "$state" = FAILED ] && [ "$phase" = setup ]; then
        printf '\nsetup failed; nothing else can work without it.\n'
        break
    fi
done

printf '\n==== summary\n'
for i in "${!names[@]}"; do
    printf '%-14s %4d s  %s\n' "${names[$i]}" "${seconds[$i]}" "${states[$i]}"
done
printf '%-14s %4d s\n' "all" $((SECONDS - started))
"${PYTHON:-python3}" tools/sum_results.py "$results" || failures=$((failures + 1))
if [ "$failures" -gt 0 ]; then
    printf '%d of %d phases failed\n' "$failures" "${#names[@]}"
    exit 1
fi
