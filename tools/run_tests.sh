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

# `timeout` has a process group of its own, which Ctrl-C does not reach: it hands the signal on.
child=
trap '[ -z "$child" ] || { kill -TERM "$child"; wait "$child"; }; exit 130' INT TERM HUP
names=()
seconds=()
states=()
failures=0
for number in "${PHASE_SECONDS:-2700}" "${ALL_SECONDS:-1000000}"; do
    [[ "$number" =~ ^[0-9]+$ ]] || { echo "PHASE_SECONDS and ALL_SECONDS are whole seconds, not '$number'" >&2; exit 2; }
done
started=$SECONDS
for phase in "${phases[@]}"; do
    before=$SECONDS
    printf '\n==== %s (after %d s)\n' "$phase" $((before - started))
    most="${PHASE_SECONDS:-2700}"
    left=$((${ALL_SECONDS:-1000000} - (before - started)))
    [ "$most" -le "$left" ] || most=$left
    state=ok
    if [ "$most" -le 0 ]; then
        echo "no time is left"
        state=FAILED
    else
        timeout --kill-after=30 "$most" make "$phase" </dev/null &
        child=$!
        wait "$child" || state=FAILED
        child=
    fi
    [ "$state" = ok ] || failures=$((failures + 1))
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
# Phases of tests that report none have run none.
least=0
[[ " ${phases[*]}" != *\ test-* ]] || least=1
"${PYTHON:-python3}" tools/sum_results.py --least "$least" "$results" || failures=$((failures + 1))
if [ "$failures" -gt 0 ]; then
    printf '%d of %d phases failed\n' "$failures" "${#names[@]}"
    exit 1
fi
