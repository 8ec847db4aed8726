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
    python benchmarks/python/diagnosis.py --gallery ~/mine           # programs of your own
    python benchmarks/python/diagnosis.py --original                 # by SageMaker Debugger's rules
    python benchmarks/python/diagnosis.py --write-docs               # the table in docs/faults.md

What is counted:
  detected    a finding above info in the faulty training
  quiet       none in its healthy twin
  pair        detected by a finding or a cause of a right kind, and the twin is quiet
  first       the kind named first is right; the order is that of the verdict: names of the causes,
              then kinds of the other findings above info
  place       the finding of a right kind (else the first one) names a place where the fault is
  steps       the step at which the first finding of a right kind fired, of faults that are there
              from the start

With --original the judges are our implementations of SageMaker Debugger's documented rules
(docs/rules/compatible), all of them with their default parameters, and what they need is captured
at every tenth step instead of every 500th, which is all that trainings of this length give them a
chance by. They name no kinds; a rule that is called after a kind counts as naming it (ORIGINALS).

PyTorch is imported once; each training is a child made by fork with one thread.
"""

from __future__ import annotations

import argparse
import ast
import fnmatch
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
GALLERY = ROOT / "examples"
DOCS = ROOT / "docs" / "faults.md"
# Where a fault has no layer: a finding of a right kind is at the right place.
WORDS_OF_PLACES = ("loop", "loader", "optimizer", "rank")
# What says nothing where the kind is wrong: every complaint about a loss names that loss.
VAGUE_PLACES = ("", "*", "loss*")
CONSTANTS = {
    "KIND": str,
    "ACCEPT": tuple,
    "PLACE": tuple,
    "SILENT": bool,
    "EXACT": bool,
    "EARLY": bool,
}


# Which kinds a rule of the original is the name of.
ORIGINALS = {
    "CheckInputImages": "input_not_normalized",
    "ClassImbalance": "class_imbalance",
    "DeadRelu": "dead_relu",
    "ExplodingTensor": "exploding_gradient",
    "Overfit": "overfit",
    "PoorWeightInitialization": "poor_weight_init",
    "SaturatedActivation": "saturated_activation",
    "VanishingGradient": "vanishing_gradient",
}
ORIGINAL_EVERY = 10  # steps


class Program(NamedTuple):
    """A script of the gallery. `kind` is empty for those of examples/healthy."""

    name: str  # "faults/redundant_softmax_digits"
    path: Path
    title: str  # the first sentence of its docstring
    kind: str = ""
    accept: tuple[str, ...] = ()  # other kinds that are right, too
    place: tuple[str, ...] = ()  # patterns of layers and tensors, or one of WORDS_OF_PLACES
    silent: bool = False  # the training loss still falls
    exact: bool = False  # to be told without a threshold
    early: bool = False  # there from the first steps on
    odd: str = ""  # of a healthy training: what looks wrong and is not


class Task(NamedTuple):
    program: Program
    is_faulty: bool
    seed: int


class Outcome(NamedTuple):
    """What became of a training. `error` is empty when it ran and was judged."""

    task: Task
    error: str
    said: str  # the training's own last line
    seconds: float
    findings: list[dict[str, Any]]
    causes: list[dict[str, Any]]
    not_checked: dict[str, str]  # rule: reason

    @property
    def alarms(self) -> list[dict[str, Any]]:
        return [f for f in self.findings if f["severity"] != "info"]

    @property
    def kinds(self) -> list[str]:
        """In the order in which a reader meets them, each once."""
        kinds = [cause["name"] for cause in self.causes] if self.alarms else []
        return list(dict.fromkeys(kinds + [kind_of(finding) for finding in self.alarms]))

    @property
    def right_kinds(self) -> set[str]:
        return {self.task.program.kind, *self.task.program.accept}

    @property
    def right_finding(self) -> dict[str, Any] | None:
        """The earliest alarm of a right kind, else the earliest that a right cause explains."""
        alarms = sorted(self.alarms, key=lambda finding: finding["step"])
        for finding in alarms:
            if kind_of(finding) in self.right_kinds:
                return finding
        for cause in self.causes:
            if cause["name"] in self.right_kinds:
                for finding in alarms:
                    if finding["rule"] in cause["rules"]:
                        return finding
        return None

    @property
    def is_right(self) -> bool:
        return bool(self.right_kinds & set(self.kinds))

    @property
    def is_place_right(self) -> bool:
        if not self.alarms:
            return False
        right = self.right_finding
        if right is not None and any(place in WORDS_OF_PLACES for place in self.task.program.place):
            return True
        finding = right or self.alarms[0]
        layer, tensor = finding.get("layer") or "", finding.get("tensor") or ""
        return any(
            fnmatch.fnmatchcase(layer, place) or (tensor and fnmatch.fnmatchcase(tensor, place))
            for place in self.task.program.place
            if right is not None or place not in VAGUE_PLACES
        )


def kind_of(finding: dict[str, Any]) -> str:
    return ORIGINALS.get(finding["rule"]) or str(finding.get("kind") or finding["rule"])


# The gallery.


def constants_of(path: Path) -> tuple[str, dict[str, Any]]:
    """The docstring and the constants of a script, without running it."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    found: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name in CONSTANTS or name == "ODD":
                found[name] = ast.literal_eval(node.value)
    return ast.get_docstring(tree) or "", found


