"""A class that a loss ignores, as padding is, is not counted among the labels."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td

PAD = 0
WAYS = {
    "module": nn.CrossEntropyLoss(ignore_index=PAD),
    "keyword": lambda scores, labels: F.cross_entropy(scores, labels, ignore_index=PAD),
    "position": lambda scores, labels: F.cross_entropy(scores, labels, None, None, PAD),
    "nll": lambda scores, labels: F.nll_loss(scores.log_softmax(1), labels, ignore_index=PAD),
}


def counted(run_dir, loss_of):
    torch.manual_seed(0)
    model = nn.Linear(6, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    labels = torch.tensor([1, 2, 3, 1, PAD, PAD, PAD, 2])
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["class_imbalance"]):
        for _ in range(3):
            loss = loss_of(model(torch.randn(8, 6)), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert labels.tolist() == [1, 2, 3, 1, PAD, PAD, PAD, 2]
    (counts,) = td.Run(run_dir).step(0).classes.values()
    return list(counts.labels)


@pytest.mark.parametrize("way", WAYS)
def test_padding_is_no_label(run_dir, way):
    assert counted(run_dir, WAYS[way]) == [0, 2, 2, 1]


def test_where_nothing_is_ignored_all_are_counted(run_dir):
    assert counted(run_dir, F.cross_entropy) == [3, 2, 2, 1]
