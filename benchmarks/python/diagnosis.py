"""Does traindbg find what is wrong, name it, and leave healthy trainings alone?

Runs the gallery (docs/faults.md): every program of examples/faults with its fault and without
(--healthy), and the trainings of examples/healthy, each with several seeds. Each training is
recorded as `traindbg run` records it, without a change, and judged by `traindbg check` with the
default rules.

    python benchmarks/python/diagnosis.py                            # all, with the seeds 0, 1, 2
    python benchmarks/python/diagnosis.py --only 'redundant_*' --seeds 0 --verbose
    python benchmarks/python/diagnosis.py --only 'healthy/*'         # false alarms alone
    python benchmarks/python/diagnosis.py --json after.json --jobs 2
    python benchmarks/python/diagnosis.py --seeds 0 --keep runs      # keeps what was recorded ...
    python benchmarks/python/diagnosis.py --seeds 0 --again runs     # ... and judges it again
    python benchmarks/python/diagnosis.py --resume outcomes.jsonl    # goes on after an interruption
    python benchmarks/python/diagnosis.py --gallery ~/mine           # programs of your own
    python benchmarks/python/diagnosis.py --second                   # after another training
    python benchmarks/python/diagnosis.py --original                 # by SageMaker Debugger's rules
    python benchmarks/python/diagnosis.py --beside                   # by ours and by these
    python benchmarks/python/diagnosis.py --beside --write           # and into RESULTS.md
    python benchmarks/python/diagnosis.py --write-docs               # the table in docs/faults.md

What is counted:
  detected    a finding above info in the faulty training
  quiet       none in its healthy twin
  pair        detected by a finding or a cause of a right kind, and the twin is quiet
  first       the kind named first is right; the order is that of the verdict: names of the causes,
              then kinds of the other findings above info
  place       the finding of a right kind (else the first one) names a place where the fault is
  steps       that were taken when the first finding of a right kind fired, of faults that are there
              from the start and were found; 1 is the first step

With --original the judges are our implementations of SageMaker Debugger's documented rules
(docs/rules/compatible), all of them with their default parameters, and what they need is captured
at every tenth step instead of every 500th, which is all that trainings of this length give them a
chance by. They name no kinds; a rule that is called after a kind counts as naming it (ORIGINALS in
measure/outcomes.py).

With --beside each training is recorded twice, once for each set of rules. One recording of what
both need would not do: our rules would see layers that they do not ask for at these steps, and the
original's would see losses at every step.

The exit code is 0 when all was measured, whatever was found, 1 when a training was not (it
crashed, took longer than --limit, or has no verdict), 2 for wrong usage or a program that cannot be
read, and 130 when it was interrupted. PyTorch is imported once; each training is a child made by
fork with one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import sys
from pathlib import Path

from measure import faults_page, results
from measure.errors import MeasureError
from measure.journal import Journal
from measure.outcomes import DEFAULT, ORIGINAL, Outcome, Task
from measure.programs import GALLERY, Program, gallery, matches, packages_missing
from measure.recording import (
    clock,
    directory_of,
    import_once,
    judge_again,
    made_with,
    program_of_traindbg,
    run_all,
)
from measure.report import print_report


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value


def parser_of_options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="GLOB",
        help="programs of this name, such as 'overfit_*' or 'healthy/*'; may be repeated",
    )
    parser.add_argument(
        "--gallery",
        type=Path,
        default=GALLERY,
        metavar="DIR",
        help="holds faults/ and healthy/ with programs of the same form; default: examples",
    )
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[0, 1, 2], metavar="N", help="default: 0 1 2"
    )
    parser.add_argument(
        "--jobs",
        type=positive,
        default=os.cpu_count() or 1,
        metavar="N",
        help="trainings at a time (default: one per processor)",
    )
    parser.add_argument(
        "--limit",
        type=positive,
        default=60,
        metavar="SECONDS",
        help="a training that takes longer is ended (default: 60)",
    )
    judges = parser.add_mutually_exclusive_group()
    judges.add_argument(
        "--original", action="store_true", help="judge by SageMaker Debugger's rules instead"
    )
    judges.add_argument(
        "--beside",
        action="store_true",
        help="judge by the default rules and, recorded once more, by SageMaker Debugger's",
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write conditions, measures and all outcomes there, too",
    )
    parser.add_argument(
        "--write",
        type=Path,
        nargs="?",
        const=results.RESULTS,
        metavar="FILE",
        help="write the tables between the marks in FILE; default: benchmarks/RESULTS.md, which is "
        "for the whole gallery only",
    )
    parser.add_argument(
        "--check",
        type=Path,
        nargs="?",
        const=results.RESULTS,
        metavar="FILE",
        help="say whether FILE (default: benchmarks/RESULTS.md) has the marks, and run nothing",
    )
    parser.add_argument(
        "--resume",
        type=Path,
        metavar="FILE",
        help="add each outcome to FILE, and do not run again what it has, unless the program or "
        "traindbg is another by now",
    )
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="keep the runs, in this new directory"
    )
    parser.add_argument(
        "--again",
        type=Path,
        metavar="DIR",
        help="judge the runs that --keep DIR kept once more, and train nothing",
    )
    parser.add_argument(
        "--probe",
        action="store_true",
        help="record all trainings with --probe, not only those of programs that say PROBE = True",
    )
    parser.add_argument(
        "--second",
        action="store_true",
        help="let each training be the second one of its process: the program without its fault, "
        "and with another seed, runs before it",
    )
    parser.add_argument(
        "--verbose", action="store_true", help="print the findings of each training"
    )
    parser.add_argument("--list", action="store_true", help="print the programs and run nothing")
    parser.add_argument(
        "--write-docs", action="store_true", help="write the table in docs/faults.md"
    )
    return parser


def refuse_contradictions(options: argparse.Namespace) -> None:
    if options.again and (options.keep or options.resume):
        raise MeasureError("--again takes runs that are there: neither --keep nor --resume")
    if options.keep and options.resume:
        raise MeasureError("--keep needs each training to run: not with --resume")
    if options.write == results.RESULTS and options.second:
        raise MeasureError(f"{results.RESULTS.name} tells of first trainings: --second is no part")
    if options.write == results.RESULTS and (options.only or options.gallery != GALLERY):
        raise MeasureError(
            f"{results.RESULTS.name} tells of the whole gallery: give --write FILE, a copy of it, "
            "with --only or --gallery"
        )
    if options.write:
        results.part_of(options.write).check()


def tasks_of(programs: list[Program], options: argparse.Namespace) -> list[Task]:
    """What is to be run. Both judgements of a training follow each other."""
    rules = [DEFAULT, ORIGINAL] if options.beside else [ORIGINAL if options.original else DEFAULT]
    return [
        Task(program, is_faulty, seed, judge)
        for program in programs
        for seed in options.seeds
        for is_faulty in ([True, False] if program.kind else [False])
        for judge in rules
    ]


def command_of(options: argparse.Namespace) -> str:
    """What one types for the same; without names of files, which are nobody else's."""
    words = ["diagnosis.py"]
    words += [word for glob in options.only for word in ("--only", shlex.quote(glob))]
    words += ["--seeds", *map(str, options.seeds)]
    words += ["--probe"] if options.probe else []
    words += ["--beside"] if options.beside else ["--original"] if options.original else []
    return " ".join([*words, "--write"])


