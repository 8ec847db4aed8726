#!/usr/bin/env bash
# Builds the fuzz targets (clang, libFuzzer, ASan, UBSan) and runs each for some seconds, from its
# corpus where fuzz/corpus/<target> exists; as many at a time as JOBS says (default: one per core).
#
#   tools/run_fuzz.sh [SECONDS [TARGET ...]]
#   tools/run_fuzz.sh 600 segment_fuzz
#   tools/run_fuzz.sh 0                   builds them only
#   FUZZ_PRESET=fuzz tools/run_fuzz.sh 600
#
# They are built with the tests of the preset asan, not optimised. For a long search the preset fuzz is worth its
# build: it takes minutes, and gets through more inputs a second.
#
# What crashes a target, takes 10 s or more than 512 MiB is left in build/fuzz/<target>.*; run the
# target on that file to see it.
set -euo pipefail
cd "$(dirname "$0")/.."

# Runs one target. Its output goes to build/fuzz/<target>.log.
run_target() {
    local name="$1" seconds="$2"
    local log="build/fuzz/$name.log" grown="build/fuzz/corpus/$name" seeds=() folder
    mkdir -p "$grown"
    for folder in "fuzz/corpus/$name" "fuzz/corpus/${name%_fuzz}"; do
        if [ -d "$folder" ]; then seeds+=("$folder"); fi
    done
    # With libFuzzer's default, what is not optimised has so much coverage that to count how rare each bit of it is
    # takes most of the time.
    local entropic=1
    if [ "$FUZZ_PRESET" = asan ]; then entropic=0; fi
    # What was freed is kept by AddressSanitizer for a while: 32 MiB of it, not 256.
    if ! ASAN_OPTIONS="quarantine_size_mb=32" "build/$FUZZ_PRESET/fuzz/$name" -max_total_time="$seconds" -timeout=10 \
        -rss_limit_mb=512 -entropic="$entropic" -print_funcs=0 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/$name." "$grown" "${seeds[@]}" \
        >"$log" 2>&1; then
        tail -n 40 "$log"
        echo "fuzz: $name failed; the whole output is in $log" >&2
        return 1
    fi
    stat_of() { sed -n "s/^stat::$1: *//p" "$log"; }
    echo "fuzz: $name: $(stat_of number_of_executed_units) inputs in $seconds s, $(stat_of peak_rss_mb) MiB at most," \
        "none failed"
}
export -f run_target
export FUZZ_PRESET="${FUZZ_PRESET:-asan}"
export CCACHE_SLOPPINESS=pch_defines,time_macros # as in the Makefile

seconds="${1:-10}"
shift || true
jobs="${JOBS:-$(nproc)}"
mkdir -p build/fuzz
cmake --preset "$FUZZ_PRESET" >"build/$FUZZ_PRESET-configure.log" 2>&1 || {
    cat "build/$FUZZ_PRESET-configure.log"
    exit 1
}
names=("$@")
if [ "${#names[@]}" -eq 0 ]; then
    for source in fuzz/*_fuzz.cc; do names+=("$(basename "$source" .cc)"); done
fi
cmake --build --preset "$FUZZ_PRESET" -j "$jobs" --target "${names[@]}"
[ "$seconds" != 0 ] || exit 0
printf '%s\n' "${names[@]}" | xargs -P "$jobs" -I '{}' bash -euo pipefail -c 'run_target "$1" "$2"' run '{}' "$seconds"
