"""Runs trainings, records them as `traindbg run` does, and judges what was recorded.

PyTorch is imported once; each training is a child made by fork with one thread.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure.journal import Journal, digest_of
from measure.outcomes import ORIGINAL, Outcome, Task

if TYPE_CHECKING:
    from collections.abc import Generator

ORIGINAL_EVERY = 10  # steps
SECOND_SEED = 7  # beside the seed of the training that comes after it


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


# Who judges.


def program_of_traindbg() -> str:
    beside = Path(sys.executable).parent / "traindbg"
    return os.environ.get("TRAINDBG_EXE") or str(beside)


def default_rules() -> list[str]:
    from traindbg import _core

    return list(_core.default_rules())


def original_rules() -> list[str]:
    from traindbg import _core

    ours = set(_core.default_rules())
    return [info["name"] for info in json.loads(_core.rules()) if info["name"] not in ours]


def plan_of(task: Task) -> str:
    """What is captured, as the JSON of a plan.json; empty for what the default rules need."""
    if task.rules != ORIGINAL and not task.program.probe:
        return ""
    from traindbg import _core, _plan

    if task.rules != ORIGINAL:
        return _plan.with_probe(_core.plan_for_rules(_plan.rule_choices(None)), True)
    plan = json.loads(_core.plan_for_rules([(name, {}) for name in original_rules()]))
    for requirement in plan["requirements"]:
        requirement["schedule"] = {"every": ORIGINAL_EVERY}
    return json.dumps(plan)


def check_of(rules: str) -> list[str]:
    """The command that judges a run, without the run."""
    chosen = ["--rules", ",".join(original_rules())] if rules == ORIGINAL else []
    return [program_of_traindbg(), "check", "--json", *chosen]


def made_with(limit: int, probe: bool = False, is_second: bool = False) -> str:
    """Names what records and what judges: other files give other outcomes."""
    import torch

    import traindbg

    package = Path(traindbg.__file__).parent
    files = sorted([*package.rglob("*.py"), *package.glob("_core*.so")])
    return digest_of(
        [Path(program_of_traindbg()), *files],
        torch.__version__,
        str(limit),
        str(ORIGINAL_EVERY),
        *(["probe"] if probe else []),
        *(["second"] if is_second else []),
    )


# One training.


def directory_of(task: Task, root: Path) -> Path:
    mark = f"-{task.rules}" if task.rules == ORIGINAL else ""
    return root / f"{task.program.name.replace('/', '-')}-{task.form}-{task.seed}{mark}"


def train(task: Task, run_dir: Path, plan: str, is_second: bool) -> None:
    """In a child: runs the script as `traindbg run` would, and returns when it is recorded.

    `is_second`: the same program runs before it without its fault, with another seed.
    """
    from traindbg import _autostart

    os.environ["TRAINDBG_RUN_DIR"] = str(run_dir)
    # For the processes that the script starts.
    os.environ["PYTHONPATH"] = str(Path(_autostart.__file__).parent / "_bootstrap")
    if plan:
        run_dir.mkdir()
        (run_dir / "plan.json").write_text(plan)
    healthy = ["--healthy"] if task.program.kind else []
    calls = [[*([] if task.is_faulty else healthy), "--seed", str(task.seed)]]
    if is_second:
        calls.insert(0, [*healthy, "--seed", str(task.seed + SECOND_SEED)])
    run_script(task.program.path, calls)


def run_script(script: Path, calls: list[list[str]]) -> None:
    """In a child: runs a script, once with each of these arguments.

    It is recorded where the environment names a run directory. tests/e2e/forked.py does so, too.
    """
    import types

    from traindbg import _autostart
    from traindbg.hooks.torch import watching as hook

    if os.environ.get("TRAINDBG_RUN_DIR"):
        _autostart.install()
    sys.path.insert(0, str(script.parent))
    main = types.ModuleType("__main__")  # as in a process of its own, it is there to the end
    main.__file__ = str(script)
    sys.modules["__main__"] = main
    try:
        for arguments in calls:
            sys.argv = [str(script), *arguments]
            code = compile(script.read_bytes(), str(script), "exec", dont_inherit=True)
            exec(code, vars(main))
    finally:
        hook._at_exit()


def start(
    task: Task, directory: Path, limit: int, check: list[str], plan: str, is_second: bool
) -> int:
    """Forks a child that trains, judges, and leaves all in `directory`; returns its id."""
    directory.mkdir(parents=True)
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child != 0:
        return child
    code = 70
    try:
        os.setpgid(0, 0)  # ranks that it starts end with it; see end_group
        signal.alarm(limit)
        output = os.open(directory / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        try:
            train(task, directory / "run", plan, is_second)
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
        nan_step_of(directory / "run") if task.is_faulty and not error else None,
    )


def nan_step_of(run_dir: Path) -> int | None:
    """The first step of the training whose recorded loss is not finite; None where there is none.

    It is read from the values of the losses and no rule's word.
    """
    import traindbg as td

    try:
        run = td.Run(run_dir)
    except td.TraindbgError:
        return None
    found = []
    for name in run.names():
        if name == "loss" or name.startswith("loss/"):
            steps, values = run.scalars(name, "train")
            found += [
                int(s) for s, v in zip(steps, values, strict=True) if not math.isfinite(float(v))
            ]
    return min(found, default=None)


# All of them.


class Progress:
    """How many are done, and how long the others will take. On stderr."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._count = 0
        self._began = time.monotonic()

    def say(self, done: Outcome) -> None:
        self._count += 1
        seconds = time.monotonic() - self._began
        left = seconds / self._count * (self._total - self._count)
        line = (
            f"{self._count}/{self._total}, {clock(left)} left: "
            f"{done.task.program.name} {done.seconds:.1f} s"
        )
        if sys.stderr.isatty():
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
        elif self._count % 25 == 0 or self._count == self._total:
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        if sys.stderr.isatty() and self._count:
            print(file=sys.stderr)


