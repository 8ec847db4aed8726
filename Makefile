# Everything one does with a checkout. `make` alone lists it.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

JOBS ?= $(shell nproc)
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
RESULTS := build/results
# The core, which touches the training's memory and untrusted bytes: what AddressSanitizer looks at.
ASAN_MODULES := base tensor model reduce storage format seal write read compat tables capture rules extend diagnose \
    engine exchange s3 sync
# Modules with threads or shared memory: those that ThreadSanitizer looks at.
TSAN_MODULES := base storage seal write read capture sync
# Seconds for each fuzz target, and for clang-tidy, in `make test`.
FUZZ_SECONDS ?= 8
TIDY_SECONDS ?= 60
# The same name for the compiler everywhere, because ccache looks at it; and paths from here, so that files which
# one build generates are known again in another one.
export PYTHON CXX
export CCACHE_BASEDIR := $(CURDIR)
# What ccache asks for where headers are precompiled.
export CCACHE_SLOPPINESS := pch_defines,time_macros

# Configures a preset; says something only when that fails.
define configure
mkdir -p build; cmake --preset $(1) >build/$(1)-configure.log 2>&1 || { cat build/$(1)-configure.log; exit 1; }
endef

.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: setup-demo install ## build, then watch a healthy training and three faulty ones
	@tools/demo.sh

.PHONY: test
test: ## set up, then run all tests and checks
	@tools/run_tests.sh

.PHONY: setup
setup: setup-system setup-python ## install what building and testing need (apt, .venv)

.PHONY: setup-system
setup-system:
	@tools/setup_system.sh test

.PHONY: setup-python
setup-python:
	@tools/setup_python.sh test

.PHONY: setup-demo
setup-demo:
	@tools/setup_system.sh build
	@tools/setup_python.sh

.PHONY: build
build: ## build the core, the program and the C++ tests (preset dev)
	@$(call configure,dev)
	@cmake --build --preset dev -j $(JOBS)

.PHONY: install
install: ## build the wheel and install it into .venv
	@tools/install_package.sh

# Built with the wheel's own flags, so that ccache has most of `install` done afterwards. Warnings are no errors to the
# compiler then, but to us, except for two of GCC's: one comes from unity builds, one is wrong where it is optimised.
.PHONY: build-shipped
build-shipped:
	@mkdir -p build
	@cmake --preset release -B build/shipped -DTRAINDBG_TESTS=ON -DTRAINDBG_WERROR=OFF >build/shipped-configure.log 2>&1 \
	    || { cat build/shipped-configure.log; exit 1; }
	@cmake --build build/shipped -j $(JOBS) 2>&1 | tee build/shipped.log
	@! grep 'warning:' build/shipped.log | grep -vE 'Wsubobject-linkage|Wstringop-overflow' || \
	    { echo "the compiler warned" >&2; exit 1; }

.PHONY: test-cpp
test-cpp: build-shipped ## C++ tests, of the code as it is shipped
	@mkdir -p $(RESULTS)
	@$(PYTHON) tools/run_cpp_tests.py build/shipped --jobs $(JOBS) --report $(RESULTS)/cpp.xml

# One thread each: as many processes as cores, whose threads would wait for each other.
.PHONY: test-python
test-python: export OMP_NUM_THREADS := 1
test-python: ## Python tests (needs `make install` and the C++ tests built)
	@mkdir -p $(RESULTS)
	@$(PY) -m pytest tests/python -q -n $(JOBS) --junitxml $(RESULTS)/python.xml

.PHONY: test-e2e
test-e2e: ## tests of whole trainings under `traindbg run` (needs `make install`)
	@mkdir -p $(RESULTS)
	@TRAINDBG_EXE=$(CURDIR)/$(VENV)/bin/traindbg $(PY) -m pytest tests/e2e -q -n $(JOBS) --dist loadfile --junitxml $(RESULTS)/e2e.xml

.PHONY: test-original
test-original: export OMP_NUM_THREADS := 1
test-original: ## tests with the original client library (needs `make install`; an environment of its own)
	@mkdir -p $(RESULTS)
	@TRAINDBG_EXE=$(CURDIR)/$(VENV)/bin/traindbg $(PY) -m pytest tests/original -q -rs -n $(JOBS) --junitxml $(RESULTS)/original.xml

# Ten thousand each, which takes long.
.PHONY: torture
torture: build ## kill a recording process and switch its machine off, again and again
	@rm -rf build/torture; build/dev/tests/cpp/kill_loop $(or $(ROUNDS),10000) build/torture
	@TRAINDBG_POWER_LOSSES=$(or $(ROUNDS),10000) build/dev/write_test --gtest_filter='PowerLossTest.*' --gtest_brief=1

.PHONY: sanitize
sanitize: asan tsan ## C++ tests under ASan+UBSan, those with threads under TSan

.PHONY: build-asan
build-asan:
	@$(call configure,asan)
	@cmake --build --preset asan -j $(JOBS) --target $(addsuffix _test,$(ASAN_MODULES))

.PHONY: build-tsan
build-tsan:
	@$(call configure,tsan)
	@cmake --build --preset tsan -j $(JOBS) --target $(addsuffix _test,$(TSAN_MODULES))

.PHONY: build-fuzz
build-fuzz:
	@tools/run_fuzz.sh 0

.PHONY: asan
asan: build-asan
	@mkdir -p $(RESULTS)
	@$(PYTHON) tools/run_cpp_tests.py build/asan --jobs $(JOBS) --report $(RESULTS)/asan.xml $(ASAN_MODULES)

.PHONY: tsan
tsan: build-tsan
	@mkdir -p $(RESULTS)
	@$(PYTHON) tools/run_cpp_tests.py build/tsan --jobs $(JOBS) --report $(RESULTS)/tsan.xml $(TSAN_MODULES)

