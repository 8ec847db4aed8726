"""Rows that come several times within one pass over the data."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, RandomSampler, TensorDataset, WeightedRandomSampler

import traindbg as td
from traindbg.hooks.torch.data.passes import Pass
from traindbg.hooks.torch.data.rows import Rows


def seen(x, y=None, size=20, of=None, rows=None, first=0):
    """What is known after one pass over the rows in this order."""
    rows = Rows() if rows is None else rows
    of = Pass(1, len(x)) if of is None else of
    for step, i in enumerate(range(0, len(x), size), first):
        rows.trained(x[i : i + size], 1.0, of, step)
        if y is not None:
            rows.labelled(y[i : i + size], are_classes=True)
        rows.read()
    return rows.read_again()


def test_each_row_once_is_none_again():
    found = seen(torch.randn(100, 12))
    assert (found.pass_rows, found.pass_rows_of, found.pass_rows_again) == (100, 100, 0)


def test_copies_are_counted_and_named():
    torch.manual_seed(0)
    x = torch.randn(100, 12)
    x[[61, 75]] = x[3].clone()
    found = seen(x)
    assert found.pass_rows_again == 2
    assert found.pass_rows_half_again == 0
    assert (found.pass_row_before_step, found.pass_row_before) == (0, 3)
    assert (found.pass_row_again_step, found.pass_row_again) == (3, 1)


def test_copies_of_another_class_contradict():
    torch.manual_seed(0)
    x = torch.randn(100, 12).repeat_interleave(2, 0)
    order = torch.randperm(200)
    same = (torch.arange(100) % 4).repeat_interleave(2)
    assert seen(x[order], same[order]).pass_rows_contradicting == 0
    other = torch.arange(200) % 4
    found = seen(x[order], other[order])
    assert found.pass_rows_labelled == found.pass_rows_contradicting == found.pass_rows_again == 100
    assert found.pass_rows_by_chance == pytest.approx(0.75)


def test_numbers_that_are_no_classes_do_not_contradict():
    x = torch.randn(50, 12).repeat(2, 1)[torch.randperm(100)]
    rows = Rows()
    for i in range(0, 100, 20):
        rows.trained(x[i : i + 20], 1.0, Pass(1, 100), i)
        rows.labelled(torch.randint(4, (20,)))  # of a loss that takes amounts
        rows.read()
    assert rows.read_again().pass_rows_labelled == 0


@pytest.mark.parametrize("labels", [torch.arange(20), torch.full((20,), -100)])
def test_numbers_of_rows_and_of_nothing_are_no_classes(labels: torch.Tensor):
    x = torch.randn(50, 12).repeat(2, 1)[torch.randperm(100)]
    found = seen(x, labels.repeat(5))
    assert found.pass_rows_again == 50
    assert found.pass_rows_labelled == 0


def test_another_pass_begins_anew():
    x, rows = torch.randn(100, 12), Rows()
    for number in (1, 2, 3):
        x = x[torch.randperm(100)]
        found = seen(x, of=Pass(number, 100), rows=rows)
    assert found.pass_rows_again == 0


def test_batches_that_go_on_after_the_pass_are_not_of_it():
    x, rows = torch.randn(100, 12), Rows()
    for step in (0, 5, 10):  # as itertools.cycle gives what it kept
        found = seen(x[torch.randperm(100)], of=Pass(1, 100), rows=rows, first=step)
    assert found.pass_rows_again == 0


def test_a_batch_that_is_given_once_more_has_no_copies():
    x, rows = torch.randn(100, 12), Rows()
    for step in range(5):
        for _ in range(3):
            rows.trained(x[20 * step : 20 * step + 20], 1.0, Pass(1, 1000), step)
            rows.read()
    assert rows.read_again().pass_rows_again == 0


def test_rows_of_hardly_more_than_a_value_do_not_count():
    x = torch.zeros(100, 12)
    x[torch.arange(100), torch.randint(12, (100,))] = 1
    assert seen(x[torch.randperm(100)]).pass_rows_again == 0


def test_rows_that_are_alike_in_halves_are_told():
    torch.manual_seed(0)
    x = torch.randint(0, 2, (200, 12)).float()
    found = seen(x)
    assert found.pass_rows_half_again > found.pass_rows_again


def test_a_further_input_belongs_to_the_row():
    users, items = torch.randn(10, 12).repeat(10, 1), torch.randn(100, 4)
    rows = Rows()
    for step in range(5):
        part = slice(20 * step, 20 * step + 20)
        rows.trained(users[part], 1.0, Pass(1, 100), step)
        rows.further_input(items[part])
        rows.read()
    assert rows.read_again().pass_rows_again == 0


@pytest.mark.parametrize("what", ["shape", "called_again"])
def test_what_belongs_to_more_than_is_seen_is_not_judged(what: str):
    rows = Rows()
    for step in range(5):
        rows.trained(torch.ones(20, 1) * torch.randn(12), 1.0, Pass(1, 100), step)
        if step == 2 and what == "shape":
            rows.further_input(torch.randn(3, 4))
        elif step == 2:
            rows.called_again()
        rows.read()
    assert rows.read_again() is None


def test_what_is_remembered_is_bounded():
    found = seen(torch.randn(400 * 64, 12), size=64, of=Pass(1, 10**6))
    assert found.pass_rows == 16_384


def loader_of(kind: str, data: TensorDataset):
    if kind == "weights":
        return DataLoader(data, 16, sampler=WeightedRandomSampler(torch.ones(len(data)), len(data)))
    if kind == "replacement":
        return DataLoader(data, 16, sampler=RandomSampler(data, replacement=True))
    if kind == "longer":
        return DataLoader(data, 16, sampler=RandomSampler(data, num_samples=3 * len(data)))
    return DataLoader(data, 16, shuffle=kind == "shuffled")


@pytest.mark.parametrize(
    "kind", ["shuffled", "in_order", "weights", "replacement", "longer", "two", "augmented"]
)
def test_what_a_training_tells(run_dir, kind: str):
    torch.manual_seed(0)
    x, y = torch.randn(160, 8), torch.randint(0, 3, (160,))
    x[120:] = x[:40]
    loader = loader_of(kind, TensorDataset(x, y))
    if kind == "two":
        other = DataLoader(TensorDataset(x[:16], y[:16]), 16)
    model = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rules = ["train_val_overlap", "label_noise"]
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=rules):
        for _ in range(3):
            if kind == "two":
                next(iter(other))
            for given, labels in loader:
                inputs = given + torch.rand(len(given), 1) if kind == "augmented" else given
                optimizer.zero_grad()
                F.cross_entropy(model(inputs), labels).backward()
                optimizer.step()
    run = td.Run(run_dir)
    if kind in ("weights", "replacement", "longer", "two"):
        assert "loop/pass_rows_again" not in run
        return
    again = run.scalars("loop/pass_rows_again").values.tolist()
    assert run.scalars("loop/pass_rows").values.max() == 160
    assert set(run.scalars("loop/pass_rows_of").values) == {160}
    assert max(again) == (0 if kind == "augmented" else 40)
    assert again == sorted(again)