def clock(seconds: float) -> str:
    """7 s, 12 min 30 s"""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def run_all(
    tasks: list[Task],
    jobs: int,
    limit: int,
    *,
    keep: Path | None = None,
    journal: Journal | None = None,
    is_second: bool = False,
) -> list[Outcome]:
    """Runs the trainings, at most `jobs` at a time; in the order of `tasks`. Progress on stderr.

    What `journal` knows is not run; it learns of what is. Ends its children where it is
    interrupted.
    """
    outcomes = {
        task: known for task in tasks if journal is not None and (known := journal.find(task))
    }
    missing = [task for task in tasks if task not in outcomes]
    if outcomes:
        print(
            f"{len(outcomes)} of {len(tasks)} outcomes are known; {len(missing)} trainings to go",
            file=sys.stderr,
        )
    with tempfile.TemporaryDirectory(prefix="traindbg-diagnosis-") as temporary:
        root = keep or Path(temporary)
        each = run_each(missing, jobs, limit, root, is_kept=bool(keep), is_second=is_second)
        with contextlib.closing(each):  # ends the children before their folder goes
            for done in each:
                outcomes[done.task] = done
                if journal is not None:
                    journal.add(done)
    return [outcomes[task] for task in tasks]


def run_each(
    tasks: list[Task], jobs: int, limit: int, root: Path, *, is_kept: bool, is_second: bool
) -> Generator[Outcome]:
    """Each outcome when its training has ended."""
    rules = {task.rules for task in tasks}
    checks = {r: check_of(r) for r in rules}
    running: dict[int, tuple[Task, Path, float]] = {}
    waiting = list(reversed(tasks))
    progress = Progress(len(tasks))
    before = time.monotonic()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                task = waiting.pop()
                directory = directory_of(task, root)
                check = checks[task.rules]
                child = start(task, directory, limit, check, plan_of(task), is_second)
                running[child] = (task, directory, time.monotonic())
            child, status = os.wait()
            if child not in running:
                continue
            task, directory, since = running.pop(child)
            end_group(child)
            now = time.monotonic()
            done = outcome(task, directory, status, now - since)._replace(wall=now - before)
            before = now
            if not is_kept:
                shutil.rmtree(directory, ignore_errors=True)
            progress.say(done)
            yield done
    finally:
        for child in running:
            if not end_group(child):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        progress.close()


def end_group(child: int) -> bool:
    """Ends what a training has left behind; whether there was anything."""
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:  # also of a child that has not yet made its group
        return False
    return True


def judge_again(tasks: list[Task], jobs: int, root: Path) -> list[Outcome]:
    """Judges what an earlier call kept in `root`. What that training printed and whether it ended
    well is not asked again."""
    checks = {rules: check_of(rules) for rules in {task.rules for task in tasks}}

    def one(task: Task) -> Outcome:
        since = time.monotonic()
        directory = directory_of(task, root)
        judge(directory, checks[task.rules])
        return outcome(task, directory, 0, time.monotonic() - since)

    progress = Progress(len(tasks))
    outcomes: list[Outcome] = []
    before = time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        for done in pool.map(one, tasks):
            now = time.monotonic()
            outcomes.append(done._replace(wall=now - before))
            before = now
            progress.say(done)
    progress.close()
    return outcomes
