"""Probes under `traindbg run`: asked for in each place, and the training is the same."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from forked import Server
from trainings import PROGRAM, SECONDS, clean_environment

import traindbg as td

TRAINING = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(6, 4)
        self.experts = nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.2), nn.Linear(16, 4))

    def forward(self, x):
        weights = self.gate(x).exp()
        weights = weights / weights.sum(0)  # over the batch, not the experts
        return (weights * self.experts(x)).sum(1)

model = Mixture()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x = torch.randn(200, 6)
for epoch in range(4):
    for rows, y in DataLoader(TensorDataset(x, x.sin().sum(1)), batch_size=20, shuffle=True):
        loss = nn.functional.mse_loss(model(rows), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(loss.item(), sum(p.double().sum().item() for p in model.parameters()), torch.rand(1).item())
"""


def start(
    forked: Server, directory: Path, *before: str, program: str = TRAINING, **variables: str
) -> subprocess.CompletedProcess[str]:
    script = directory / "train.py"
    script.write_text(program)
    return subprocess.run(
        [*before, *forked.python(), script],
        cwd=directory,
        env=clean_environment(**variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def record(forked: Server, directory: Path, *options: str, **variables: str) -> tuple[td.Run, str]:
    """The run, and what the script printed."""
    program = (str(PROGRAM), "run", "--run-dir", "run", *options, "--")
    done = start(forked, directory, *program, **variables)
    assert done.returncode == 0, done.stderr
    return td.Run(directory / "run"), done.stdout


def rules_fired(run: td.Run) -> set[str]:
    return {found["rule"] for found in run.findings}


def test_a_probed_training_is_the_same_and_its_fault_is_found(
    tmp_path: Path, forked: Server
) -> None:
    run, printed = record(forked, tmp_path, "--probe")
    assert printed == start(forked, tmp_path).stdout
    assert printed
    assert "samples_mixed" in rules_fired(run)


@pytest.mark.parametrize("where", ["file", "environment"])
def test_probes_are_asked_for_in_other_places(where: str, tmp_path: Path, forked: Server) -> None:
    if where == "file":
        (tmp_path / "traindbg.toml").write_text("probe = true\n")
        run, _ = record(forked, tmp_path)
    else:
        run, _ = record(forked, tmp_path, TRAINDBG_PROBE="true")
    assert "samples_mixed" in rules_fired(run)


def test_without_it_nothing_is_probed_and_the_rule_says_so(tmp_path: Path, forked: Server) -> None:
    run, _ = record(forked, tmp_path)
    assert "samples_mixed" not in rules_fired(run)
    assert "loop/samples_mixed" not in run.names()
    by_hand = TRAINING.replace("nn.functional.mse_loss(model(rows), y)", "(model(rows) - y).norm()")
    command = (str(PROGRAM), "run", "--run-dir", "by_hand", "--")
    done = start(forked, tmp_path, *command, program=by_hand)
    assert done.returncode == 0, done.stderr
    outcomes = {each["rule"]: each for each in td.Run(tmp_path / "by_hand").outcomes}
    assert outcomes["samples_mixed"]["state"] == "not_checked"
    assert "--probe" in outcomes["samples_mixed"]["reason"]
