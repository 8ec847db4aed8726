#!/usr/bin/env bash
# What `make demo` shows: a healthy training and three with a real mistake in them, each under
# `traindbg run`. Nothing in the script knows of traindbg. Exits 0 when each ended as it should.
set -uo pipefail
cd "$(dirname "$0")/.."

runs="${TRAINDBG_RUNS:-traindbg-runs}"
export TRAINDBG_RUNS="$runs"
PATH="$PWD/.venv/bin:$PATH"
script=examples/digits/train.py
stamp="$(date +%Y%m%d-%H%M%S)"
bold="" plain=""
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' plain=$'\e[0m'; fi

wrong=0
summary=()

# show NAME EXPECTED_CODE "what it is" ARGUMENTS...: runs the script and compares the exit code.
show() {
    local name="$1" expected="$2" what="$3"
    shift 3
    local command=(traindbg run --name "demo-$stamp-$name")
    [ "$expected" -eq 90 ] && command+=(--on-finding stop)
    command+=(-- python "$script" "$@")
    printf '\n%s%s%s\n$ %s\n\n' "$bold" "$what" "$plain" "${command[*]}"
    "${command[@]}"
    local code=$?
    local report="$runs/demo-$stamp-$name/report.html"
    local said="as it should"
    if [ "$code" -ne "$expected" ]; then
        said="NOT as it should: expected $expected"
        wrong=1
    elif [ ! -s "$report" ]; then
        said="NOT as it should: there is no report"
        wrong=1
    fi
    summary+=("$(printf '%-15s exit code %3d  %s' "$name" "$code" "$said")" "  $report")
}

show healthy 0 "A healthy training: a small CNN on 1,797 handwritten digits."
show learning_rate 90 "The same with a learning rate of 2 instead of 0.02; traindbg may stop it." \
    --fault learning_rate
show dead_relu 90 "The same with every bias at -4.6: the ReLUs never open." --fault dead_relu
show one_class 90 "The same with labels of one class only." --fault one_class

printf '\n%sWhat happened%s (code 90: a rule stopped the training)\n' "$bold" "$plain"
printf '%s\n' "${summary[@]}"
if [ "$wrong" -ne 0 ]; then
    printf '\nThe demo did not show what it should.\n' >&2
    exit 1
fi
printf '\nOpen a report in a browser; it needs no network. More mistakes: python %s --help\n' "$script"
