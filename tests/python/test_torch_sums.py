"""Values of losses: what a sum over the targets is recorded as."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td

LOSSES = [{"collection": "losses", "mode": "every"}]


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(4)
    targets = torch.randint(0, 5, (6, 7), generator=generator)
    targets[:, 5:] = -100
    targets[0] = -100
    return torch.randn(6, 3, generator=generator), targets


class Words(nn.Module):
    """Five words at each of seven places."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 35)

    def forward(self, x):
        return self.fc(x).view(-1, 7, 5).transpose(1, 2)  # [batch, classes, places]


@pytest.mark.parametrize("function", ["cross_entropy", "nll_loss"])
def test_a_sum_is_recorded_by_target_that_counts(function, batch, run_dir):
    inputs, targets = batch
    model = Words()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def scores():
        out = model(inputs)
        return out if function == "cross_entropy" else out.log_softmax(1)

    with td.watch(model, run_dir=run_dir, capture=LOSSES, supervise=False):
        with torch.no_grad():
            mean = getattr(F, function)(scores(), targets).item()  # of an evaluation
        model.train()
        total = getattr(F, function)(scores(), targets, reduction="sum")
        total.backward()
        optimizer.step()
    run = td.Run(run_dir)
    name = f"loss/{function}"
    assert run.scalars(name, "eval").values.tolist() == pytest.approx([mean], rel=1e-6)
    assert run.scalars(name).values.tolist() == pytest.approx([mean], rel=1e-6)
    assert run.scalars("loss").values.tolist() == [total.item()]


def test_a_sum_without_targets_and_other_sums_are_left_as_they_are(batch, run_dir):
    inputs, targets = batch
    model = Words()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, run_dir=run_dir, capture=LOSSES, supervise=False):
        out = model(inputs)
        nothing = F.cross_entropy(out, torch.full_like(targets, -100), reduction="sum")
        squares = F.mse_loss(out, torch.zeros_like(out), reduction="sum")
        (nothing + squares).backward()
        optimizer.step()
    run = td.Run(run_dir)
    assert run.scalars("loss/cross_entropy").values.tolist() == [0.0]
    assert run.scalars("loss/mse_loss").values.tolist() == [squares.item()]


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_an_evaluation_says_that_its_loss_is_a_sum(reduction, batch, run_dir):
    inputs, _ = batch
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    answers = torch.zeros(6, 2)
    rules = ["evaluation_at_chance"]
    with td.watch(model, optimizer, run_dir=run_dir, rules=rules, supervise=False):
        F.binary_cross_entropy_with_logits(model(inputs), answers).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            F.binary_cross_entropy_with_logits(model(inputs), answers, reduction=reduction)
    run = td.Run(run_dir)
    assert run.scalars("loop/rows_evaluated", "eval").values.tolist() == [6.0]  # it was looked at
    names = run.names("loop/loss_is_summed")
    assert names == (["loop/loss_is_summed"] if reduction == "sum" else [])
    if names:
        assert run.scalars(names[0], "eval").values.tolist() == [12.0]
