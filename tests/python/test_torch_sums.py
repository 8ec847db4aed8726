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
def test_that_a_loss_is_a_sum_is_told_with_the_number_of_its_values(run_dir, reduction) -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["exploding_gradient"]):
        for _ in range(3):
            optimizer.zero_grad()
            given, wanted = model(torch.randn(8, 4)), torch.randn(8, 2)
            nn.functional.mse_loss(given, wanted, reduction=reduction).backward()
            optimizer.step()
    run = td.Run(run_dir)
    if reduction == "mean":
        assert run.names("loss_is_summed") == []
    else:
        assert set(run.tensor("loop/loss_is_summed").values("value")) == {16}


@pytest.mark.parametrize("function", ["sum", "mean"])
def test_a_sum_that_the_loop_writes_out_is_told_too(run_dir, function) -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["exploding_gradient"]):
        for _ in range(3):
            optimizer.zero_grad()
            errors = (model(torch.randn(8, 4)) - torch.randn(8, 2)) ** 2
            getattr(errors, function)().backward()
            optimizer.step()
    told = td.Run(run_dir).tensor("loop/loss_is_summed").values("value")
    assert set(told) == {16 if function == "sum" else 0}


@pytest.mark.parametrize("reduced", ["sum", "mean", "weighted"])
def test_a_sum_of_what_a_function_gave_for_each_sample_is_told_too(run_dir, reduced) -> None:
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["exploding_gradient"]):
        for _ in range(3):
            optimizer.zero_grad()
            labels = torch.arange(8) % 3
            rows = F.cross_entropy(model(torch.randn(8, 4)), labels, reduction="none")
            loss = (
                (rows * torch.arange(8)).sum()
                if reduced == "weighted"
                else getattr(rows, reduced)()
            )
            loss.backward()
            optimizer.step()
    told = td.Run(run_dir).tensor("loop/loss_is_summed").values("value")
    assert set(told) == {8 if reduced == "sum" else 0}


def test_the_scale_of_a_scaler_is_told(run_dir) -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=2)
    with td.watch(
        model, optimizer, run_dir=run_dir, supervise=False, rules=["loss_scale_overflow"]
    ):
        for _ in range(4):
            optimizer.zero_grad()
            scaler.scale(model(torch.randn(8, 4)).square().mean()).backward()
            scaler.step(optimizer)
            scaler.update()
    assert list(td.Run(run_dir).tensor("loop/loss_scale").values("value")) == [64, 64, 128, 128]
