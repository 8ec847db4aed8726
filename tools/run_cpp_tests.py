#!/usr/bin/env python3
"""Runs the C++ test programs of a build, several at a time.

    tools/run_cpp_tests.py BUILD [--jobs N] [--report FILE.xml] [MODULE ...]
    tools/run_cpp_tests.py build/asan storage write

Each program (BUILD/MODULE_test; without modules, all that are there) is run in parts of some tests
each, which takes less than a process for each test. Prints what failed with its output, and a line
at the end; `--report` gets the outcomes as JUnit. Exits 1 when a test failed, a part died or took
longer than TIMEOUT seconds, or there was nothing to run. One test alone:

    BUILD/write_test --gtest_filter='RunWriterTest.*'
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

TIMEOUT = 900.0  # seconds, for one part
TESTS_OF_PART = 100
LINES = 80  # of a failed part's output


class Part(NamedTuple):
    program: Path
    number: int
    of: int


class Outcome(NamedTuple):
    part: Part
    problem: str  # empty: all passed
    output: str
    report: ElementTree.Element | None


def parts_of(program: Path) -> list[Part]:
    """As many as its number of tests asks for; one of a program that cannot even list them."""
    command = [program, "--gtest_list_tests"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if listed.returncode != 0:
        return [Part(program, 0, 1)]
    tests = sum(line.startswith("  ") for line in listed.stdout.splitlines())
    count = -(-tests // TESTS_OF_PART)
    return [Part(program, number, count) for number in range(count)]


def run(part: Part, folder: Path) -> Outcome:
    """Runs one part. Tests that it did not come to are no part of its report."""
    report = folder / f"{part.program.name}-{part.number}.xml"
    environment = os.environ | {
        "GTEST_TOTAL_SHARDS": str(part.of),
        "GTEST_SHARD_INDEX": str(part.number),
    }
    command = [part.program, "--gtest_brief=1", f"--gtest_output=xml:{report}"]
    try:
        done = subprocess.run(
            command,
            cwd=part.program.parent,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        output = (error.stdout or b"").decode(errors="replace")
        return Outcome(part, f"took longer than {TIMEOUT:g} s", output, None)
    problem = ""
    if done.returncode < 0:
        problem = f"was ended by signal {-done.returncode}"
    elif done.returncode > 0:
        problem = f"ended with {done.returncode}"
    try:
        root = ElementTree.parse(report).getroot()
    except (OSError, ElementTree.ParseError):
        root, problem = None, problem or "left no report"
    return Outcome(part, problem, done.stdout.decode(errors="replace"), root)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("build", type=Path, help="the folder of a build")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="default: all that were built")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="default: one a core")
    parser.add_argument("--report", type=Path, metavar="FILE", help="the outcomes, as JUnit")
    options = parser.parse_args(arguments)
    build = options.build.resolve()
    programs = [build / f"{module}_test" for module in options.modules]
    programs = programs or sorted(build.glob("*_test"))
    for program in programs:
        if not os.access(program, os.X_OK):
            print(f"run_cpp_tests: no program {program}: build it first", file=sys.stderr)
            return 1
    started = time.monotonic()
    suites = ElementTree.Element("testsuites")
    failed = 0
    with ThreadPoolExecutor(options.jobs) as pool, tempfile.TemporaryDirectory() as folder:
        parts = [part for found in pool.map(parts_of, programs) for part in found]
        for outcome in pool.map(lambda part: run(part, Path(folder)), parts):
            name = outcome.part.program.name
            for suite in () if outcome.report is None else outcome.report.iter("testsuite"):
                for case in suite.iter("testcase"):
                    case.set("classname", f"{name.removesuffix('_test')}.{case.get('classname')}")
                suites.append(suite)
            if not outcome.problem:
                continue
            failed += 1
            print("\n".join(outcome.output.splitlines()[-LINES:]))
            where = f"part {outcome.part.number + 1} of {outcome.part.of}"
            print(f"run_cpp_tests: {name}, {where}, {outcome.problem}\n", flush=True)
            if outcome.report is None:
                case = ElementTree.Element("testcase", name=where, classname=name)
                ElementTree.SubElement(case, "failure", message=outcome.problem)
                suites.append(case)
    tests = sum(1 for _ in suites.iter("testcase"))
    if options.report is not None:
        ElementTree.ElementTree(suites).write(options.report, encoding="utf-8")
    seconds = time.monotonic() - started
    print(f"{tests} tests of {len(programs)} programs in {seconds:.0f} s, {failed} parts failed")
    return 1 if failed or tests == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
