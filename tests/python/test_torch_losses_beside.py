"""Losses that no backward pass comes to, and what looks like them."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from trainings import fingerprint

import traindbg as td

FACT = "loop/losses_left_out"


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 8), nn.Tanh())
        self.kind, self.angle = nn.Linear(8, 3), nn.Linear(8, 1)

    def forward(self, x):
        features = self.body(x)
        return self.kind(features), self.angle(features).squeeze(1)


def losses_of(model, x):
    scores, angle = model(x)
    return F.cross_entropy(scores, (x[:, 0] > 0).long()), F.mse_loss(angle, x[:, 1])


def as_a_number(kind, angle, step):
    return kind + angle.item()


def detached(kind, angle, step):
    return kind + 0.5 * angle.detach()


def alone(kind, angle, step):
    return kind


def summed(kind, angle, step):
    return kind + 0.3 * angle


def scaled_by_zero(kind, angle, step):
    return kind + 0.0 * angle


def in_turn(kind, angle, step):
    return kind if step % 2 == 0 else angle


def later(kind, angle, step):
    return kind if step < 4 else kind + angle


def train(run_dir, loss_of, *, watch=True, steps=12, passes=1, rules=("detached_loss",)):
    torch.manual_seed(0)
    model = TwoHeads()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watcher = None
    if watch:
        watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=list(rules))
    seen = []
    for step in range(steps):
        optimizer.zero_grad()
        kind, angle = losses_of(model, torch.randn(16, 6))
        loss = loss_of(kind, angle, step)
        loss.backward(retain_graph=passes > 1)
        if passes > 1:
            angle.backward()
        optimizer.step()
        seen.append(loss.item())
    if watcher is not None:
        watcher.detach()
    return fingerprint(model, seen)


def told(run_dir):
    run = td.Run(run_dir)
    return {
        name.removeprefix(FACT).strip("/"): run.scalars(name).values.tolist()
        for name in run.names()
        if name.startswith(FACT)
    }


@pytest.mark.parametrize("loss_of", [as_a_number, detached, alone])
def test_a_loss_that_is_left_out_is_told_with_what_it_would_train(run_dir, loss_of):
    assert train(run_dir, loss_of) == train(None, loss_of, watch=False)
    assert told(run_dir)["angle"][:10] == [2.0] * 10  # weight and bias


def sum_of(model, x, adds):
    """Both losses are gone when this returns."""
    kind, angle = losses_of(model, x)
    return kind + (angle if adds else angle.item())


@pytest.mark.parametrize("adds", [False, True])
def test_losses_that_a_function_adds_up(run_dir, adds):
    torch.manual_seed(0)
    model = TwoHeads()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["detached_loss"]):
        for _ in range(12):
            optimizer.zero_grad()
            sum_of(model, torch.randn(16, 6), adds).backward()
            optimizer.step()
    assert told(run_dir) == ({} if adds else {"angle": [2.0] * 10})


@pytest.mark.parametrize("loss_of", [summed, scaled_by_zero])
def test_a_term_of_the_loss_is_not_left_out(run_dir, loss_of):
    train(run_dir, loss_of)
    assert told(run_dir) == {}


def test_a_loss_with_a_pass_of_its_own_is_not_left_out(run_dir):
    train(run_dir, alone, passes=2)
    assert told(run_dir) == {}


def test_heads_that_are_trained_in_turn_are_not_left_out(run_dir):
    train(run_dir, in_turn)
    found = [value for values in told(run_dir).values() for value in values]
    assert sum(value > 0 for value in found) <= 1  # at the first step


def test_a_loss_that_is_added_later_is_over(run_dir):
    train(run_dir, later)
    found = told(run_dir)
    assert found["angle"] == [2.0] * 4
    assert found[""][0] == 0.0


def test_a_measure_of_what_is_trained_is_not_left_out(run_dir):
    torch.manual_seed(0)
    model = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["detached_loss"]):
        for _ in range(12):
            x = torch.randn(16, 6)
            out = model(x).squeeze(1)
            measure = F.l1_loss(out, x[:, 0])  # with a graph, for a log
            loss = F.mse_loss(out, x[:, 0])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            assert measure.requires_grad
    assert told(run_dir) == {}


def test_two_players_are_not_left_out(run_dir):
    torch.manual_seed(0)
    first, second = nn.Linear(6, 1), nn.Linear(1, 1)
    both = nn.ModuleList([first, second])
    ours, theirs = (torch.optim.SGD(each.parameters(), lr=0.01) for each in (first, second))
    with td.watch(both, ours, run_dir=run_dir, supervise=False, rules=["detached_loss"]):
        for _ in range(12):
            made = first(torch.randn(16, 6))
            judged = F.softplus(-second(made.detach())).mean()
            fooled = F.mse_loss(second(made), torch.ones(16, 1))
            ours.zero_grad()
            fooled.backward()
            ours.step()
            theirs.zero_grad()
            judged.backward()
            theirs.step()
    assert told(run_dir) == {}


def test_a_parameter_of_the_model_itself_is_told_of(run_dir):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.scale = nn.Linear(6, 3), nn.Parameter(torch.ones(1))

        def forward(self, x):
            return self.body(x), self.scale * x[:, 1]

    torch.manual_seed(0)
    model = Scaled()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["detached_loss"]):
        for _ in range(12):
            kind, angle = losses_of(model, torch.randn(16, 6))
            optimizer.zero_grad()
            (kind + angle.item()).backward()
            optimizer.step()
    assert told(run_dir) == {"model": [1.0] * 10}


class Again(torch.autograd.Function):
    """A block that is computed again in the backward pass, which has one of its own."""

    @staticmethod
    def forward(ctx, x, token, block):
        ctx.block = block
        ctx.save_for_backward(x)
        with torch.no_grad():
            return block(x)

    @staticmethod
    def backward(ctx, upstream):
        x = ctx.saved_tensors[0].detach().requires_grad_(True)
        with torch.enable_grad():
            out = ctx.block(x)
        out.backward(upstream)
        return x.grad, None, None


class Tokened(nn.Module):
    """Whose first block is run by a parameter that has no part in what it gives."""

    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.zeros(1))
        self.block, self.last = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.last(Again.apply(x, self.token, self.block))


def test_a_pass_within_a_pass_leaves_nothing_out(run_dir):
    torch.manual_seed(0)
    model = Tokened()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["detached_loss"]):
        for _ in range(12):
            x = torch.randn(16, 6)
            optimizer.zero_grad()
            F.cross_entropy(model(x), (x[:, 0] > 0).long()).backward()
            optimizer.step()
    assert not [name for name in td.Run(run_dir).names() if name.startswith(FACT)]
