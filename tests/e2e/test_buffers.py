"""Buffers of an unchanged script under `traindbg run`, as the program shows them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from forked import Server
from trainings import PROGRAM, SECONDS, clean_environment

TRAINING = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(12):
    loss = nn.functional.mse_loss(model(torch.randn(16, 6)), torch.randn(16, 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("mean", step, model[1].running_mean.double().mean().item())
"""
NAMES = ["buffer/1.num_batches_tracked", "buffer/1.running_mean", "buffer/1.running_var"]


def traindbg(*arguments: str, directory: Path) -> str:
    done = subprocess.run(
        [PROGRAM, *arguments],
        cwd=directory,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_unchanged_scripts_buffers_are_shown(tmp_path: Path, forked: Server) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAINING)
    command = ("--", *forked.python(), str(script))
    options = ("--run-dir", "run", "--rules", "non_finite", "--collect", "buffers", "--every", "5")

    def ask(*arguments: str) -> str:
        return traindbg(*arguments, directory=tmp_path)

    planned = json.loads(ask("explain-plan", "--json", *options[2:], *command))
    assert {g["collection"]: g["tensors"] for g in planned["groups"]}["buffers"] == 3
    output = ask("run", *options, *command)
    said = [line.split() for line in output.splitlines() if line.startswith("mean ")]
    means = {int(step): float(mean) for _, step, mean in said}

    shown = json.loads(ask("show", "run", "--collection", "buffers", "--json"))
    assert sorted(tensor["name"] for tensor in shown["tensors"]) == NAMES
    got = json.loads(ask("get", "run", "buffer/1.running_mean", "--stat", "mean", "--json"))
    points = {point["step"]: point["value"] for point in got["workers"][0]["points"]}
    assert points.keys() == {0, 5, 10}
    for step, value in points.items():
        assert value == pytest.approx(means[step], rel=1e-6)
    choice = ("--table", "statistics", "--collection", "buffers")
    table = ask("export", "run", "--format", "csv", "--to", "-", *choice)
    assert all(name in table for name in NAMES)
