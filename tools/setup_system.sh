#!/usr/bin/env bash
# Sees to it that the compiler, the build tools and the libraries are there.
#
#   tools/setup_system.sh          what is needed to build and run traindbg
#   tools/setup_system.sh test     also what the tests and checks need
#   tools/setup_system.sh neon     what is needed to build for 64-bit ARM, and to run that here
#
# Looks first and installs only what is missing, through apt-get (with sudo where the user is not
# root). Prints nothing but one line when all is there. Exits 1 with one line per missing thing when
# it cannot be installed.
set -euo pipefail

scope="${1:-build}"
python="${PYTHON:-python3}"
packages=()  # Debian packages to install
reasons=()   # why, one line each

say() { printf '%s\n' "$*"; }

need() {  # need PACKAGE "what it is": notes a missing package
    packages+=("$1")
    reasons+=("  $1: $2")
}

have_command() { command -v "$1" >/dev/null 2>&1; }

# True when the compiler finds a header.
have_header() {
    printf '#include <%s>\n' "$1" | "${CXX:-g++}" -std=c++20 -E -x c++ - >/dev/null 2>&1
}

# at_least 3.25 3.25.1: true when the second version is not older than the first.
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

command_or_need() { have_command "$1" || need "$2" "$3"; }
header_or_need() { have_header "$1" || need "$2" "$3"; }

look() {
    packages=()
    reasons=()
    command_or_need "${CXX:-g++}" g++ "the C++ compiler"
    command_or_need cmake cmake "the build generator"
    command_or_need ninja ninja-build "the build tool"
    command_or_need git git "version control"
    if have_command "${CXX:-g++}"; then
        header_or_need fmt/format.h libfmt-dev "text formatting, header-only use"
        header_or_need nlohmann/json.hpp nlohmann-json3-dev "JSON"
        header_or_need CLI/CLI.hpp libcli11-dev "command lines"
        header_or_need hwy/highway.h libhwy-dev "vector instructions"
        header_or_need re2/re2.h libre2-dev "regular expressions"
        header_or_need zstd.h libzstd-dev "compression"
        header_or_need xxhash.h libxxhash-dev "fingerprints, header-only"
        header_or_need protozero/pbf_reader.hpp libprotozero-dev "protocol buffers, header-only"
        header_or_need toml++/toml.h libtomlplusplus-dev "settings files, header-only"
    else
        need libfmt-dev "text formatting, header-only use"
        need nlohmann-json3-dev "JSON"
        need libcli11-dev "command lines"
        need libhwy-dev "vector instructions"
        need libre2-dev "regular expressions"
        need libzstd-dev "compression"
        need libxxhash-dev "fingerprints, header-only"
        need libprotozero-dev "protocol buffers, header-only"
        need libtomlplusplus-dev "settings files, header-only"
    fi
    if have_command "$python"; then
        "$python" -c 'import venv, ensurepip' 2>/dev/null || need python3-venv "Python environments"
        "$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' ||
            need python3-dev "Python's C headers"
    else
        need python3 "Python"
        need python3-venv "Python environments"
        need python3-dev "Python's C headers"
    fi
    if [ "$scope" = neon ]; then
        command_or_need aarch64-linux-gnu-g++ g++-aarch64-linux-gnu "the C++ compiler for ARM"
        command_or_need qemu-aarch64 qemu-user "runs programs for ARM"
        [ -f /usr/src/googletest/googletest/CMakeLists.txt ] || need libgtest-dev "C++ tests, with their sources"
    fi
    [ "$scope" = test ] || return 0
    command_or_need ccache ccache "keeps compiled files, so that a second build is quick"
    header_or_need gtest/gtest.h libgtest-dev "C++ tests"
    header_or_need rapidcheck.h librapidcheck-dev "C++ property tests"
    header_or_need benchmark/benchmark.h libbenchmark-dev "C++ benchmarks"
    command_or_need clang++ clang "sanitizers and fuzz targets"
    command_or_need clang-tidy clang-tidy "static analysis"
    have_library libcurl.so.4 || need "$(curl_package)" "talks to S3; the program loads it when it is used"
    command_or_need node nodejs "runs the tests of the report's script"
    command_or_need npm npm "fetches the script's type checker"
    if have_command clang++ && ! have_fuzzer; then
        need "$(fuzzer_package)" "libFuzzer and the sanitizers for clang"
    elif ! have_command clang++; then
        need "$(fuzzer_package)" "libFuzzer and the sanitizers for clang"
    fi
}

