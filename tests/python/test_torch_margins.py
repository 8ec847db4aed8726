"""Scores that data has changed behind the last layer, as margins for the true class."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.losses.margins import are_changed_by_data

X, Y = torch.randn(60, 5), torch.randint(0, 3, (60,))
TRUE = F.one_hot(Y, 3)
LAYER = nn.Linear(5, 3)
WEIGHT, BIAS = nn.Parameter(torch.randn(5, 3)), nn.Parameter(torch.zeros(3))
SCALE = nn.Parameter(torch.tensor(12.0))


def cosines() -> torch.Tensor:
    return F.linear(F.normalize(X), F.normalize(WEIGHT.T))


@pytest.mark.parametrize(
    "scores",
    [
        lambda: LAYER(X),
        lambda: LAYER(X).view(-1, 3) / 2.0,
        lambda: LAYER(X).log_softmax(1),
        lambda: X @ WEIGHT + BIAS,
        lambda: SCALE * (X @ WEIGHT) + LAYER(X),
        lambda: SCALE * cosines(),
        lambda: -(X[:, None] - WEIGHT.T[None]).square().sum(2),
        lambda: nn.Conv1d(5, 3, 1)(X[:, :, None]).mean(2),
        lambda: LAYER(X).detach(),
    ],
)
def test_scores_of_layers_alone(scores):
    assert not are_changed_by_data(scores())


@pytest.mark.parametrize(
    "scores",
    [
        lambda: 12 * torch.where(TRUE.bool(), cosines() - 0.3, cosines()),
        lambda: 12 * (cosines() - 0.3 * TRUE),
        lambda: SCALE * (cosines() - 0.3 * TRUE),
        lambda: 12 * (TRUE * (cosines() - 0.3) + (1 - TRUE) * cosines()),
        lambda: 12 * cosines().scatter(1, Y[:, None], cosines().gather(1, Y[:, None]) - 0.3),
        lambda: LAYER(X).masked_fill(TRUE.bool(), -9.0),
    ],
)
def test_scores_with_a_margin(scores):
    assert are_changed_by_data(scores())


@pytest.mark.parametrize("margin", [0.0, 0.3])
def test_labels_that_have_to_win_by_a_margin_are_not_counted(run_dir, margin):
    """Of the training; evaluations have none."""
    model = nn.Linear(5, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["label_noise"]):
        for _ in range(2):
            for i in range(0, 40, 10):
                scores = model(X[i : i + 10])
                if margin > 0:
                    scores = scores - margin * TRUE[i : i + 10]
                optimizer.zero_grad()
                F.cross_entropy(scores, Y[i : i + 10]).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                F.cross_entropy(model(X[40:]), Y[40:])
            model.train()
    run = td.Run(run_dir)
    assert run.scalars("loop/labels_counted", "eval").values.tolist() == [20.0, 20.0]
    trained = run.scalars("loop/labels_counted", "train").values.tolist()
    assert trained == ([] if margin > 0 else [10.0] * 8)