def outcomes_of(tasks: list[Task], options: argparse.Namespace) -> list[Outcome]:
    if shutil.which(program_of_traindbg()) is None:
        raise MeasureError(
            f"{program_of_traindbg()}: not there; `make install`, or set TRAINDBG_EXE"
        )
    if options.again:
        missing = [
            # One that recorded nothing has no run; what it printed is there.
            task
            for task in tasks
            if not directory_of(task, options.again).is_dir()
        ]
        if missing:
            raise MeasureError(
                f"{options.again} lacks {len(missing)} of {len(tasks)} runs, such as "
                f"{directory_of(missing[0], options.again).name}; were the same --seeds, --only, "
                "--original and --beside given with --keep?"
            )
        return judge_again(tasks, options.jobs, options.again)
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=False)
    import_once()
    made = made_with(options.limit, options.probe, options.second)
    journal = Journal(options.resume, made) if options.resume else None
    return run_all(
        tasks,
        options.jobs,
        options.limit,
        keep=options.keep,
        journal=journal,
        is_second=options.second,
    )


def installed_of(programs: list[Program]) -> list[Program]:
    """Those whose packages are installed. Says how many are not."""
    missing = {program.name: packages_missing(program) for program in programs}
    left_out = {name: packages for name, packages in missing.items() if packages}
    if left_out:
        wanted = ", ".join(sorted(set[str]().union(*left_out.values())))
        print(
            f"{len(left_out)} programs left out, such as {next(iter(left_out))}: not installed are "
            f"{wanted}; pip install -r requirements/gallery.txt",
            file=sys.stderr,
        )
    if len(left_out) == len(programs):
        raise MeasureError("no program is left")
    return [program for program in programs if program.name not in left_out]


def run(options: argparse.Namespace) -> int:
    if options.check:
        results.part_of(options.check).check()
        print(f"{options.check}: the marks are there")
        return 0
    if options.write_docs:
        faults_page.PAGE.write(faults_page.tables_of(gallery()))
        return 0
    programs = [program for program in gallery(options.gallery) if matches(program, options.only)]
    if options.probe:
        programs = [program._replace(probe=True) for program in programs]
    if not programs:
        asked = f"is called {' or '.join(options.only)}" if options.only else "is there"
        raise MeasureError(f"{options.gallery}: no program {asked}; see --list")
    if options.list:
        for program in programs:
            print(f"{program.name:45} {program.kind or program.odd}")
        return 0
    refuse_contradictions(options)
    if not options.again:
        programs = installed_of(programs)
    outcomes = outcomes_of(tasks_of(programs, options), options)
    seconds = sum(o.wall for o in outcomes)
    print_report(outcomes, verbose=options.verbose)
    print(f"{len(outcomes)} trainings in {clock(seconds)}", flush=True)
    if options.json or options.write:
        from measure.conditions import conditions

        given = conditions(command_of(options), options.seeds, options.jobs, seconds)
        if options.json:
            options.json.write_text(json.dumps(results.whole(outcomes, given), indent=1) + "\n")
        if options.write:
            results.part_of(options.write).write(results.section(outcomes, given))
    return 1 if any(o.error for o in outcomes) else 0


def main() -> int:
    options = parser_of_options().parse_args()
    options.seeds = list(dict.fromkeys(options.seeds))
    try:
        return run(options)
    except MeasureError as error:
        print(f"diagnosis.py: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"diagnosis.py: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        ways = f"the same command goes on with {options.resume}" if options.resume else ""
        print(f"diagnosis.py: interrupted; {ways or '--resume FILE would go on'}", file=sys.stderr)
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
