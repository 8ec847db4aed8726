"""What the loop did: the learning rate where it changes, steps that a GradScaler left out."""

from __future__ import annotations

import torch
from torch import nn

import traindbg as td

CAPTURE = [{"collection": "loop", "every": 1000}]


def small_model() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2))


def loss_of(model: nn.Module) -> torch.Tensor:
    return nn.functional.mse_loss(model(torch.ones(4, 6)), torch.zeros(4, 2))


def rows(run: td.Run, name: str) -> list[tuple[int, float]]:
    steps, values = run.scalars(name)
    return list(zip(steps.tolist(), values.tolist(), strict=True))


def test_the_largest_learning_rate_is_recorded_where_it_changes(run_dir):
    model = small_model()
    groups = [{"params": model[0].parameters(), "lr": 0.5}, {"params": model[2].parameters()}]
    optimizer = torch.optim.SGD(groups, lr=0.1)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [3, 7], 0.1)
    with td.watch(model, optimizer, run_dir=run_dir, capture=CAPTURE, supervise=False):
        for _ in range(10):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()
            schedule.step()
    rates = [(step, round(rate, 9)) for step, rate in rows(td.Run(run_dir), "loop/learning_rate")]
    changes = [
        now for before, now in zip([(-1, 0.0), *rates], rates, strict=False) if before[1] != now[1]
    ]
    assert changes == [(0, 0.5), (3, 0.05), (7, 0.005)]


def train_scaled(run_dir, factors: list[float]) -> tuple[td.Run, torch.Tensor]:
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    with td.watch(model, optimizer, run_dir=run_dir, capture=CAPTURE, supervise=False):
        for factor in factors:
            optimizer.zero_grad()
            scaler.scale(loss_of(model) * factor).backward()
            scaler.step(optimizer)
            scaler.update()
    return td.Run(run_dir), model[0].weight.detach()


def test_skipped_steps_are_counted_at_the_next_one(run_dir):
    run, _ = train_scaled(run_dir, [1.0, float("inf"), float("inf"), 1.0, 1.0])
    assert run.steps().tolist() == [0, 1, 2]
    assert rows(run, "loop/skipped_steps") == [(1, 2.0)]


def test_ten_skipped_steps_running_are_one(run_dir):
    run, weight = train_scaled(run_dir, [float("inf")] * 25)
    assert rows(run, "loop/skipped_steps") == [(0, 10.0), (1, 10.0)]
    assert torch.equal(weight, small_model()[0].weight)
