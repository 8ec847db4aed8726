"""How often a model is asked without gradients between its steps, as an agent is that acts."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td

FACT = "loop/asked_without_gradients"


def train(run_dir, between):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rules = ["loss_not_decreasing"]
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=rules):
        for _ in range(12):
            between(model)
            loss = F.mse_loss(model(torch.randn(8, 4)).max(1).values, torch.randn(8))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return td.Run(run_dir).scalars(FACT).values.tolist()


def acts(model):
    with torch.no_grad():
        for _ in range(3):
            model(torch.randn(1, 4)).argmax()


def is_predicting(model):
    with torch.inference_mode():
        model(torch.randn(1, 4))


def is_evaluated(model):
    model.eval()
    with torch.no_grad():
        model(torch.randn(8, 4))
    model.train()


def nothing(model):
    pass


@pytest.mark.parametrize(
    ("between", "calls"), [(acts, 3), (is_predicting, 1), (is_evaluated, 0), (nothing, 0)]
)
def test_calls_between_steps_are_counted(run_dir, between, calls):
    assert train(run_dir, between)[1:10] == [calls] * 9
