"""A training of several ranks, as torchrun starts them, of which one dies or never begins."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from trainings import PROGRAM, SECONDS, clean_environment, traindbg, traindbg_json

import traindbg as td

if TYPE_CHECKING:
    from collections.abc import Iterator

# What torchrun does for a training, less the collectives: a process for each rank, and none is told
# of another's end. argv: world size, the ranks to start. Exit code 1: one of them failed.
LAUNCHER = """
import os, subprocess, sys

world, ranks = sys.argv[1], sys.argv[2:]
children = []
for rank in ranks:
    environment = dict(os.environ, RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=world)
    children.append(subprocess.Popen([sys.executable, RANK_SCRIPT], env=environment))
    print("rank", rank, "is", children[-1].pid, flush=True)
sys.exit(any([child.wait() for child in children]))
"""

# Trains until standard input ends, then on to the step that the file `target` names.
RANK = """
import os, select, sys
import torch
import traindbg as td

rank = int(os.environ["RANK"])
torch.manual_seed(rank)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
step, target = 0, None
while target is None or step <= target:
    optimizer.zero_grad()
    loss = model(torch.ones(3, 4)).pow(2).mean()
    td.log("mine", step * 1000 + rank)
    loss.backward()
    optimizer.step()
    step += 1
    if target is None and select.select([0], [], [], 0)[0]:
        with open(TARGET) as file:
            target = int(file.read())
"""


@contextmanager
def started(
    folder: Path, world: int, ranks: list[int], *options: str
) -> Iterator[tuple[subprocess.Popen[str], dict[int, int]]]:
    """`traindbg run` of a launcher of these ranks into `folder`/run; also the pids of the ranks.

    None of them lives on.
    """
    rank = folder / "rank.py"
    rank.write_text(RANK.replace("TARGET", repr(str(folder / "target"))))
    launcher = folder / "launch.py"
    launcher.write_text(LAUNCHER.replace("RANK_SCRIPT", repr(str(rank))))
    command = [str(PROGRAM), "run", "--run-dir", str(folder / "run"), *options, "--"]
    command += [sys.executable, str(launcher), str(world), *map(str, ranks)]
    program = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environment(),
    )
    assert program.stdout is not None
    pids = {}
    for _ in ranks:
        _, number, _, pid = program.stdout.readline().split()
        pids[int(number)] = int(pid)
    try:
        yield program, pids
    finally:
        if program.poll() is None:
            for pid in [*pids.values(), program.pid]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            program.communicate()


def finish(program: subprocess.Popen[str], folder: Path, target: int) -> tuple[str, str]:
    """Tells the ranks how far to go; what was printed."""
    (folder / "target").write_text(str(target))
    return program.communicate(timeout=SECONDS)


def wait_for_step(run: td.Run, step: int, ranks: set[int]) -> None:
    """Returns once a reader has seen the step of all these ranks."""
    while not ranks <= run.step_of_workers(step).keys():
        assert run.wait(SECONDS), f"nothing came; step {step}: {run.step_of_workers(step)}"


def steps_of(run: td.Run, worker: int) -> list[int]:
    """The rank's steps; their values must be its own."""
    steps = []
    for step in run.iter_steps(worker=worker):
        assert step.scalars["metric/mine"] == step.step * 1000 + worker
        steps.append(step.step)
    return steps


def test_a_rank_that_is_killed_is_named_and_costs_the_others_nothing(tmp_path: Path) -> None:
    with started(tmp_path, 3, [0, 1, 2]) as (program, pids):
        run = td.Run(tmp_path / "run")
        wait_for_step(run, 5, {0, 1, 2})
        acknowledged = steps_of(run, 1)
        os.kill(pids[1], signal.SIGKILL)
        # It ends at once, but what it wrote last may come after this look.
        target = acknowledged[-1] + 1000
        _, errors = finish(program, tmp_path, target)

    run = td.Run(tmp_path / "run")
    assert run.workers == [0, 1, 2]
    assert run.missing_workers == []
    assert not run.is_complete
    survived = steps_of(run, 1)
    assert survived == list(range(len(survived)))
    assert survived[: len(acknowledged)] == acknowledged
    assert survived[-1] < target
    for worker in (0, 2):
        assert steps_of(run, worker)[-1] >= target
        assert steps_of(run, worker) == list(range(len(steps_of(run, worker))))
    assert list(run.step_of_workers(survived[-1])) == [0, 1, 2]
    assert list(run.step_of_workers(survived[-1] + 1)) == [0, 2]

    last = max(steps_of(run, 0)[-1], steps_of(run, 2)[-1])
    named = f"worker 1 stopped at step {survived[-1]}, its record not closed"
    assert f"{named}; others went on to step {last}" in " ".join(errors.split())
    assert named in " ".join(traindbg("show", run.path).stdout.split())
    assert named in " ".join(traindbg("check", run.path).stderr.split())
    assert named in (run.path / "report.html").read_text()
    for verb in ("show", "check"):
        told = traindbg_json(verb, run.path, codes=(0, 1))
        assert told["missing_workers"] == []
        (gap,) = [entry for entry in told["stopped_workers"] if entry["worker"] == 1]
        assert gap == {
            "worker": 1,
            "last_step": survived[-1],
            "last_step_of_others": last,
            "closed": False,
        }


def test_a_rank_that_never_began_is_named(tmp_path: Path) -> None:
    with started(tmp_path, 3, [0, 2], "--json") as (program, _):
        run = td.Run(tmp_path / "run")
        wait_for_step(run, 5, {0, 2})
        output, errors = finish(program, tmp_path, 400)

    run = td.Run(tmp_path / "run")
    assert run.missing_workers == [1]
    assert run.is_complete
    assert list(run.step_of_workers(399)) == [0, 2]
    named = "worker 1 has recorded nothing, though others expect it"
    assert named in errors
    assert json.loads(output.splitlines()[-1])["missing_workers"] == [1]
    assert named in traindbg("show", run.path).stdout
    assert named in traindbg("check", run.path).stderr
    assert named in (run.path / "report.html").read_text()
    assert traindbg_json("show", run.path)["missing_workers"] == [1]
    assert traindbg_json("check", run.path, codes=(0, 1, 2))["missing_workers"] == [1]
