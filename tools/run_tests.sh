#!/usr/bin/env bash
# All tests and checks. A failing phase does not hide those after it; at the end stand how long each took,
# what failed and the totals of the test runners.
#
#   tools/run_tests.sh              all phases
#   tools/run_tests.sh lint build   these only, one after the other
#
# Each phase is a target of the Makefile, so that a failing one can be run alone. Of all phases those that
# only compile and look at code run beside others, which wait for much, with the lowest priority; what they
# print comes when they are over. A phase that takes longer than PHASE_SECONDS (default: 2700; those beside
# others have no such limit) is ended and has failed; so is what is left after ALL_SECONDS, where that is set.
set -uo pipefail
cd "$(dirname "$0")/.."

phases=(setup-system setup-python check-layers lint-cpp test-cpp install lint-python lint-web check-docs
    test-python test-e2e test-original asan tsan fuzz neon)
# Beside others: before which phase they begin, before which they have to be over, and themselves. One lane is over
# before the next one begins.
lanes=("setup-python test-cpp build-shipped"
    "test-python asan build-asan build-tsan build-fuzz build-neon check-headers tidy-some")
if [ $# -gt 0 ]; then
    phases=("$@")
    lanes=()
fi
results=build/results
rm -rf "$results"
mkdir -p "$results"

# `timeout` has a process group of its own, which Ctrl-C does not reach: it hands the signal on.
child=
lane=
beside=()
end_beside=
on_signal() {
    [ -z "$child" ] || kill -TERM "$child"
    [ -z "$lane" ] || kill -TERM "$lane"
    wait
    exit 130
}
trap on_signal INT TERM HUP
for number in "${PHASE_SECONDS:-2700}" "${ALL_SECONDS:-1000000}"; do
    [[ "$number" =~ ^[0-9]+$ ]] || { echo "PHASE_SECONDS and ALL_SECONDS are whole seconds, not '$number'" >&2; exit 2; }
done
started=$SECONDS
names=()
seconds=()
states=()

# Runs one phase by the words that follow its name, and sets `state` and `took`.
run_phase() {
    local phase=$1 before=$SECONDS
    shift
    local most="${PHASE_SECONDS:-2700}" left=$((${ALL_SECONDS:-1000000} - (SECONDS - started)))
    [ "$most" -le "$left" ] || most=$left
    state=ok
    if [ "$most" -le 0 ]; then
        echo "no time is left"
        state=FAILED
    else
        timeout --kill-after=30 "$most" "$@" make "$phase" </dev/null &
        child=$!
        wait "$child" || state=FAILED
        child=
    fi
    took=$((SECONDS - before))
}

# The phases beside others: a line for each in beside.txt, what it printed in beside-NAME.log.
run_beside() {
    trap '[ -z "$child" ] || { kill -TERM "$child"; wait "$child"; }; exit 130' INT TERM HUP
    local phase PHASE_SECONDS=1000000
    for phase in "$@"; do
        run_phase "$phase" nice -n 19 >"$results/beside-$phase.log" 2>&1
        echo "$phase $took $state" >>"$results/beside.txt"
    done
}

note() {
    names+=("$1")
    seconds+=("$2")
    states+=("$3")
}

# begin_beside PHASE: begins what is to run beside it and those that follow.
begin_beside() {
    local line words
    for line in ${lanes[@]+"${lanes[@]}"}; do
        read -ra words <<<"$line"
        [ "${words[0]}" = "$1" ] || continue
        end_beside=${words[1]}
        beside=("${words[@]:2}")
        : >"$results/beside.txt"
        run_beside "${beside[@]}" &
        lane=$!
    done
}

join_beside() {
    [ -n "$lane" ] || return 0
    wait "$lane"
    lane=
    local phase told
    for phase in "${beside[@]}"; do
        printf '\n==== %s (beside others)\n' "$phase"
        cat "$results/beside-$phase.log" 2>/dev/null
        # One of which nothing was told was ended with the lane.
        told=$(grep "^$phase " "$results/beside.txt") || told="$phase 0 FAILED"
        # shellcheck disable=SC2086 # three words
        note $told
    done
}

for phase in "${phases[@]}"; do
    [ "$phase" != "$end_beside" ] || join_beside
    begin_beside "$phase"
    printf '\n==== %s (after %d s)\n' "$phase" $((SECONDS - started))
    run_phase "$phase"
    note "$phase" "$took" "$state"
    if [ "$state" = FAILED ] && [[ "$phase" = setup* ]]; then
        printf '\nsetup failed; nothing else can work without it.\n'
        [ -z "$lane" ] || kill -TERM "$lane" 2>/dev/null
        break
    fi
done
join_beside

printf '\n==== summary\n'
failures=0
for i in "${!names[@]}"; do
    printf '%-14s %4d s  %s\n' "${names[$i]}" "${seconds[$i]}" "${states[$i]}"
    [ "${states[$i]}" = ok ] || failures=$((failures + 1))
done
printf '%-14s %4d s\n' "all" $((SECONDS - started))
# Phases of tests that report none have run none.
least=0
[[ " ${phases[*]}" != *\ test-* ]] || least=1
"${PYTHON:-python3}" tools/sum_results.py --least "$least" "$results" || failures=$((failures + 1))
if [ "$failures" -gt 0 ]; then
    printf '%d failures in %d phases\n' "$failures" "${#names[@]}"
    exit 1
fi