def gallery(root: Path = GALLERY) -> list[Program]:
    """All programs below `root`, by name. Raises ValueError where one does not say what it must."""
    programs = []
    for path in sorted((root / "faults").glob("*.py")):
        if path.stem == "data":
            continue
        doc, found = constants_of(path)
        for name, kind in CONSTANTS.items():
            if not isinstance(found.get(name), kind):
                raise ValueError(f"{path}: {name} is missing, or no {kind.__name__}")
        values = {name.lower(): found[name] for name in CONSTANTS}
        programs.append(Program(f"faults/{path.stem}", path, first_sentence(doc), **values))
    for path in sorted((root / "healthy").glob("*.py")):
        if path.stem == "data":
            continue
        doc, found = constants_of(path)
        if not isinstance(found.get("ODD"), str):
            raise ValueError(f"{path}: ODD is missing, or no str")
        programs.append(
            Program(f"healthy/{path.stem}", path, first_sentence(doc), odd=found["ODD"])
        )
    return programs


def first_sentence(doc: str) -> str:
    return " ".join(doc.split("\n\n", maxsplit=1)[0].split())


def matches(program: Program, globs: list[str]) -> bool:
    short = program.path.stem
    return not globs or any(
        fnmatch.fnmatchcase(name, glob) for name in (program.name, short) for glob in globs
    )


# Running a training.


def import_once() -> None:
    """Imports what the programs need, so that their processes begin with it."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    for name in [name for name in os.environ if name.startswith("TRAINDBG_")]:
        if name != "TRAINDBG_EXE":  # who judges; see program_of_traindbg
            del os.environ[name]
    import sklearn.datasets
    import sklearn.model_selection  # noqa: F401
    import torch
    import torch._dynamo  # what the first optimizer step imports otherwise, in a second

    torch.set_num_threads(1)
    import traindbg  # noqa: F401
    from traindbg import _autostart  # noqa: F401  (installed in the children)


def original_rules() -> list[str]:
    from traindbg import _core

    ours = set(_core.default_rules())
    return [info["name"] for info in json.loads(_core.rules()) if info["name"] not in ours]


def original_plan() -> str:
    """What the original's rules need, as the JSON of a plan.json."""
    from traindbg import _core

    plan = json.loads(_core.plan_for_rules([(name, {}) for name in original_rules()]))
    for requirement in plan["requirements"]:
        requirement["schedule"] = {"every": ORIGINAL_EVERY}
    return json.dumps(plan)


