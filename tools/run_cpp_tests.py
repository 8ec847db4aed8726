#!/usr/bin/env python3
"""Runs the C++ test programs of a build, several at a time.

    tools/run_cpp_tests.py BUILD [MODULE ...] [--jobs N] [--report FILE.xml] [--under PROGRAM]
    tools/run_cpp_tests.py build/asan storage write
    tools/run_cpp_tests.py build/neon reduce --under qemu-aarch64

Each program (BUILD/MODULE_test; without modules, all that are there) is run in parts of some tests
each, which takes less than a process for each test. Prints what failed with its output, and a line
at the end; `--report` gets the outcomes as JUnit. Exits 1 when a test failed, a part died, took
longer than TIMEOUT seconds or did not run all of its tests, or a program has none. One test alone:

    BUILD/write_test --gtest_filter='RunWriterTest.*'
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
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
# What the caller has set for a run by hand would leave out tests here.
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("GTEST_")}


class Part(NamedTuple):
    program: Path
    number: int
    of: int
    under: tuple[str, ...] = ()  # the program that runs it, where the machine itself cannot
    problem: str = ""  # found before it is run


class Outcome(NamedTuple):
    part: Part
    problem: str  # empty: all passed
    output: str
    report: ElementTree.Element | None
    tests: int


def parts_of(program: Path, under: tuple[str, ...]) -> list[Part]:
    """As many as its number of tests asks for; one with a problem, if it has none."""
    try:
        listed = subprocess.run(
            [*under, program, "--gtest_list_tests"],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return [Part(program, 0, 1, problem=f"cannot list its tests: {error}")]
    tests = sum(line.startswith("  ") for line in listed.stdout.splitlines())
    if tests == 0:
        return [Part(program, 0, 1, problem="has no tests")]
    count = -(-tests // TESTS_OF_PART)
    return [Part(program, number, count, under) for number in range(count)]


def run(part: Part, folder: Path) -> Outcome:
    """Runs one part, in a process group of its own, which is ended with it."""
    if part.problem:
        return Outcome(part, part.problem, "", None, 0)
    name = f"{part.program.name}-{part.number}"
    report, log = folder / f"{name}.xml", folder / f"{name}.log"
    shards = {"GTEST_TOTAL_SHARDS": str(part.of), "GTEST_SHARD_INDEX": str(part.number)}
    problem = ""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*part.under, part.program, f"--gtest_output=xml:{report}"],
            cwd=part.program.parent,
            env=ENVIRONMENT | shards,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            code, problem = 0, f"took longer than {TIMEOUT:g} s"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what it has left behind, too
            process.wait()
    if code < 0:
        problem = f"was ended by signal {-code}"
    elif code > 0:
        problem = f"ended with {code}"
    try:
        root = ElementTree.parse(report).getroot()
        tests = sum(1 for _ in root.iter("testcase"))
        problem = problem or ("" if tests > 0 else "ran no test")
    except (OSError, ElementTree.ParseError):
        root, tests, problem = None, 0, problem or "left no report"
    return Outcome(part, problem, log.read_text(errors="replace"), root, tests)


def is_failed(case: ElementTree.Element) -> bool:
    return case.find("failure") is not None or case.find("error") is not None


def add_to(suites: ElementTree.Element, outcome: Outcome, where: str) -> None:
    """What a part reported; and that it failed as a whole, where none of its tests did."""
    module = outcome.part.program.name.removesuffix("_test")
    is_any_failed = False
    for suite in () if outcome.report is None else outcome.report.iter("testsuite"):
        for case in suite.iter("testcase"):
            case.set("classname", f"{module}.{case.get('classname')}")
            is_any_failed = is_any_failed or is_failed(case)
        suites.append(suite)
    if outcome.problem and not is_any_failed:
        case = ElementTree.SubElement(suites, "testcase", name=where, classname=module)
        ElementTree.SubElement(case, "failure", message=outcome.problem)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("build", type=Path, help="the folder of a build")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="default: all that were built")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="default: one a core")
    parser.add_argument("--report", type=Path, metavar="FILE", help="the outcomes, as JUnit")
    parser.add_argument("--under", metavar="PROGRAM", help="runs them, such as qemu-aarch64")
    options = parser.parse_intermixed_args(arguments)
    under = () if options.under is None else (options.under,)
    build = options.build.resolve()
    programs = [build / f"{module}_test" for module in options.modules]
    programs = programs or sorted(build.glob("*_test"))
    for program in programs:
        if not os.access(program, os.X_OK):
            print(f"run_cpp_tests: no program {program}: build it first", file=sys.stderr)
            return 1
    if options.report is not None:
        options.report.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    suites = ElementTree.Element("testsuites")
    failed = tests = 0
    with ThreadPoolExecutor(options.jobs) as pool, tempfile.TemporaryDirectory() as folder:
        found = pool.map(lambda program: parts_of(program, under), programs)
        parts = [part for some in found for part in some]
        for outcome in pool.map(lambda part: run(part, Path(folder)), parts):
            where = f"part {outcome.part.number + 1} of {outcome.part.of}"
            add_to(suites, outcome, where)
            tests += outcome.tests
            if outcome.problem:
                failed += 1
                print("\n".join(outcome.output.splitlines()[-LINES:]))
                name = outcome.part.program.name
                print(f"run_cpp_tests: {name}, {where}, {outcome.problem}\n", flush=True)
    if options.report is not None:
        ElementTree.ElementTree(suites).write(options.report, encoding="utf-8")
    seconds = time.monotonic() - started
    print(f"{tests} tests of {len(programs)} programs in {seconds:.0f} s, {failed} parts failed")
    return 1 if failed or tests == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
