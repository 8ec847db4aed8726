"""`traindbg set`: what is captured of a training changes while it runs."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainings import PROGRAM, SECONDS, clean_environment, traindbg, traindbg_json

import traindbg as td

if TYPE_CHECKING:
    from collections.abc import Iterator

# Trains until standard input ends, and 20 steps more: what is in effect from the next step on is
# then captured even where standard input ends before that step. argv: how many processes, each a
# rank of its own.
TRAINING = """
import os, select, subprocess, sys
import torch

children = []
if "RANK" not in os.environ and sys.argv[1] != "1":
    for rank in range(int(sys.argv[1])):
        environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=sys.argv[1])
        children.append(subprocess.Popen([sys.executable, __file__, "1"], env=environment))
    sys.exit(any([child.wait() for child in children]))
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
step = 0
left = 20
while left > 0:
    left -= bool(select.select([0], [], [], 0)[0])
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(torch.randn(8, 6)), torch.randn(8, 1)).backward()
    optimizer.step()
    step += 1
    if step == 3:
        os.write(1, b"training\\n")  # in one piece: ranks share the pipe
"""


@contextmanager
def training(folder: Path, *options: str, ranks: int = 1) -> Iterator[Path]:
    """A training that runs under `traindbg run` until the block ends; gives its run."""
    script = folder / "train.py"
    script.write_text(TRAINING)
    command = [str(PROGRAM), "run", "--run-dir", "run", "--no-report", *options, "--"]
    command += [sys.executable, str(script), str(ranks)]
    with subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environment(),
    ) as program:
        assert program.stdout is not None
        try:
            for _ in range(ranks):
                assert program.stdout.readline() == "training\n"
            yield folder / "run"
        finally:
            _, errors = program.communicate("", timeout=SECONDS)
    assert program.returncode == 0, errors


def steps_of(run: Path, name: str, worker: int = 0) -> list[int]:
    recorded = td.Run(run)
    known = {tensor["name"] for tensor in traindbg_json("show", run, "--tensors")["tensors"]}
    return recorded.tensor(name, worker).steps().tolist() if name in known else []


def change(run: Path, *arguments: str) -> Any:
    """A change that is in effect when this returns."""
    told = traindbg_json("set", run, "--wait", "120", *arguments)
    assert told["changed"]
    assert told["in_effect"], told
    return told


def test_a_training_that_runs_captures_something_else_from_the_step_that_is_told(
    tmp_path: Path,
) -> None:
    with training(tmp_path, "--rules", "overfit") as run:
        shown = traindbg("set", run)
        assert shown.returncode == 0
        assert "overfit" in shown.stdout
        assert "plan.json" in shown.stdout
        on = change(run, "--collection", "mine=^weight/0", "--every", "3")
        assert on["number"] == 1
        (worker,) = on["workers"]
        # A second change counts on: the wish of before is still there.
        told = traindbg("set", run, "--every", "5", "--wait", "120")
        assert told.returncode == 0, told.stderr
        assert "- statistics of 'mine' in train, at every 3rd step" in told.stdout
        assert "+ statistics of 'mine' in train, at every 5th step" in told.stdout
        assert "in effect from step " in told.stdout
        other = int(told.stdout.split()[-1])
        assert [r["for"] for r in traindbg_json("set", run)["plan"]["requirements"]].count(
            "user"
        ) == 1
        off = change(run, "--drop", "mine")["workers"][0]["step"]
        assert not traindbg_json("set", run)["plan"]["collections"]
    first = worker["step"]
    captured = steps_of(run, "weight/0.weight")
    assert captured == [step for step in range(first, other) if step % 3 == 0] + [
        step for step in range(other, off) if step % 5 == 0
    ]
    assert traindbg("verify", run).returncode == 0
    assert "plan-000003.json" in traindbg("show", run).stdout


def test_all_ranks_take_a_change_on(tmp_path: Path) -> None:
    with training(tmp_path, "--rules", "overfit", ranks=2) as run:
        workers = change(run, "--collect", "gradients", "--every", "1")["workers"]
        assert [each["worker"] for each in workers] == [0, 1]
    for each in workers:
        captured = steps_of(run, "gradient/0.weight", each["worker"])
        assert captured == list(range(each["step"], captured[-1] + 1))


def test_a_settings_file_gives_captures_and_says_what_cannot_change(tmp_path: Path) -> None:
    (tmp_path / "more.toml").write_text(
        'quota = "1GiB"\non-finding = "stop"\ncompiled = "skip"\nflight-recorder = 9\n'
        "[rule.overfit]\npatience = 3\n"
        "[collection]\nhead = '^gradient/2'\n[[capture]]\ncollection = 'head'\nevery = 1\n"
    )
    with training(tmp_path, "--rules", "overfit", "--collect", "weights") as run:
        result = traindbg(
            "set", run, "--drop-all", "--config", tmp_path / "more.toml", "--wait", "120"
        )
        assert result.returncode == 0, result.stderr
        assert "flight-recorder, on-finding, quota, rule" in result.stderr
        plan = traindbg_json("set", run)["plan"]
        wishes = [each for each in plan["requirements"] if each["for"] == "user"]
        assert [each["collection"] for each in wishes] == ["head"]
        assert plan["compiled"] == "skip"
        first = int(result.stdout.split()[-1])
    captured = steps_of(run, "gradient/2.weight")
    assert captured == list(range(first, captured[-1] + 1))


def test_what_cannot_be_done_is_said_and_nothing_is_written(tmp_path: Path) -> None:
    with training(tmp_path, "--rules", "overfit") as run:
        before = sorted(run.glob("plan*"))
        for arguments, words in (
            (["--collect", "gradient"], "did you mean 'gradients'"),
            (["--collection", "x=("], "--collection"),
            (["--drop", "gradients"], "--drop: you asked for nothing of 'gradients'"),
            (["--every", "5"], "--collect gradients"),
            (["--at-steps", "x"], "--at-steps"),
            (["--colect", "weights"], "did you mean '--collect'"),
            (["--config", "missing.toml"], "missing.toml"),
            (["--flight-recorder", "9"], "--flight-recorder: is begun with the training"),
        ):
            result = traindbg("set", run, *arguments)
            assert result.returncode == 2, (arguments, result.stdout)
            assert words in result.stderr, (arguments, result.stderr)
        dry = traindbg("set", run, "--collect", "weights", "--dry-run")
        assert dry.returncode == 0
        assert "+ statistics of 'weights'" in dry.stdout
        assert traindbg("set", run, "--drop-all").stdout.startswith("nothing changes")
        assert sorted(run.glob("plan*")) == before
    result = traindbg("set", run, "--collect", "weights")
    assert result.returncode == 2
    assert "does not record any more (ended)" in result.stderr
    assert traindbg("set", run).returncode == 0  # shows it all the same
    result = traindbg("set", "s3://bucket/run", "--collect", "weights")
    assert result.returncode == 2
    assert "s3://bucket/run: is in a bucket" in result.stderr
    assert traindbg("set", tmp_path / "nothing", "--every", "1").returncode == 2


def test_help_lists_nothing_that_is_refused() -> None:
    assert "--flight" in traindbg("run", "--help").stdout
    assert "--flight" not in traindbg("set", "--help").stdout


def test_a_training_that_ends_no_step_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    script = tmp_path / "wait.py"
    script.write_text(
        TRAINING.replace("    step += 1\n", "    step += 1\n    if step == 3: input(print('x'))\n")
    )
    command = [str(PROGRAM), "run", "--run-dir", "run", "--no-report", "--"]
    with subprocess.Popen(
        [*command, sys.executable, str(script), "1"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environment(),
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "x\n"
        result = traindbg(
            "set", "run", "--collect", "weights", "--wait", "0.5", TRAINDBG_RUNS=str(tmp_path)
        )
        assert result.returncode == 2
        assert "plan-000001.json stands" in result.stderr
        told = traindbg_json("set", tmp_path / "run", "--raw", "weights", "--wait", "0")
        assert told["changed"]
        assert not told["in_effect"]
        program.communicate("\n", timeout=SECONDS)
