"""Losses that are a penalty of the weights and a number, and what looks like them."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td

FACT = "loop/loss_is_of_weights_alone"


class Net(nn.Module):
    def __init__(self, keeps=False):
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 1)
        self.scale = nn.Parameter(torch.ones(6))
        self.keeps = keeps

    def forward(self, x):
        out = self.last(torch.tanh(self.first(x * self.scale)))
        if self.keeps:
            self.loss = (out.squeeze(1) - x[:, 0]).abs().mean()
            self.simple = (x * self.scale).sum(1).abs().mean()
        return out


def weights(model, power=1):
    return sum(p.abs().pow(power).sum() for n, p in model.named_parameters() if "weight" in n)


def norms(model):
    return torch.stack([p.norm() for p in model.parameters()]).sum()


def number(out, y):
    return torch.tensor(float((out.detach().squeeze(1) - y).abs().mean()))


FAULTS = {
    "l1": lambda model, out, y: number(out, y) + 1e-5 * weights(model),
    "l2": lambda model, out, y: number(out, y) + weights(model, 2) / 100,
    "norms": lambda model, out, y: number(out, y) + 0.01 * norms(model),
    "from NumPy": lambda model, out, y: torch.from_numpy(number(out, y).numpy()) + weights(model),
}
SOUND = {
    "with the loss": lambda model, out, y: F.l1_loss(out.squeeze(1), y) + 1e-5 * weights(model),
    "written out": lambda model, out, y: (out.squeeze(1) - y).abs().mean() + weights(model),
    "kept by the model": lambda model, out, y: model.loss + 1e-5 * weights(model),
    "of products with data": lambda model, out, y: model.simple + 1e-5 * weights(model),
}


def train(run_dir, loss_of, passes=1):
    torch.manual_seed(0)
    model = Net(keeps=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["detached_loss"]):
        for _ in range(12):
            x = torch.randn(16, 6)
            optimizer.zero_grad()
            out = model(x)
            loss_of(model, out, x[:, 0]).backward()
            if passes > 1:
                F.mse_loss(out.squeeze(1), x[:, 0]).backward()
            optimizer.step()
    run = td.Run(run_dir)
    return run.scalars(FACT).values.tolist() if FACT in run.names() else None


@pytest.mark.parametrize("name", FAULTS)
def test_a_penalty_alone_is_told(run_dir, name):
    told = train(run_dir, FAULTS[name])
    assert len(told) == 3
    assert set(told) == {5.0 if name == "norms" else 2.0}


@pytest.mark.parametrize("name", SOUND)
def test_a_loss_of_the_output_is_none(run_dir, name):
    assert train(run_dir, SOUND[name]) == [0, 0, 0]


def test_a_penalty_may_have_a_pass_of_its_own(run_dir):
    assert train(run_dir, FAULTS["l1"], passes=2) is None
