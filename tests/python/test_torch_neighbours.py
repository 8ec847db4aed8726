"""Whether the inputs tell the labels: what is compared, and that nothing of it stays."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch_neighbours import compared


def by_hand(rows: torch.Tensor, labels: torch.Tensor, are_classes: bool) -> tuple[int, float]:
    """How many rows have a neighbour, and how far its label is; one pair at a time."""
    spread = rows.std(0, correction=0)
    x = (rows - rows.mean(0)) / torch.where(spread > 0, spread, 1.0)
    count, differ = 0, 0.0
    for i in range(len(x)):
        best, nearest = None, float("inf")
        for j in range(len(x)):
            distance = float((x[i] - x[j]).square().sum())
            if j != i and 1e-3 < distance < nearest:
                best, nearest = j, distance
        if best is None or (are_classes and (labels[i] < 0 or labels[best] < 0)):
            continue
        count += 1
        gap = float(labels[i]) - float(labels[best])
        differ += float(gap != 0) if are_classes else gap * gap
    return count, differ / count


@pytest.mark.parametrize("are_classes", [True, False])
def test_neighbours_are_those_that_a_search_pair_by_pair_finds(are_classes):
    generator = torch.Generator().manual_seed(4)
    rows = torch.randn(60, 5, generator=generator) * torch.tensor([1.0, 50.0, 0.01, 3.0, 0.0])
    rows[40:50] = rows[:10]  # the same rows again
    if are_classes:
        labels = torch.randint(0, 3, (60,), generator=generator)
        labels[::7] = -100
    else:
        labels = torch.randn(60, generator=generator)
    told = compared(rows, labels, are_classes)
    count, differ = by_hand(rows, labels, are_classes)
    assert int(told.neighbours_rows) == count
    assert float(told.neighbours_differ) == pytest.approx(differ, rel=1e-5)
    known = labels[labels >= 0] if are_classes else labels
    pairs = known[:, None] - known[None, :]
    any_two = (pairs != 0).float().mean() if are_classes else pairs.square().mean()
    assert float(told.neighbours_any_differ) == pytest.approx(float(any_two), rel=1e-5)


def test_what_is_not_finite_counts_as_nothing():
    rows = torch.randn(100, 4)
    rows[3, 1], rows[5, 2] = torch.nan, torch.inf
    told = compared(rows, torch.randint(0, 2, (100,)), True)
    assert int(told.neighbours_rows) == 100
    assert 0 <= float(told.neighbours_differ) <= 1


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    data = load_digits()
    return torch.tensor(data.data / 16).float(), torch.tensor(data.target)


def train(run_dir, batches, model=None, loss=F.cross_entropy) -> td.Run:
    torch.manual_seed(3)
    model = model or nn.Linear(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rules = ["low_capacity", "loss_not_decreasing"]
    watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=rules)
    for x, y in batches:
        optimizer.zero_grad()
        loss(model(*x) if isinstance(x, tuple) else model(x), y).backward()
        optimizer.step()
    watcher.detach()
    return td.Run(run_dir)


def told(run: td.Run, name: str) -> list[float]:
    full = f"loop/neighbours_{name}"
    return run.scalars(full).values.tolist() if run.names(f"^{full}$") else []


def share(run: td.Run) -> float:
    return told(run, "differ")[0] / told(run, "any_differ")[0]


def test_inputs_tell_their_labels_and_nothing_of_those_of_others(run_dir):
    x, y = digits()
    rows = range(0, 12 * 64, 64)
    run = train(run_dir / "own", [(x[i : i + 64], y[i : i + 64]) for i in rows])
    assert told(run, "rows") == [512]  # once, when there are enough
    assert share(run) < 0.2
    run = train(run_dir / "others", [(x[i : i + 64], y[i + 300 : i + 364]) for i in rows])
    assert share(run) > 0.85


def test_small_batches_are_enough_when_there_are_ten(run_dir):
    x, y = digits()
    run = train(run_dir, [(x[i : i + 12], y[i : i + 12]) for i in range(0, 144, 12)])
    assert told(run, "rows") == [120]


def test_one_large_batch_is_enough(run_dir):
    x, y = digits()
    run = train(run_dir, [(x, y)] * 3)
    assert 400 <= told(run, "rows")[0] <= 512
    assert share(run) < 0.2


def test_numbers_are_told_by_their_squared_differences(run_dir):
    x = torch.rand(600, 2)
    y = torch.sin(4 * x[:, :1])
    batches = [(x[i : i + 60], y[i : i + 60]) for i in range(0, 600, 60)]
    assert share(train(run_dir, batches, nn.Linear(2, 1), F.mse_loss)) < 0.1


class OfTwo(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(64, 10)

    def forward(self, one, other):
        return self.line(one + other)


def test_nothing_is_told_where_the_first_input_is_not_all_there_is(run_dir):
    x, y = digits()
    batches = [((x[i : i + 64], x[i : i + 64]), y[i : i + 64]) for i in range(0, 768, 64)]
    assert told(train(run_dir, batches, OfTwo()), "rows") == []


def test_nothing_is_told_of_numbers_of_words_or_of_labels_for_each_position(run_dir):
    words = nn.Sequential(nn.Embedding(50, 8), nn.Flatten(), nn.Linear(80, 10))
    batches = [(torch.randint(0, 50, (64, 10)), torch.randint(0, 10, (64,))) for _ in range(12)]
    assert told(train(run_dir / "words", batches, words), "rows") == []
    batches = [(torch.randn(64, 7, 64), torch.randint(0, 10, (64, 7))) for _ in range(12)]
    run = train(
        run_dir / "positions",
        batches,
        loss=lambda out, y: F.cross_entropy(out.flatten(0, 1), y.flatten()),
    )
    assert told(run, "rows") == []


def test_no_batch_is_kept_and_no_random_number_drawn(run_dir):
    x, y = digits()
    state = torch.get_rng_state()
    batches = [(x[i : i + 32].clone(), y[i : i + 32]) for i in range(0, 32 * 20, 32)]
    model, refs = nn.Linear(64, 10), [weakref.ref(inputs) for inputs, _ in batches]
    torch.set_rng_state(state)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["low_capacity"]):
        for inputs, labels in batches:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
        assert torch.equal(torch.get_rng_state(), state)
        del inputs, labels, batches
        gc.collect()
        assert sum(ref() is not None for ref in refs) <= 1  # the last one
    assert told(td.Run(run_dir), "rows") != []
