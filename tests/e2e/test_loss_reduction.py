"""A loss summed over the batch is named where steps are too large for it, and only there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from forked import Server

    # Of a kind of loss with a learning rate: names, explanations and fixes.
    Causes = Callable[[str, float], list[tuple[str, str, str]]]

SCRIPT = """
import sys

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

kind, rate = sys.argv[1], float(sys.argv[2])
torch.manual_seed(0)
digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
model = nn.Sequential(
    nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(),
    nn.Linear(64, 64 if kind == "squares" else 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
for _ in range(120):
    rows = torch.randint(0, len(x), (64,))
    given = model(x[rows])
    if kind == "squares":
        loss = ((given - x[rows]) ** 2).sum()
    elif kind == "rows":
        loss = F.cross_entropy(given, y[rows], reduction="none").sum()
    else:
        loss = F.cross_entropy(given, y[rows], reduction=kind)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.fixture
def causes(tmp_path: Path, forked: Server) -> Causes:
    def causes(kind: str, rate: float) -> list[tuple[str, str, str]]:
        path = tmp_path / "train.py"
        path.write_text(SCRIPT)
        outcome = forked.run(tmp_path / "runs", path, kind, rate, options=("--no-report",))
        assert outcome.code == 0, outcome.stderr
        return [(c["name"], c["explanation"], c["fix"]) for c in outcome.verdict["causes"]]

    return causes


@pytest.mark.parametrize(("kind", "values"), [("sum", 64), ("rows", 64), ("squares", 4096)])
def test_a_sum_with_the_rate_for_a_mean_is_the_cause(
    causes: Causes, kind: str, values: int
) -> None:
    ((name, explanation, fix),) = causes(kind, 0.1)
    assert name == "loss_reduction"
    assert f"the sum over {values} values" in explanation
    assert 'reduction="mean"' in fix
    assert "lower the learning rate from 0.1" in fix


@pytest.mark.parametrize(("kind", "rate"), [("sum", 0.001), ("squares", 1e-5), ("mean", 0.1)])
def test_a_rate_that_fits_the_loss_is_left_alone(causes: Causes, kind: str, rate: float) -> None:
    assert causes(kind, rate) == []


def test_a_mean_with_a_rate_too_high_is_no_matter_of_the_sum(causes: Causes) -> None:
    names = [name for name, _, _ in causes("mean", 8)]
    assert names[0] == "learning_rate_too_high"
