#!/usr/bin/env python3
"""Adds up what the test runners reported.

    tools/sum_results.py [--least N] FOLDER

Reads the JUnit files that run_cpp_tests.py and pytest left in FOLDER, prints the names of failed
tests and ends with one line, `N passed, N failed, N skipped`. Exits 1 when a test failed or fewer
than N (1) passed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from xml.etree import ElementTree


def outcome_of(case: ElementTree.Element) -> str:
    """ "passed", "failed" or "skipped", which an element marks; "notrun": it is disabled."""
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    if case.find("skipped") is not None or case.get("status") == "notrun":
        return "skipped"
    return "passed"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--least", type=int, default=1, help="how many must pass (default: 1)")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args(arguments)
    totals = {"passed": 0, "failed": 0, "skipped": 0}
    for file in sorted(options.folder.glob("*.xml")):
        for case in ElementTree.parse(file).getroot().iter("testcase"):
            outcome = outcome_of(case)
            totals[outcome] += 1
            if outcome == "failed":
                print(f"failed: {file.stem}: {case.get('classname', '')}.{case.get('name', '')}")
    print(", ".join(f"{count} {outcome}" for outcome, count in totals.items()))
    return 1 if totals["failed"] or totals["passed"] < options.least else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