# Only `reduce` has code of its own for ARM. On such a machine, test-cpp runs it.
.PHONY: setup-neon
setup-neon:
	@tools/setup_system.sh neon

.PHONY: build-neon
build-neon: setup-neon
	@$(call configure,neon)
	@cmake --build --preset neon -j $(JOBS) --target reduce_test

.PHONY: neon
neon: build-neon ## tests of the vector code for ARM, built by a cross compiler and run by qemu
	@mkdir -p $(RESULTS)
	@$(PYTHON) tools/run_cpp_tests.py build/neon reduce --under qemu-aarch64 --jobs $(JOBS) --report $(RESULTS)/neon.xml

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZ_SECONDS over its corpus
	@tools/run_fuzz.sh $(FUZZ_SECONDS)

.PHONY: format
format: ## format C++ and Python in place
	@git ls-files '*.h' '*.cc' | xargs $(VENV)/bin/clang-format -i
	@$(VENV)/bin/ruff format --quiet --exclude '*.md' .
	@$(VENV)/bin/ruff check --quiet --fix .

.PHONY: lint
lint: lint-cpp lint-python lint-web ## formatters, ruff, mypy, tsc

.PHONY: lint-cpp
lint-cpp:
	@git ls-files '*.h' '*.cc' | xargs $(VENV)/bin/clang-format --dry-run --Werror
	@! git grep -nE '\bstd::(ranges::)?views::' -- '*.h' '*.cc' || \
	    { echo "std::views: clang 14 cannot compile what libstdc++ 12 has of it; use iterators" >&2; exit 1; }
	@echo "clang-format: clean"

.PHONY: lint-python
lint-python:
	@$(VENV)/bin/ruff check --quiet .
	@$(VENV)/bin/ruff format --quiet --check --exclude '*.md' .
	@$(VENV)/bin/mypy -p traindbg
	@echo "ruff: clean"

.PHONY: lint-web
lint-web:
	@tools/check_web.sh

.PHONY: tidy
tidy: ## clang-tidy over the whole core (slow; clean files are remembered)
	@$(call configure,dev)
	@$(PYTHON) tools/run_tidy.py --build build/dev --jobs $(JOBS)

.PHONY: tidy-some
tidy-some:
	@$(call configure,dev)
	@$(PYTHON) tools/run_tidy.py --build build/dev --jobs $(JOBS) --budget $(TIDY_SECONDS)

.PHONY: check-layers
check-layers: ## modules include, and packages import, only what layers.txt allows
	@$(PYTHON) tools/check_layers.py

.PHONY: check-headers
check-headers: ## headers compile alone; public ones include nothing private
	@$(PYTHON) tools/check_headers.py --jobs $(JOBS)

.PHONY: check-docs
check-docs: ## links, module READMEs, rule pages
	@$(PYTHON) tools/check_docs.py

.PHONY: bench
bench: setup-demo install ## measure what traindbg costs a training (minutes)
	@$(PY) benchmarks/python/overhead.py
	@$(PY) benchmarks/python/memory.py
	@$(PY) benchmarks/python/evaluations.py

.PHONY: bench-original
bench-original: setup-demo ## the same beside the original client library, in an environment of its own
	@test -x build/bench-venv/bin/python || $(PYTHON) -m venv build/bench-venv
	@build/bench-venv/bin/python -m pip install -q -r benchmarks/python/requirements.txt
	@build/bench-venv/bin/python -m pip install -q --no-deps .
	@build/bench-venv/bin/python benchmarks/python/overhead.py

.PHONY: bench-store
bench-store: setup-demo install ## measure what writing and reading a run costs
	@$(call configure,bench)
	@cmake --build --preset bench -j $(JOBS) --target store_write_bench store_read_bench store_tail_bench
	@build/bench/benchmarks/cpp/store_write_bench build
	@build/bench/benchmarks/cpp/store_read_bench
	@build/bench/benchmarks/cpp/store_tail_bench
	@$(PY) benchmarks/python/store_bytes.py

.PHONY: bench-rules
bench-rules: setup-demo ## measure what judging costs, and what each rule does
	@$(call configure,bench)
	@cmake --build --preset bench -j $(JOBS) --target engine_bench
	@build/bench/benchmarks/cpp/engine_bench --rules

.PHONY: bench-judge
bench-judge: setup-demo ## measure how fast a run is judged, and how soon a finding is told
	@$(call configure,bench)
	@cmake --build --preset bench -j $(JOBS) --target traindbg judge_bench judge_latency_bench latency_rule
	@build/bench/benchmarks/cpp/judge_bench
	@build/bench/benchmarks/cpp/judge_latency_bench
	@build/bench/benchmarks/cpp/judge_latency_bench --processes 2

# Some twenty minutes for each of SEEDS. What was measured before an interruption is kept.
.PHONY: bench-diagnosis
bench-diagnosis: setup-demo install ## measure what is found in the gallery of faults, into benchmarks/RESULTS.md
	@mkdir -p $(RESULTS)
	@$(PY) benchmarks/python/diagnosis.py --beside --write --seeds $(or $(SEEDS),0 1 2) --jobs $(JOBS) \
	    --resume $(RESULTS)/diagnosis.jsonl --json $(RESULTS)/diagnosis.json

.PHONY: bench-cpp
bench-cpp: setup-demo ## measure the reducer and a step's cost in C++
	@$(call configure,bench)
	@cmake --build --preset bench -j $(JOBS) --target reduce_bench capture_bench
	@build/bench/benchmarks/cpp/reduce_bench --benchmark_min_time=0.2
	@build/bench/benchmarks/cpp/capture_bench --benchmark_min_time=0.2

.PHONY: clean
clean: ## remove what was built (not .venv)
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
