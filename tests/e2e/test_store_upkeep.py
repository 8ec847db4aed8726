"""`traindbg gc` and `traindbg compact`: what they remove is told, what lives is left alone."""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from forked import Server
from trainings import SECONDS, clean_environment, traindbg, traindbg_json

import traindbg as td

STEPS = 400

# Trains for so many steps, or (0) until its standard input ends, in parts so small that there are
# many; then does {at_end}. A line is printed every twenty steps.
TRAINING = """
import os
import select
import signal
import sys

import torch
import traindbg as td
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.CrossEntropyLoss()
td.watch(
    model, optimizer, run_dir=sys.argv[1], collect=("weights", "gradients"), raw="weights",
    supervise=False, store={{"part_bytes": 16384}},
)
most = int(sys.argv[2])
step = 0
while step < most or (most == 0 and not select.select([sys.stdin], [], [], 0)[0]):
    inputs = torch.randn(32, 8)
    optimizer.zero_grad()
    loss_fn(model(inputs), (inputs.sum(1) > 0).long()).backward()
    optimizer.step()
    step += 1
    if step % 20 == 0:
        print(step, flush=True)
{at_end}
"""
WRITTEN = """
td.Run(sys.argv[1]).wait_for_steps(most - 1)
"""
KILLED = """
os.kill(os.getpid(), signal.SIGKILL)
"""
# What a data loader that is not closed in time comes to: the child ends with its standard input.
KILLED_WITH_A_CHILD = """
if os.fork() == 0:
    print("child", flush=True)
    sys.stdin.read()
    os._exit(0)
signal.pause()
"""


def write_script(folder: Path, at_end: str = "") -> Path:
    script = folder / "train.py"
    script.write_text(TRAINING.format(at_end=WRITTEN + at_end if at_end else ""))
    return script


def record(folder: Path, forked: Server, at_end: str = "", code: int = 0) -> Path:
    """A training of `STEPS` steps, to its end."""
    run = folder / "run"
    done = subprocess.run(
        [*forked.python(), write_script(folder, at_end), run, str(STEPS)],
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return run


@contextmanager
def started(folder: Path, steps: int, at_end: str = "") -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, write_script(folder, at_end), folder / "run", str(steps)],
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as training:
        try:
            yield training
        finally:
            training.kill()


def files_of(run: Path) -> dict[str, bytes]:
    """Everything in the run but the page of shared memory."""
    return {
        str(path.relative_to(run)): path.read_bytes()
        for path in sorted(run.rglob("*"))
        if path.is_file() and path.name != "control"
    }


def losses(run: Path) -> dict[int, float]:
    steps, values = td.Run(run).scalars("loss")
    return dict(zip(steps.tolist(), values.tolist(), strict=True))


@pytest.fixture(scope="module")
def ended_run(tmp_path_factory: pytest.TempPathFactory, forked: Server) -> Path:
    return record(tmp_path_factory.mktemp("ended"), forked)


@pytest.fixture(scope="module")
def killed_run(tmp_path_factory: pytest.TempPathFactory, forked: Server) -> Path:
    return record(tmp_path_factory.mktemp("killed"), forked, KILLED, -signal.SIGKILL)


@pytest.fixture
def run(ended_run: Path, tmp_path: Path) -> Path:
    """A run that ended in order, to be thinned."""
    return Path(shutil.copytree(ended_run, tmp_path / "run"))


@pytest.fixture
def killed(killed_run: Path, tmp_path: Path) -> Path:
    """A run whose training was killed, to be sealed."""
    return Path(shutil.copytree(killed_run, tmp_path / "run"))


THINNING = ("--keep-last", 100, "--thin", 10)


def test_a_dry_run_says_what_would_go_and_touches_nothing(run: Path) -> None:
    before = files_of(run)
    (report,) = traindbg_json("gc", run, *THINNING, "--dry-run")["runs"]
    assert report["steps_removed"] > 0
    assert report["bytes_freed"] == sum(removal["bytes"] for removal in report["removals"]) > 0
    assert files_of(run) == before
    assert traindbg_json("show", run)["removed"] is None
    assert "would be freed" in traindbg("gc", run, *THINNING, "--dry-run").stdout


