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
from traindbg.hooks.torch.data import neighbours
from traindbg.hooks.torch.data.neighbours import Neighbours, compared


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


def test_of_the_same_rows_those_with_the_same_label_are_counted():
    generator = torch.Generator().manual_seed(5)
    rows, labels = torch.randn(60, 5, generator=generator), torch.randn(60, generator=generator)
    rows[40:50], labels[40:47] = rows[:10], labels[:7]
    told = compared(rows, labels, False)
    assert (int(told.neighbours_same), int(told.neighbours_same_labels)) == (10, 7)


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


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_under_autocast_a_row_that_came_again_is_no_neighbour(run_dir, dtype):
    torch.manual_seed(5)
    x, y = torch.randn(200, 64), torch.randint(0, 10, (200,))
    picks = [torch.randint(0, 200, (64,)) for _ in range(12)]
    with torch.autocast("cpu", dtype=dtype):
        run = train(run_dir, [(x[i], y[i]) for i in picks])
    assert share(run) > 0.85  # of the labels of others, which say nothing


def test_large_images_in_any_layout(run_dir):
    x, y = torch.randn(512, 3, 24, 24), torch.randint(0, 10, (512,))
    x += 3 * y[:, None, None, None]
    shares = []
    for layout in (torch.contiguous_format, torch.channels_last):
        images = x.contiguous(memory_format=layout)
        batches = [(images[i : i + 64], y[i : i + 64]) for i in range(0, 512, 64)]
        model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 24 * 24, 10))
        shares.append(share(train(run_dir / str(layout), batches, model)))
    assert shares[0] == shares[1] < 0.5


class Sparse(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(64, 10) / 8)

    def forward(self, x):
        return torch.sparse.mm(x, self.weight)


def test_sparse_inputs_cost_no_loss_and_no_word(run_dir, capsys):
    batches = [
        ((torch.rand(32, 64) < 0.05).float().to_sparse(), torch.randint(0, 10, (32,)))
        for _ in range(24)
    ]
    run = train(run_dir, batches, Sparse())
    assert told(run, "rows") == []
    assert len(run.scalars("loss/cross_entropy").steps) == 24
    assert "not recorded" not in capsys.readouterr().err


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(64, 1)

    def forward(self, x):
        return self.line(x)


def test_nothing_is_told_where_labels_are_of_two_passes(run_dir):
    torch.manual_seed(6)
    model, one, other = Siamese(), torch.randn(768, 64), torch.randn(768, 64)
    labels = (one[:, :1] > other[:, :1]).float()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rules = ["low_capacity", "loss_not_decreasing"]
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=rules):
        for i in range(0, 768, 64):
            optimizer.zero_grad()
            scores = model(one[i : i + 64]) - model(other[i : i + 64])
            F.binary_cross_entropy_with_logits(scores, labels[i : i + 64]).backward()
            optimizer.step()
    assert told(td.Run(run_dir), "rows") == []


def test_a_look_that_fails_is_the_last_one(monkeypatch):
    def fails(*_):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(neighbours, "compared", fails)
    looks = Neighbours()
    rows, labels = torch.randn(512, 4), torch.randint(0, 2, (512,))
    looks.given(0, rows)
    with pytest.raises(RuntimeError, match="out of memory"):
        looks.labelled("cross_entropy", labels)
    looks.given(0, rows)
    assert looks.labelled("cross_entropy", labels) is None


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
