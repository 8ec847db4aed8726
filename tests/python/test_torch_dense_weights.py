"""What classes count where each pixel has a label is told of the first steps."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from trainings import fingerprint

import traindbg as td
from traindbg.hooks.torch.losses.dense_weights import weighed

SIDE, CLASSES = 6, 3
WEIGHT = torch.tensor([0.7, 0.2, 0.1])


def scores_and_labels(*places):
    scores = torch.randn(4, CLASSES, *places, requires_grad=True)
    return scores, torch.randint(0, CLASSES, (4, *places))


@pytest.mark.parametrize("places", [(SIDE, SIDE), (SIDE,), (2, SIDE, SIDE)])
def test_labels_of_all_places_are_counted(places):
    scores, labels = scores_and_labels(*places)
    found = weighed(F.cross_entropy(scores, labels, WEIGHT))
    assert found is not None
    assert torch.equal(found.weights, WEIGHT)
    assert found.labels.tolist() == labels.flatten().bincount(minlength=CLASSES).tolist()


def test_a_loss_that_is_a_term_of_another_one_is_found():
    scores, labels = scores_and_labels(SIDE, SIDE)
    loss = 0.5 * F.cross_entropy(scores, labels, WEIGHT) + scores.softmax(1).square().mean()
    assert weighed(loss) is not None


@pytest.mark.parametrize("ignored", [1, 255])
def test_what_is_ignored_is_no_label(ignored):
    scores, labels = scores_and_labels(SIDE, SIDE)
    labels[0] = ignored
    found = weighed(F.cross_entropy(scores, labels, WEIGHT, ignore_index=ignored))
    expected = [int((labels == one).sum()) if one != ignored else 0 for one in range(CLASSES)]
    assert found is not None
    assert found.labels.tolist() == expected


def test_of_many_labels_some_of_each_column_are_counted():
    scores = torch.randn(1, 2, 600, 256, requires_grad=True)
    labels = torch.zeros(1, 600, 256, dtype=torch.long)
    labels[..., 128:] = 1
    found = weighed(F.cross_entropy(scores, labels, torch.tensor([0.5, 0.5])))
    assert found is not None
    assert found.labels.sum() <= 1 << 16
    assert abs(float(found.labels[1] / found.labels.sum()) - 0.5) < 0.01


def test_losses_without_weights_or_with_one_label_per_sample_are_none_of_them():
    scores, labels = scores_and_labels(SIDE, SIDE)
    assert weighed(F.cross_entropy(scores, labels)) is None
    flat = torch.randn(5, CLASSES, requires_grad=True)
    assert weighed(F.cross_entropy(flat, torch.tensor([0, 1, 2, 0, 1]), WEIGHT)) is None
    assert weighed(F.mse_loss(scores, torch.zeros_like(scores))) is None


def train(run_dir, weight, *, watch=True):
    torch.manual_seed(3)
    model = nn.Conv2d(1, 2, 3, padding=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watcher = None
    if watch:
        rules = ["class_imbalance"]
        watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=rules)
    losses = []
    for _ in range(12):
        x = torch.randn(8, 1, 16, 16)
        loss = F.cross_entropy(model(x), (x[:, 0] > 1.28).long(), weight=weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if watcher is not None:
        watcher.detach()
    return fingerprint(model, losses)


def test_the_first_steps_tell_weights_and_labels(run_dir):
    weight = torch.tensor([0.9, 0.1])
    plain = train(None, weight, watch=False)
    assert train(run_dir, weight) == plain
    run = td.Run(run_dir)
    steps, rare = run.scalars("loop/dense_labels/1")
    assert steps.tolist() == list(range(8))
    assert 100 < rare.mean() < 310
    assert run.scalars("loop/dense_weight/1")[1].tolist() == pytest.approx([0.1] * 8)
