"""The weights that a loss gives to classes are told of the first steps, and nothing else is."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from trainings import fingerprint

import traindbg as td

WIDTH, CLASSES = 6, 3
WEIGHT = torch.tensor([0.5, 1.0, 2.5])


def train(run_dir, loss_of, *, watch=True, classes=CLASSES, rules=("class_imbalance",)):
    torch.manual_seed(3)
    model = nn.Linear(WIDTH, classes)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watcher = None
    if watch:
        watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=list(rules))
    losses = []
    for _ in range(8):
        x, labels = torch.randn(12, WIDTH), torch.randint(0, classes, (12,))
        loss = loss_of(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if watcher is not None:
        watcher.detach()
    return fingerprint(model, losses)


def told(run_dir):
    """Steps and weights, by class."""
    run = td.Run(run_dir)
    names = [name for name in run.names() if name.startswith("loop/class_weight/")]
    return {
        tuple(name.split("/")[2:]): tuple(values.tolist() for values in run.scalars(name))
        for name in names
    }


WAYS = {
    "module": nn.CrossEntropyLoss(weight=WEIGHT),
    "keyword": lambda given, labels: F.cross_entropy(given, labels, weight=WEIGHT),
    "position": lambda given, labels: F.cross_entropy(given, labels, WEIGHT),
    "nll": lambda given, labels: F.nll_loss(given.log_softmax(1), labels, WEIGHT),
    "double": lambda given, labels: F.cross_entropy(given.double(), labels, WEIGHT.double()),
}


@pytest.mark.parametrize("way", WAYS)
def test_weights_are_told_of_the_first_two_steps(run_dir, way):
    plain = train(None, WAYS[way], watch=False)
    assert train(run_dir, WAYS[way]) == plain
    name = "nll_loss" if way == "nll" else "cross_entropy"
    weights = enumerate(WEIGHT.tolist())
    assert told(run_dir) == {(name, str(k)): ([0, 1], [w, w]) for k, w in weights}


@pytest.mark.parametrize(
    ("loss_of", "classes"),
    [
        (F.cross_entropy, CLASSES),
        (lambda given, labels: F.cross_entropy(given, labels, torch.ones(65)), 65),
    ],
)
def test_without_weights_or_with_many_nothing_is_told(run_dir, loss_of, classes):
    train(run_dir, loss_of, classes=classes)
    assert told(run_dir) == {}
    assert "classes/cross_entropy" in td.Run(run_dir).names()
