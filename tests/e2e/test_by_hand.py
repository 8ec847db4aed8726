"""Trainings that change their weights by hand, under `traindbg run`: found, judged, stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
from forked import Server

SCRIPT = """
import sys
import torch
from torch import nn
from torch.nn import functional as F

fault = sys.argv[1]
torch.manual_seed(0)
inputs = torch.randn(1024, 10)
labels = (inputs @ torch.randn(10, 4) + 0.3 * torch.randn(1024, 4)).argmax(1)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4))
rate = 0.1
for epoch in range(8):
    model.train()
    for part in torch.randperm(768).split(32):
        loss = F.cross_entropy(model(inputs[part]), labels[part])
        loss.backward()
        if fault == "rate" and epoch == 3:
            rate = 1e20
        with torch.no_grad():
            for p in model.parameters():
                if fault != "no update":
                    p -= rate * p.grad
                if fault != "not cleared":
                    p.grad.zero_()
    model.eval()
    with torch.no_grad():
        F.cross_entropy(model(inputs[768:]), labels[768:])
print(float(loss), sum(float(p.double().sum()) for p in model.parameters()))
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def test_a_healthy_loop_is_recorded_without_a_finding_and_is_the_same(
    tmp_path, script, forked: Server
) -> None:
    outcome = forked.run(tmp_path / "runs", script, "healthy")
    assert outcome.code == 0, outcome.stderr
    assert outcome.steps() == 192
    assert outcome.verdict["findings"] == []
    assert outcome.stdout == forked.plain(script, "healthy").stdout


def test_gradients_that_are_never_cleared_are_found(tmp_path, script, forked: Server) -> None:
    outcome = forked.run(tmp_path / "runs", script, "not cleared")
    assert "gradients_not_cleared" in outcome.rules_fired("error")


def test_a_loop_that_is_to_stop_stops_after_an_update(tmp_path, script, forked: Server) -> None:
    options = ("--rules", "non_finite", "--on-finding", "stop")
    outcome = forked.run(tmp_path / "runs", script, "rate", options=options)
    assert outcome.code == 90, outcome.stderr
    assert outcome.rules_fired("error") == {"non_finite"}
    assert outcome.steps() < 192


def test_a_loop_that_updates_nothing_is_no_training(tmp_path, script, forked: Server) -> None:
    outcome = forked.run(tmp_path / "runs", script, "no update")
    assert outcome.code == 0, outcome.stderr
    assert "no model was seen" in outcome.stderr


LONE_PARAMETER = """
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Linear(10, 4)
multiplier = nn.Parameter(torch.zeros(()))
descent = torch.optim.SGD(model.parameters(), lr=0.1)
ascent = torch.optim.SGD([multiplier], lr=0.01, maximize=True)
from traindbg import _autostart

searches = 0
original = _autostart.find_roots


def find_roots(parameters):
    global searches
    searches += 1
    return original(parameters)


_autostart.find_roots = find_roots
for step in range(200):
    x = torch.randn(32, 10)
    loss = F.cross_entropy(model(x), x[:, :4].argmax(1))
    loss = loss + multiplier * (model.weight.square().mean() - 0.1)
    descent.zero_grad()
    ascent.zero_grad()
    loss.backward()
    descent.step()
    ascent.step()
print(searches)
"""


MANY_OPTIMIZERS = "from time import sleep\n" + (
    LONE_PARAMETER.partition("for step in")[0].replace("+= 1", "+= 1; sleep(0.005)")
    + """
for number in range(500):
    weights = nn.Parameter(torch.randn(5))
    optimizer = torch.optim.Adam([weights], lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        weights.square().sum().backward()
        optimizer.step()
print(searches)
"""
)


def test_of_many_optimizers_few_models_are_searched_for(tmp_path: Path, forked: Server) -> None:
    """Three searches of each would take a minute."""
    path = tmp_path / "train.py"
    path.write_text(MANY_OPTIMIZERS)
    outcome = forked.run(tmp_path / "runs", path)
    assert outcome.code == 0, outcome.stderr
    assert 1 <= int(outcome.stdout.split()[-1]) <= 600


def test_the_model_of_a_lone_parameter_is_seldom_searched_for(tmp_path, forked: Server) -> None:
    """A search goes through all objects of the process."""
    path = tmp_path / "train.py"
    path.write_text(LONE_PARAMETER)
    outcome = forked.run(tmp_path / "runs", path)
    assert outcome.code == 0, outcome.stderr
    assert outcome.steps() == 200
    assert 1 <= int(outcome.stdout.split()[-1]) <= 10
