#!/usr/bin/env bash
# Builds the fuzz targets (clang, libFuzzer, ASan, UBSan) and runs each for some seconds, from its
# corpus where fuzz/corpus/<target> exists.
#
#   tools/run_fuzz.sh [SECONDS]
#
# What crashes a target is left in build/fuzz/<target>.crash-*; run the target on that file to see it.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds="${1:-10}"
mkdir -p build
cmake --preset fuzz >build/fuzz-configure.log 2>&1 || {
    cat build/fuzz-configure.log
    exit 1
}
names=()
for source in fuzz/*_fuzz.cc; do names+=("$(basename "$source" .cc)"); done
cmake --build --preset fuzz -j "${JOBS:-$(nproc)}" --target "${names[@]}"

for name in "${names[@]}"; do
    target="build/fuzz/fuzz/$name"
    grown="build/fuzz/corpus/$name"
    mkdir -p "$grown"
    seeds=()
    for folder in "fuzz/corpus/$name" "fuzz/corpus/${name%_fuzz}"; do
        if [ -d "$folder" ]; then seeds+=("$folder"); fi
    done
    log="build/fuzz/$name.log"
    if ! "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/$name." "$grown" "${seeds[@]}" >"$log" 2>&1; then
        tail -n 40 "$log"
        echo "fuzz: $name failed; the whole output is in $log" >&2
        exit 1
    fi
    runs="$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
    echo "fuzz: $name: ${runs:-?} inputs in $seconds s, none failed"
done
