"""Does traindbg find textbook faults in programs that were not written for them?

Puts one fault at a time into the healthy twins of the gallery (measure/mutations.py), records each
training as `traindbg run` does and judges it by the default rules. The gallery's own faults were
written with care, each into a program of its own; these are put anywhere.

    python benchmarks/python/mutants.py                             # 8 programs for each operator
    python benchmarks/python/mutants.py --only 'learning_rate_*' --each 20 --seed 3 --verbose
    python benchmarks/python/mutants.py --list                      # the operators
    python benchmarks/python/mutants.py --keep mutants              # keeps programs and runs

Whether a mutant is worse for its fault is not known beforehand: a program may do well without what
was taken from it. What was missed is therefore listed with the program's own last line, to be read;
`--keep` leaves the programs and what was recorded of them.

The exit code is 0 when all was measured, 1 when a training was not (a fault may make it crash,
which is listed), 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import fnmatch
import random
import shutil
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from measure.errors import MeasureError
from measure.mutations import OPERATORS, mutated
from measure.outcomes import DEFAULT, Outcome, Task
from measure.programs import GALLERY, gallery
from measure.recording import import_once, program_of_traindbg, run_all


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--each", type=int, default=8, metavar="N", help="programs (default: 8)")
    parser.add_argument("--seed", type=int, default=0, help="which programs (default: 0)")
    parser.add_argument("--only", default="*", metavar="GLOB", help="operators (default: all)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="at once (default: 2)")
    parser.add_argument("--limit", type=float, default=60, metavar="S", help="seconds for each")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="a new directory to work in")
    parser.add_argument("--verbose", action="store_true", help="say what was found in each")
    parser.add_argument("--list", action="store_true", help="print the operators and run nothing")
    return parser.parse_args(arguments)


def write_mutants(root: Path, only: str, each: int, seed: int) -> None:
    """Programs below `root`, as a gallery; none of the kind of fault that it had itself."""
    faults = root / "faults"
    faults.mkdir(parents=True)
    (root / "healthy").mkdir()
    shutil.copy(GALLERY / "faults" / "data.py", faults)
    paths = sorted(path for path in (GALLERY / "faults").glob("*.py") if path.stem != "data")
    for name in fnmatch.filter(OPERATORS, only):
        kind, _, form = name.partition("/")
        order = random.Random(f"{seed} {name}").sample(paths, len(paths))
        left = each
        for path in order:
            if left == 0:
                break
            text = None if path.stem.startswith(kind) else mutated(path.read_text(), name)
            if text is not None:
                (faults / f"{kind}_{form}__{path.stem}.py").write_text(text)
                left -= 1


def operator_of(outcome: Outcome) -> str:
    whole = outcome.task.program.path.stem.partition("__")[0]
    return next(name for name in OPERATORS if name.replace("/", "_") == whole)


def print_outcomes(outcomes: list[Outcome], verbose: bool) -> None:
    by_operator: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_operator[operator_of(outcome)].append(outcome)
    print(f"\n| {'operator':45} | {'detected':8} | {'named':8} |")
    print(f"| {'-' * 45} | {'-' * 8} | {'-' * 8} |")
    measured = [outcome for outcome in outcomes if not outcome.error]
    for name, of in [*sorted(by_operator.items()), ("all", outcomes)]:
        good = [outcome for outcome in of if not outcome.error]
        found = sum(bool(outcome.alarms) for outcome in good)
        right = sum(outcome.is_right for outcome in good)
        print(f"| {name:45} | {found:3} / {len(good):2} | {right:3} / {len(good):2} |")
    print("\nnothing above info was found in:")
    for outcome in measured:
        if not outcome.alarms:
            print(f"  {outcome.task.program.path.stem}: {outcome.said}")
    if verbose:
        for outcome in measured:
            print(f"\n{outcome.task.program.path.stem}: {outcome.said}")
            print(f"  {', '.join(outcome.kinds) or 'nothing'}")
    failed = [outcome for outcome in outcomes if outcome.error]
    if failed:
        print("\nnot measured:")
        for outcome in failed:
            print(f"  {outcome.task.program.path.stem}: {outcome.error}")


def main() -> int:
    options = options_of()
    if options.list:
        print("\n".join(fnmatch.filter(OPERATORS, options.only)))
        return 0
    try:
        if not fnmatch.filter(OPERATORS, options.only):
            raise MeasureError(f"no operator is called {options.only}; see --list")
        if shutil.which(program_of_traindbg()) is None:
            raise MeasureError(f"{program_of_traindbg()}: not there; `make install`")
        with tempfile.TemporaryDirectory() as temporary:
            root = options.keep or Path(temporary) / "mutants"
            write_mutants(root, options.only, options.each, options.seed)
            tasks = [Task(program, True, 0, DEFAULT) for program in gallery(root)]
            import_once()
            keep = root / "runs" if options.keep else None
            if keep:
                keep.mkdir()
            outcomes = run_all(tasks, options.jobs, options.limit, keep=keep, journal=None)
            print_outcomes(outcomes, options.verbose)
    except (MeasureError, OSError) as error:
        print(f"mutants.py: {error}", file=sys.stderr)
        return 2
    return 1 if any(outcome.error for outcome in outcomes) else 0


if __name__ == "__main__":
    raise SystemExit(main())