def test_gc_does_what_its_dry_run_said_and_the_run_tells_it(run: Path) -> None:
    before = losses(run)
    assert len(before) == STEPS
    (planned,) = traindbg_json("gc", run, *THINNING, "--dry-run")["runs"]
    (report,) = traindbg_json("gc", run, *THINNING)["runs"]
    assert report["steps_removed"] == planned["steps_removed"]
    assert report["problems"] == []
    after = losses(run)
    assert len(after) == STEPS - report["steps_removed"]
    assert after.items() <= before.items(), "what stays is as it was"
    last = max(before)
    assert {step for step in before if step % 10 == 0 or step > last - 100} <= after.keys()
    # Told in the run, in one place for people and programs, and no damage.
    shown = traindbg_json("show", run)
    assert shown["removed"]["steps"] == report["steps_removed"]
    assert shown["removed"]["bytes"] == report["bytes_freed"]
    assert shown["damage"] == []
    (line,) = (
        line for line in traindbg("show", run).stdout.splitlines() if line.startswith("removed")
    )
    assert f"{report['steps_removed']} steps" in line
    assert traindbg("verify", run).returncode == 0
    # A second time there is nothing left to do, and what was told stays told.
    (again,) = traindbg_json("gc", run, *THINNING)["runs"]
    assert again["removals"] == []
    assert traindbg_json("show", run)["removed"] == shown["removed"]


def test_over_a_quota_the_oldest_go_and_the_newest_stay(run: Path) -> None:
    before = losses(run)
    size = sum(map(len, files_of(run).values()))
    (report,) = traindbg_json("gc", run, "--quota", size // 2)["runs"]
    assert report["bytes_left"] <= size // 2
    after = losses(run)
    assert after.items() <= before.items()
    assert max(after) == max(before)
    assert traindbg_json("show", run)["removed"]["bytes"] == report["bytes_freed"]
    assert traindbg("verify", run).returncode == 0


def test_gc_of_nothing_is_refused(run: Path) -> None:
    done = traindbg("gc", run)
    assert done.returncode == 2
    assert "--keep-last" in done.stderr


def test_compact_seals_what_a_killed_training_left(killed: Path) -> None:
    before = losses(killed)
    assert len(before) >= STEPS - 1
    assert list(killed.glob("w0000/*.log"))
    report = traindbg_json("compact", killed)
    assert report["parts_sealed"] > 0
    assert report["problems"] == []
    assert not list(killed.glob("w0000/*.log"))
    assert losses(killed) == before
    assert traindbg("verify", killed).returncode == 0
    assert traindbg("compact", killed).stdout == "nothing to do: every part is sealed\n"


def test_a_directory_whose_lock_is_held_is_left_alone(killed: Path) -> None:
    """Held as docs/format/native.md says, by a process that could be anybody's writer."""
    lock = os.open(killed / "w0000" / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    before = files_of(killed)
    assert traindbg_json("compact", killed)["workers_alive"] == [0]
    for options in (THINNING, ("--quota", 1), (*THINNING, "--dry-run")):
        (report,) = traindbg_json("gc", killed, *options)["runs"]
        assert report["workers_alive"] == [0]
        assert report["removals"] == []
    assert "left alone" in traindbg("gc", killed, *THINNING).stdout
    assert files_of(killed) == before
    os.close(lock)
    assert traindbg_json("compact", killed)["parts_sealed"] > 0


def test_while_a_training_records_nothing_of_it_is_touched_or_lost(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with started(tmp_path, 0) as training:
        assert training.stdin is not None
        assert training.stdout is not None
        for _ in range(10):
            assert training.stdout.readline()
            assert traindbg_json("compact", run)["workers_alive"] == [0]
            for options in (("--keep-last", 20, "--thin", 5), ("--quota", 1)):
                (report,) = traindbg_json("gc", run, *options)["runs"]
                assert report["workers_alive"] == [0]
                assert report["removals"] == []
        rest, _ = training.communicate(timeout=SECONDS)
        assert training.returncode == 0
    steps = losses(run)
    assert sorted(steps) == list(range(min(steps), min(steps) + len(steps)))
    assert len(steps) >= int(rest.split()[-1] if rest else 200)
    shown = traindbg_json("show", run)
    assert shown["complete"]
    assert shown["removed"] is None
    assert shown["totals"]["steps_dropped"] == 0
    assert traindbg("verify", run).returncode == 0
    # It has ended: now it may be thinned.
    (report,) = traindbg_json("gc", run, "--keep-last", 20, "--thin", 5)["runs"]
    assert report["workers_alive"] == []
    assert report["steps_removed"] > 0


def test_a_child_that_outlives_its_killed_training_does_not_keep_the_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with started(tmp_path, STEPS, KILLED_WITH_A_CHILD) as training:
        assert training.stdin is not None
        assert training.stdout is not None
        while training.stdout.readline() != "child\n":
            assert training.poll() is None
        assert traindbg_json("compact", run)["workers_alive"] == [0]
        training.kill()
        training.wait(SECONDS)
        # The child has the other end of the pipe still.
        assert not select.select([training.stdout], [], [], 0)[0]
        report = traindbg_json("compact", run)
        assert report["workers_alive"] == []
        assert report["parts_sealed"] > 0
        assert len(losses(run)) >= STEPS - 1
        training.stdin.close()
