"""The labels of cross-entropies that are written out, and what is none."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from trainings import fingerprint

import traindbg as td
from traindbg.hooks.torch.losses.picked import picked

ROWS, CLASSES = 12, 5
EVERY = torch.arange(ROWS)

WAYS = {
    "difference": lambda s, y: (s.logsumexp(1) - s.gather(1, y[:, None])[:, 0]).mean(),
    "difference, squeezed": lambda s, y: (
        s.logsumexp(-1) - s.gather(-1, y[:, None]).squeeze()
    ).sum(),
    "difference, by index": lambda s, y: (s.logsumexp(1) - s[EVERY, y]).mean(),
    "column": lambda s, y: (s.logsumexp(1, keepdim=True) - s.gather(1, y[:, None])).mean(),
    "log_softmax": lambda s, y: -s.log_softmax(1).gather(1, y[:, None]).mean(),
    "log_softmax, by index": lambda s, y: -s.log_softmax(-1)[EVERY, y].mean(),
    "written log_softmax": lambda s, y: -(s - s.logsumexp(1, keepdim=True))[EVERY, y].sum() / ROWS,
}


@pytest.mark.parametrize("way", WAYS)
def test_scores_and_labels_are_found(way):
    torch.manual_seed(0)
    scores = torch.randn(ROWS, CLASSES, requires_grad=True)
    labels = torch.randint(0, CLASSES, (ROWS,))
    found = picked(WAYS[way](scores, labels))
    assert found is not None
    assert torch.equal(found.labels, labels)
    wanted = scores.detach().log_softmax(1)
    assert torch.allclose(found.scores.log_softmax(1), wanted, atol=1e-6)


def test_answers_of_yes_and_no_are_found():
    score = torch.randn(ROWS, requires_grad=True)
    answer = (torch.arange(ROWS) % 3 == 0).float()
    for loss in (
        (F.softplus(score) - score * answer).mean(),
        (F.softplus(score) - answer * score).sum(),
    ):
        found = picked(loss)
        assert found is not None
        assert found.scores is None
        assert torch.equal(found.labels, answer)


def test_what_is_no_cross_entropy():
    scores = torch.randn(ROWS, CLASSES, requires_grad=True)
    score, labels = scores[:, 0], torch.randint(0, CLASSES, (ROWS,))
    reward, answer = torch.rand(ROWS), (labels > 2).float()
    chosen = scores.log_softmax(1).gather(1, labels[:, None])[:, 0]
    for loss in (
        -(chosen * reward).mean(),  # of a choice
        scores.gather(1, labels[:, None]).mean(),  # values of actions
        -scores.log_softmax(0)[EVERY, labels].mean(),  # along the rows
        -scores.log_softmax(1)[EVERY.flip(0), labels].mean(),
        (scores.logsumexp(1) - (2 * scores).gather(1, labels[:, None])[:, 0]).mean(),
        (F.softplus(score) - score * (0.5 * answer)).mean(),
        (F.softplus(scores[:, 1]) - score * answer).mean(),
        (F.softplus(score) - score * (answer + 0.1)).mean(),
        F.cross_entropy(scores, labels),
        scores.square().mean(),
    ):
        assert picked(loss) is None


def train(run_dir, loss_of, *, watch=True, rules=("class_imbalance",)):
    torch.manual_seed(3)
    model = nn.Linear(6, CLASSES)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watcher = None
    if watch:
        watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=list(rules))
    losses = []
    for step in range(12):
        x, labels = torch.randn(ROWS, 6), torch.full((ROWS,), step % CLASSES)
        loss = loss_of(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if watcher is not None:
        watcher.detach()
    return fingerprint(model, losses)


@pytest.mark.parametrize("way", ["difference", "log_softmax"])
def test_classes_are_counted_and_the_training_is_what_it_was(run_dir, way):
    plain = train(None, WAYS[way], watch=False)
    assert train(run_dir, WAYS[way]) == plain
    run = td.Run(run_dir)
    assert "classes/log_softmax" in run.names()


def test_classes_of_a_loss_function_are_counted_once(run_dir):
    train(run_dir, F.cross_entropy)
    names = [name for name in td.Run(run_dir).names() if name.startswith("classes/")]
    assert names == ["classes/cross_entropy"]


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.series, self.table = nn.Linear(12, 4), nn.Linear(3, 4)
        self.last = nn.Linear(8, 1)

    def forward(self, batch):
        joined = [self.series(batch["series"].flatten(1)), self.table(batch["table"])]
        return self.last(torch.cat(joined, 1))[:, 0]


def test_labels_are_compared_with_the_table_behind_series(run_dir):
    torch.manual_seed(0)
    model = TwoInputs()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rules = ["target_leak"]
    watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=rules)
    for _ in range(4):
        table = torch.randn(40, 3)
        died = (table[:, 1] > 0.3).float()
        batch = {"series": torch.randn(40, 2, 6), "table": table, "died": died}
        score = model(batch)
        loss = (F.softplus(score) - score * died).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    watcher.detach()
    run = td.Run(run_dir)
    assert run.scalars("loop/label_compared_with")[1].tolist() == [1] * 4
    assert run.scalars("loop/label_beyond_column")[1].tolist() == [1] * 4
    assert np.all(run.scalars("loop/label_beyond_columns")[1] == 1)