# True when the loader finds a shared library.
have_library() { "$python" -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "$1" 2>/dev/null; }

# Debian 13 and Ubuntu 24.04 have another name for it.
curl_package() {
    if apt-cache show libcurl4t64 >/dev/null 2>&1; then printf 'libcurl4t64'; else printf 'libcurl4'; fi
}

have_fuzzer() {
    local directory
    directory="$(clang++ -print-resource-dir 2>/dev/null)"
    compgen -G "$directory/lib/*/libclang_rt.fuzzer*.a" >/dev/null
}

# libclang-rt-14-dev on Debian 12: the package carries clang's own version in its name.
fuzzer_package() {
    local version
    version="$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' | head -n 1)"
    printf 'libclang-rt-%s-dev' "${version:-14}"
}

install_missing() {
    say "Missing on this machine:"
    printf '%s\n' "${reasons[@]}"
    if ! have_command apt-get; then
        say "There is no apt-get here. Install the equivalents of the packages above, then run this again." >&2
        exit 1
    fi
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! have_command sudo; then
            say "Run as root: apt-get install ${packages[*]}" >&2
            exit 1
        fi
        as_root=(sudo)
    fi
    say "Installing with apt-get: ${packages[*]}"
    export DEBIAN_FRONTEND=noninteractive
    "${as_root[@]}" apt-get update -qq </dev/null || say "apt-get update failed; trying with the lists that are here." >&2
    if ! "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${packages[@]}" </dev/null >/dev/null; then
        say "apt-get could not install all of: ${packages[*]}" >&2
        say "Install them by hand, then run this again." >&2
        exit 1
    fi
}

case "$scope" in
build | test | neon) ;;
*)
    say "usage: $0 [build|test|neon]" >&2
    exit 2
    ;;
esac

look
if [ "${#packages[@]}" -gt 0 ]; then
    install_missing
    look
    if [ "${#packages[@]}" -gt 0 ]; then
        say "Still missing after the installation:" >&2
        printf '%s\n' "${reasons[@]}" >&2
        exit 1
    fi
fi

compiler_version="$("${CXX:-g++}" -dumpfullversion -dumpversion)"
at_least 12 "$compiler_version" || {
    say "${CXX:-g++} is version $compiler_version; 12 or newer is needed. Install g++-12 and set CXX=g++-12." >&2
    exit 1
}
cmake_version="$(cmake --version | sed -n '1s/[^0-9]*//p')"
at_least 3.25 "$cmake_version" || {
    say "cmake is version $cmake_version; 3.25 or newer is needed." >&2
    exit 1
}
python_version="$("$python" -c 'import platform; print(platform.python_version())')"
at_least 3.10 "$python_version" || {
    say "$python is version $python_version; 3.10 or newer is needed. Set PYTHON to a newer one." >&2
    exit 1
}

# A browser opens the report in one test, which says so and skips where there is none.
if [ "$scope" = test ] && ! have_command chromium && ! have_command google-chrome; then
    if have_command apt-get && [ "$(id -u)" -eq 0 ] && [ "${TRAINDBG_SETUP_BROWSER:-1}" = 1 ]; then
        say "Installing with apt-get: chromium (opens the report in a test)"
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium \
            </dev/null >/dev/null 2>&1 || say "chromium could not be installed; the browser test will be skipped."
    else
        say "No chromium here: the test that opens the report in a browser will be skipped."
    fi
fi
say "System: g++ $compiler_version, cmake $cmake_version, python $python_version; nothing missing."