def train(task: Task, run_dir: Path, plan: str) -> None:
    """In a child: runs the script as `traindbg run` would, and returns when it is recorded.

    `plan`: JSON of what is captured, where that is not what the default rules need.
    """
    import runpy

    from traindbg import _autostart
    from traindbg.hooks import torch as hook

    os.environ["TRAINDBG_RUN_DIR"] = str(run_dir)
    # For the processes that the script starts.
    os.environ["PYTHONPATH"] = str(Path(_autostart.__file__).parent / "_bootstrap")
    if plan:
        run_dir.mkdir()
        (run_dir / "plan.json").write_text(plan)
    _autostart.install()
    script = str(task.program.path)
    flags = [] if task.is_faulty or not task.program.kind else ["--healthy"]
    sys.argv = [script, *flags, "--seed", str(task.seed)]
    sys.path.insert(0, str(task.program.path.parent))
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        hook._at_exit()


def program_of_traindbg() -> str:
    beside = Path(sys.executable).parent / "traindbg"
    return os.environ.get("TRAINDBG_EXE") or str(beside)


def start(task: Task, directory: Path, limit: int, check: list[str], plan: str) -> int:
    """Forks a child that trains, judges, and leaves all in `directory`; returns its id."""
    directory.mkdir(parents=True)
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child != 0:
        return child
    code = 70
    try:
        signal.alarm(limit)
        output = os.open(directory / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        try:
            train(task, directory / "run", plan)
            code = 0
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        except BaseException:
            import traceback

            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        judge(directory, check)
    finally:
        os._exit(code)


def judge(directory: Path, check: list[str]) -> None:
    """Judges the run that was recorded in `directory`, and leaves the verdict beside it."""
    with (
        open(directory / "verdict.json", "wb") as verdict,
        open(directory / "judging", "wb") as errors,
    ):
        subprocess.run(
            [*check, str(directory / "run")],
            stdin=subprocess.DEVNULL,
            stdout=verdict,
            stderr=errors,
            check=False,
        )


def outcome(task: Task, directory: Path, status: int, seconds: float) -> Outcome:
    def lines(name: str) -> list[str]:
        path = directory / name
        return path.read_text(errors="replace").splitlines() if path.exists() else []

    said = [line for line in lines("output") if line.strip()]
    if os.WIFSIGNALED(status):
        error = f"ended by {signal.Signals(os.WTERMSIG(status)).name}"
    elif os.WEXITSTATUS(status):
        error = f"code {os.WEXITSTATUS(status)}: " + (said[-1] if said else "no output")
    else:
        error = ""
    verdict: dict[str, Any] = {}
    try:
        verdict = json.loads("\n".join(lines("verdict.json")))
    except ValueError:
        error = error or "; ".join(["no verdict", *lines("judging")[-1:]])
    return Outcome(
        task,
        error,
        said[-1] if said else "",
        seconds,
        verdict.get("findings", []),
        verdict.get("causes", []),
        {
            rule["rule"]: rule.get("reason", "")
            for rule in verdict.get("rules", [])
            if rule.get("state") == "not_checked"
        },
    )


def directory_of(task: Task, root: Path) -> Path:
    form = "faulty" if task.is_faulty else "healthy"
    return root / f"{task.program.name.replace('/', '-')}-{form}-{task.seed}"


def judge_again(tasks: list[Task], jobs: int, root: Path) -> list[Outcome]:
    """Judges what an earlier call kept in `root`. What that training printed and whether it ended
    well is not asked again."""
    check = [program_of_traindbg(), "check", "--json"]
    began = time.monotonic()

    def one(task: Task) -> Outcome:
        since = time.monotonic()
        directory = directory_of(task, root)
        judge(directory, check)
        return outcome(task, directory, 0, time.monotonic() - since)

    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(jobs) as pool:
        for done in pool.map(one, tasks):
            outcomes.append(done)
            say_progress(len(outcomes), len(tasks), time.monotonic() - began, done)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return outcomes


def run_all(
    tasks: list[Task], jobs: int, limit: int, *, original: bool = False, keep: Path | None = None
) -> list[Outcome]:
    """Runs the trainings, at most `jobs` at a time; in the order of `tasks`. Progress on stderr."""
    check = [program_of_traindbg(), "check", "--json"]
    plan = ""
    if original:
        check += ["--rules", ",".join(original_rules())]
        plan = original_plan()
    outcomes: dict[Task, Outcome] = {}
    running: dict[int, tuple[Task, Path, float]] = {}
    with tempfile.TemporaryDirectory(prefix="traindbg-diagnosis-") as temporary:
        root = keep or Path(temporary)
        waiting = list(reversed(tasks))
        began = time.monotonic()
        while waiting or running:
            while waiting and len(running) < jobs:
                task = waiting.pop()
                directory = directory_of(task, root)
                running[start(task, directory, limit, check, plan)] = (
                    task,
                    directory,
                    time.monotonic(),
                )
            child, status = os.wait()
            if child not in running:
                continue
            task, directory, since = running.pop(child)
            done = outcome(task, directory, status, time.monotonic() - since)
            outcomes[task] = done
            if keep is None:
                subprocess.run(["rm", "-rf", str(directory)], check=False)
            say_progress(len(outcomes), len(tasks), time.monotonic() - began, done)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return [outcomes[task] for task in tasks]


def say_progress(count: int, total: int, seconds: float, done: Outcome) -> None:
    left = seconds / count * (total - count)
    line = f"{count}/{total}, {left:.0f} s left: {done.task.program.name} {done.seconds:.1f} s"
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
    elif count % 25 == 0 or count == total:
        print(line, file=sys.stderr, flush=True)


# Counting.


class Count(NamedTuple):
    """So many of so many."""

    hits: int
    of: int

    def __str__(self) -> str:
        return f"{self.hits}/{self.of}" if self.of else "-"

    @property
    def percent(self) -> str:
        return f"{100 * self.hits / self.of:.1f} %" if self.of else "-"


def count(values: Any) -> Count:
    listed = list(values)
    return Count(sum(bool(value) for value in listed), len(listed))


class Score(NamedTuple):
    """The counts of some programs."""

    programs: int
    detected: Count
    quiet: Count
    errors: Count  # healthy twins with a finding at error level
    pairs: Count
    first: Count
    first_three: Count
    place: Count
    silent: Count
    exact: Count
    steps: float | None  # median


def score(outcomes: list[Outcome]) -> Score:
    faulty = [o for o in outcomes if o.task.is_faulty]
    twins = {(o.task.program.name, o.task.seed): o for o in outcomes if not o.task.is_faulty}
    quiet = [o for o in faulty if (o.task.program.name, o.task.seed) in twins]
    steps = [
        o.right_finding["step"]
        for o in faulty
        if o.task.program.early and o.right_finding is not None
    ]
    return Score(
        len({o.task.program.name for o in outcomes}),
        count(o.alarms for o in faulty),
        count(not o.alarms for o in twins.values()),
        count(any(f["severity"] == "error" for f in o.alarms) for o in twins.values()),
        count(o.is_right and not twins[o.task.program.name, o.task.seed].alarms for o in quiet),
        count(o.right_kinds & set(o.kinds[:1]) for o in faulty),
        count(o.right_kinds & set(o.kinds[:3]) for o in faulty),
        count(o.is_place_right for o in faulty if o.alarms),
        count(o.alarms for o in faulty if o.task.program.silent),
        count(o.is_right for o in faulty if o.task.program.exact),
        statistics.median(steps) if steps else None,
    )


def table(header: list[str], rows: list[list[str]]) -> str:
    """Columns in line, for a terminal and as Markdown."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in lines
    )


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def row_of(name: str, s: Score) -> list[str]:
    counts = [s.detected, s.quiet, s.pairs, s.first, s.first_three, s.place]
    return [name, str(s.programs), *(str(c) for c in counts), number(s.steps)]


def print_report(outcomes: list[Outcome], *, verbose: bool) -> None:
    twins = [o for o in outcomes if o.task.program.kind and not o.error]
    healthy = [o for o in outcomes if not o.task.program.kind and not o.error]
    quiet_ones = [o for o in outcomes if not o.task.is_faulty and not o.error]
    if twins:
        header = [
            "kind",
            "programs",
            "detected",
            "quiet",
            "pairs",
            "first",
            "first 3",
            "place",
            "steps",
        ]
        kinds = sorted({o.task.program.kind for o in twins})
        rows = [
            row_of(kind, score([o for o in twins if o.task.program.kind == kind])) for kind in kinds
        ]
        print(table(header, rows), end="\n\n", flush=True)
        total = score(twins)
        rows = [
            ["faulty programs detected", total.detected],
            ["faulty programs detected by a right kind, and the twin quiet", total.pairs],
            ["right kind named first", total.first],
            ["right kind among the first three", total.first_three],
            ["right place, of those detected", total.place],
            ["silent errors detected", total.silent],
            ["exact kinds found by a right kind", total.exact],
        ]
        lines = [[text, str(c), c.percent] for text, c in rows]
        lines.append(
            ["steps to the first right finding, median, early faults", number(total.steps), ""]
        )
    else:
        lines = []
    for text, group in (
        ("healthy twins", [o for o in twins if not o.task.is_faulty]),
        ("healthy trainings", healthy),
    ):
        if group:
            alarmed = count(o.alarms for o in group)
            errors = count(any(f["severity"] == "error" for f in o.alarms) for o in group)
            lines.append([f"{text} with a finding above info", str(alarmed), alarmed.percent])
            lines.append([f"{text} with a finding at error level", str(errors), errors.percent])
    print(table(["of all", "count", "share"], lines), end="\n\n", flush=True)

    fired: dict[tuple[str, str, str], list[int]] = {}
    for o in quiet_ones:
        for f in o.alarms:
            fired.setdefault((o.task.program.name, kind_of(f), f["severity"]), []).append(
                o.task.seed
            )
    if fired:
        rows = [
            [name, kind, severity, ", ".join(map(str, sorted(set(seeds))))]
            for (name, kind, severity), seeds in sorted(fired.items())
        ]
        print("On healthy trainings fired:\n")
        print(table(["training", "kind", "severity", "seeds"], rows), end="\n\n")
    wrong = [o for o in twins if o.task.is_faulty and not o.right_kinds & set(o.kinds[:1])]
    if wrong:
        rows = [
            [
                o.task.program.name,
                str(o.task.seed),
                o.task.program.kind,
                ", ".join(o.kinds) or "nothing",
            ]
            for o in wrong
        ]
        print("Not named first:\n")
        print(table(["training", "seed", "fault", "what was named"], rows), end="\n\n")
    if verbose:
        for o in outcomes:
            form = "faulty" if o.task.is_faulty else "healthy"
            print(f"{o.task.program.name} {form}, seed {o.task.seed}, {o.seconds:.1f} s: {o.said}")
            for cause in o.causes:
                print(f"  cause {cause['name']} ({cause['confidence']:.0%})")
            for f in o.findings:
                place = f.get("layer") or f.get("tensor") or "no place"
                print(f"  {f['severity']} {kind_of(f)}, step {f['step']}, {place}: {f['message']}")
    broken = [o for o in outcomes if o.error]
    if broken:
        print("Not measured:\n")
        rows = [
            [
                o.task.program.name,
                "faulty" if o.task.is_faulty else "healthy",
                str(o.task.seed),
                o.error,
            ]
            for o in broken
        ]
        print(table(["training", "form", "seed", "why"], rows))


def as_json(o: Outcome) -> dict[str, Any]:
    right = o.right_finding if o.task.is_faulty else None
    return {
        "program": o.task.program.name,
        "kind": o.task.program.kind,
        "is_faulty": o.task.is_faulty,
        "seed": o.task.seed,
        "error": o.error,
        "said": o.said,
        "seconds": round(o.seconds, 3),
        "kinds": o.kinds,
        "is_detected": bool(o.alarms),
        "is_right": o.is_right if o.task.is_faulty else None,
        "is_place_right": o.is_place_right if o.task.is_faulty else None,
        "right_step": right["step"] if right else None,
        "findings": o.findings,
        "causes": o.causes,
        "not_checked": o.not_checked,
    }


# The page.

BEGIN, END = "<!-- table begins: diagnosis.py --write-docs -->", "<!-- table ends -->"


def write_docs(programs: list[Program]) -> None:
    """Puts the tables of programs between the two marks in docs/faults.md."""
    faults = [p for p in programs if p.kind]
    healthy = [p for p in programs if not p.kind]
    lines = [
        f"{len(faults)} programs with {len({p.kind for p in faults})} kinds of faults:",
        "",
        "| kind | program | fault | place | silent | exact |",
        "|---|---|---|---|---|---|",
    ]
    for p in sorted(faults, key=lambda p: (p.kind, p.name)):
        file = p.path.relative_to(ROOT)
        place = ", ".join(f"`{place}`" for place in p.place)
        marks = ["yes" if mark else "" for mark in (p.silent, p.exact)]
        lines.append(
            f"| `{p.kind}` | [{p.path.stem}](../{file}) | {p.title} | {place}"
            f" | {marks[0]} | {marks[1]} |"
        )
    lines += [
        "",
        f"{len(healthy)} healthy trainings:",
        "",
        "| training | what it is | what looks odd |",
        "|---|---|---|",
    ]
    for p in healthy:
        file = p.path.relative_to(ROOT)
        lines.append(f"| [{p.path.stem}](../{file}) | {p.title} | {p.odd} |")
    page = DOCS.read_text(encoding="utf-8")
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{DOCS}: the marks around the table are missing")
    DOCS.write_text(
        before + BEGIN + "\n\n" + "\n".join(lines) + "\n\n" + END + after, encoding="utf-8"
    )


def main() -> int:
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
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="trainings at a time (default: one per processor)",
    )
    parser.add_argument(
        "--limit",
        type=int,
        default=60,
        metavar="SECONDS",
        help="a training that takes longer is ended (default: 60)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all outcomes there, too")
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
        "--verbose", action="store_true", help="print the findings of each training"
    )
    parser.add_argument(
        "--original", action="store_true", help="judge by SageMaker Debugger's rules instead"
    )
    parser.add_argument("--list", action="store_true", help="print the programs and run nothing")
    parser.add_argument(
        "--write-docs", action="store_true", help="write the table in docs/faults.md"
    )
    options = parser.parse_args()
    try:
        programs = [
            program for program in gallery(options.gallery) if matches(program, options.only)
        ]
    except ValueError as error:
        print(f"diagnosis.py: {error}", file=sys.stderr)
        return 2
    if options.write_docs:
        write_docs(gallery())
        return 0
    if not programs:
        print(
            f"diagnosis.py: no program is called {' or '.join(options.only)}; see --list",
            file=sys.stderr,
        )
        return 2
    if options.list:
        for program in programs:
            print(f"{program.name:45} {program.kind or program.odd}")
        return 0
    tasks = [
        Task(program, is_faulty, seed)
        for program in programs
        for seed in options.seeds
        for is_faulty in ([True, False] if program.kind else [False])
    ]
    began = time.monotonic()
    if options.again:
        if options.keep or options.original:
            parser.error("--again takes runs that are there: neither --keep nor --original")
        missing = [
            task for task in tasks if not (directory_of(task, options.again) / "run").is_dir()
        ]
        if missing:
            print(
                f"diagnosis.py: {options.again} lacks {len(missing)} of {len(tasks)} runs, such as "
                f"{directory_of(missing[0], options.again).name}; were the same --seeds and --only "
                "given with --keep?",
                file=sys.stderr,
            )
            return 2
        outcomes = judge_again(tasks, options.jobs, options.again)
    else:
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=False)
        import_once()
        outcomes = run_all(
            tasks, options.jobs, options.limit, original=options.original, keep=options.keep
        )
    print_report(outcomes, verbose=options.verbose)
    print(f"{len(outcomes)} trainings in {time.monotonic() - began:.0f} s", flush=True)
    if options.json:
        options.json.write_text(json.dumps([as_json(o) for o in outcomes], indent=1) + "\n")
    return 1 if any(o.error for o in outcomes) else 0


if __name__ == "__main__":
    raise SystemExit(main())
