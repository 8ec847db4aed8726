"""How many zeros the first layer with weights is given, in training and in evaluations."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from trainings import fingerprint

import traindbg as td

X, Y = torch.rand(96, 1, 6, 6) + 0.1, torch.randint(0, 3, (96,))


class Hide(nn.Module):
    """Zeroes all but a share of each picture while training."""

    def __init__(self, left: float, always: bool = False) -> None:
        super().__init__()
        self.rows, self.always = round(6 * left), always

    def forward(self, x):
        return x * (torch.arange(6)[:, None] < self.rows) if self.training or self.always else x


class Net(nn.Module):
    def __init__(self, augment: nn.Module) -> None:
        super().__init__()
        self.augment = augment
        self.body = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
        self.head = nn.Linear(64, 3)

    def forward(self, x):
        return self.head(self.body(self.augment(x)))


def train(model, run_dir=None) -> list[float]:
    """30 steps, an evaluation after every fifth one."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watcher = None
    if run_dir is not None:
        rules = ["train_val_mismatch"]
        watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=rules)
    seen = []
    for step in range(30):
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(X[:32]), Y[:32])
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
        if step % 5 == 4:
            model.eval()
            with torch.no_grad():
                seen += [model(part).argmax(1).float().mean().item() for part in X[32:].split(32)]
    if watcher is not None:
        watcher.detach()
    return seen


def told(run_dir, augment) -> tuple[set[float], set[float]]:
    torch.manual_seed(0)
    train(Net(augment), run_dir)
    run = td.Run(run_dir)
    names = ["loop/given_zeros/body.0", "loop/given_zeros_in_evaluation/body.0"]
    found = [run.scalars(name).values.tolist() if name in run else [] for name in names]
    return tuple({round(value, 3) for value in values} for values in found)


def test_what_the_model_hides_in_training_alone(run_dir):
    assert told(run_dir, Hide(1 / 6)) == ({0.833}, {0})


def test_what_it_hides_in_evaluations_too(run_dir):
    assert told(run_dir, Hide(1 / 2, always=True)) == ({0.5}, {0.5})


def test_nothing_is_hidden(run_dir):
    assert told(run_dir, nn.Identity()) == ({0}, {0})


def test_zeros_of_a_dropout_are_meant(run_dir):
    assert told(run_dir, nn.Dropout(0.9)) == (set(), set())


def test_a_later_dropout_changes_nothing(run_dir):
    class Dropped(Net):
        def forward(self, x):
            return self.head(F.dropout(self.body(self.augment(x)), 0.1, self.training))

    torch.manual_seed(0)
    train(Dropped(Hide(1 / 6)), run_dir)
    assert "loop/given_zeros/body.0" in td.Run(run_dir)


def test_a_pass_that_raises_leaves_no_hook(run_dir):
    class Raises(Net):
        def forward(self, x):
            if not self.training:
                raise ValueError
            return super().forward(x)

    hooks = torch.nn.modules.module._global_forward_hooks
    model = Raises(nn.Identity())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["train_val_mismatch"]):
        for _ in range(3):
            model.train()
            F.cross_entropy(model(X[:32]), Y[:32]).backward()
            optimizer.step()
            model.eval()
            with torch.no_grad(), pytest.raises(ValueError):
                model(X[32:])
    assert not hooks


def test_results_are_the_same_bits(run_dir):
    prints = []
    for recorded in (None, run_dir):
        torch.manual_seed(0)
        model = Net(Hide(1 / 6))
        prints.append(fingerprint(model, train(model, recorded)))
    assert prints[0] == prints[1]
