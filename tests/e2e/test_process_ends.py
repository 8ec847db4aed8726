"""How processes of a training end is in its record, however they do, and is as without traindbg."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from forked import Server
from trainings import Outcome, run_training

import traindbg as td

STEPS = 30
RAISES_AFTER = 21
TRAIN = """
import torch
from torch import nn

torch.set_num_threads(1)


def train(steps, fails=False):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(torch.randn(5, 4)), torch.zeros(5, 1)).backward()
        optimizer.step()
        if fails and step == 20:
            raise RuntimeError("on purpose")
"""
CHILDREN = """
import sys
import torch.multiprocessing as mp
{train}

def work(rank, fails):
    train(30, fails)


if __name__ == "__main__":
    how, fails = sys.argv[1], sys.argv[2] == "fails"
    if how == "mp.spawn":
        mp.spawn(work, args=(fails,), nprocs=2)
    else:
        children = [mp.get_context(how).Process(target=work, args=(r, fails)) for r in range(2)]
        for child in children:
            child.start()
        for child in children:
            child.join()
        print([child.exitcode for child in children], flush=True)
"""
FORKS = """
import os
import sys
import multiprocessing as mp
{train}

train(5)
if sys.argv[1] == "multiprocessing":
    child = mp.get_context("fork").Process(target=train, args=(30,))
    child.start()
    child.join()
    code = child.exitcode
else:
    pid = os.fork()
    if pid == 0:
        train(30)
        sys.exit(7)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
train(10)
print("child", code, flush=True)
"""
CATCHES = """
import sys
import traceback
{train}

try:
    train(30, fails=True)
except Exception:
    traceback.print_exc()
    sys.exit(4)
"""
HOOKS = """
import sys
import threading
{train}

def mine(kind, error, traceback):
    print("my hook", kind.__name__, error, flush=True)


def of_thread(args):
    print("my hook of threads", args.exc_type.__name__, args.thread.name, flush=True)


sys.excepthook = mine
threading.excepthook = of_thread
if sys.argv[1] == "thread":
    thread = threading.Thread(target=train, args=(30, True), name="learner")
    thread.start()
    thread.join()
    assert threading.excepthook.__name__ == "of_thread"
else:
    train(30, fails=True)
"""


def record(
    forked: Server, folder: Path, script: str, *arguments: str, in_its_own: bool = False
) -> Outcome:
    """Of a script under traindbg that ends and prints as it does without it.

    `in_its_own`: in a process that begins as a user's does.
    """
    path = folder / "script.py"
    path.write_text(script.format(train=TRAIN))
    plain = forked.plain(path, *arguments)
    options = ("--flight-recorder", "5", "--rules", "overfit", "--no-report")
    start = run_training if in_its_own else forked.run
    outcome = start(folder / "runs", path, *arguments, options=options)
    assert (outcome.code, outcome.stdout) == (plain.returncode, plain.stdout)
    assert plain.stderr.count("Traceback") == outcome.stderr.count("Traceback")
    assert "cut off" not in outcome.stderr
    return outcome


def exceptions(run: td.Run) -> list[tuple[int, dict[str, Any]]]:
    found = ((e["worker"], e["data"]) for e in run.events if e["kind"] == "exception")
    return sorted(found, key=lambda each: each[0])


def steps_of(run: td.Run, worker: int) -> list[int]:
    return run.scalars("loss", worker=worker).steps.tolist()


RAISED = {"type": "RuntimeError", "message": "on purpose", "step": RAISES_AFTER}


@pytest.mark.parametrize("how", ["fork", "spawn", "mp.spawn"])
def test_an_exception_in_a_child(how: str, tmp_path: Path, forked: Server) -> None:
    outcome = record(forked, tmp_path, CHILDREN, how, "fails", in_its_own=how == "mp.spawn")
    run = td.Run(outcome.run)
    raised = exceptions(run)
    if how == "mp.spawn":  # which ends the others as soon as one has failed
        assert raised
        assert all(data == RAISED for _, data in raised)
    else:
        assert raised == [(0, RAISED), (1, RAISED)]
        assert steps_of(run, 0) == steps_of(run, 1) == list(range(RAISES_AFTER))
        assert run.is_complete
    assert run.flight is not None


@pytest.mark.parametrize("how", ["fork", "forkserver"])
def test_children_that_train_to_their_end(how: str, tmp_path: Path, forked: Server) -> None:
    run = td.Run(record(forked, tmp_path, CHILDREN, how, "", in_its_own=how == "fork").run)
    assert run.workers == [0, 1]
    assert steps_of(run, 0) == steps_of(run, 1) == list(range(STEPS))
    assert run.is_complete
    assert exceptions(run) == []
    assert run.flight is None


@pytest.mark.parametrize("how", ["multiprocessing", "os.fork"])
def test_a_parent_and_its_forked_child_both_train(how: str, tmp_path: Path, forked: Server) -> None:
    run = td.Run(record(forked, tmp_path, FORKS, how, in_its_own=how == "os.fork").run)
    assert run.workers == [0, 1]
    assert steps_of(run, 0) == list(range(15))
    assert steps_of(run, 1) == list(range(STEPS))
    assert run.is_complete
    assert not run.verify()


def test_a_script_that_catches_its_exception_and_exits(tmp_path: Path, forked: Server) -> None:
    outcome = record(forked, tmp_path, CATCHES, in_its_own=True)
    assert outcome.code == 4
    run = td.Run(outcome.run)
    assert exceptions(run) == [(0, RAISED)]
    assert run.flight is not None
    assert RAISES_AFTER - 1 in run.flight["gradient/0.weight"].steps().tolist()


@pytest.mark.parametrize(("how", "thread"), [("main", {}), ("thread", {"thread": "learner"})])
def test_hooks_of_the_script_are_called(
    how: str, thread: dict[str, str], tmp_path: Path, forked: Server
) -> None:
    outcome = record(forked, tmp_path, HOOKS, how, in_its_own=how == "main")
    assert "my hook" in outcome.stdout
    run = td.Run(outcome.run)
    assert exceptions(run) == [(0, RAISED | thread)]
    assert run.flight is not None


def test_a_package_that_is_run_as_a_module(tmp_path: Path, forked: Server) -> None:
    package = tmp_path / "learner"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "loop.py").write_text(TRAIN)
    (package / "__main__.py").write_text(
        "import sys\nfrom .loop import train\n\ntrain(int(sys.argv[1]))\nprint(__package__)\n"
    )
    outcome = run_training(
        tmp_path / "runs", Path("-m"), "learner", STEPS, PYTHONPATH=str(tmp_path)
    )
    assert outcome.code == 0, outcome.stderr
    assert outcome.stdout == "learner\n"
    assert steps_of(td.Run(outcome.run), 0) == list(range(STEPS))
