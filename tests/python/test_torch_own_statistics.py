"""Whether what is evaluated was standardised by its own mean and spread."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td

FACTS = ("own_columns", "own_columns_of", "own_columns_values")


def standardised(x, dims=0, correction=1):
    return (x - x.mean(dims, keepdim=True)) / x.std(dims, keepdim=True, correction=correction)


def told(run_dir, x, *, batch=None, model=None, passes=3, steps=3, before=False, make=None):
    """What is told of evaluations of `x`: of each, columns, those in all, and values.

    `make(n)` gives a batch of the training of n rows.
    """
    torch.manual_seed(0)
    make = make or (lambda n: torch.randn(n, *x.shape[1:]) * 2 + 1)
    model = model or nn.Sequential(nn.Flatten(), nn.Linear(x[0].numel(), 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["train_val_mismatch"]):
        for _ in range(passes):
            for _ in range(0 if before else steps):
                optimizer.zero_grad()
                model(make(64)).square().mean().backward()
                optimizer.step()
            with torch.no_grad():
                for part in x.split(batch or len(x)):
                    model(part).argmax(1)
        for _ in range(steps):
            optimizer.zero_grad()
            model(make(64)).square().mean().backward()
            optimizer.step()
    run = td.Run(run_dir)
    if f"loop/{FACTS[0]}" not in run.names():
        return []
    columns = [run[f"loop/{fact}"].series("value")[1] for fact in FACTS]
    return [tuple(int(v) for v in each) for each in zip(*columns, strict=True)]


G = torch.Generator().manual_seed(7)
TABLE = torch.randn(200, 5, generator=G) * torch.tensor([1.0, 5.0, 0.1, 40.0, 2.0]) + 3


@pytest.mark.parametrize("correction", [0, 1])
@pytest.mark.parametrize("batch", [None, 64])
def test_a_table_that_is_standardised_by_itself(correction, batch, tmp_path):
    x = standardised(TABLE, correction=correction)
    assert told(tmp_path / "run", x, batch=batch) == [(5, 5, 200)] * 3


def test_a_few_evaluations_are_looked_at(tmp_path):
    assert len(told(tmp_path / "run", standardised(TABLE), passes=8)) == 3


def test_batches_that_are_standardised_each(tmp_path):
    """By hand, or because each is of another place."""
    x = torch.cat([standardised(part, correction=0) for part in TABLE.split(100)])
    assert [columns for columns, *_ in told(tmp_path / "run", x, batch=100)] == [0] * 3


def test_batches_of_the_training_that_are_standardised_each(tmp_path):
    def make(n):
        return standardised(torch.randn(n, 5))

    x = standardised(TABLE)
    assert [columns for columns, *_ in told(tmp_path / "run", x, make=make)] == [0] * 3


def test_training_with_all_rows_at_once(tmp_path):
    """Its rows are standardised by themselves, as they should be."""
    everything = standardised(torch.randn(100, 5))
    x = standardised(TABLE)
    assert told(tmp_path / "run", x, make=lambda n: everything) == [(5, 5, 200)] * 3


def test_as_many_rows_as_a_batch_of_the_training(tmp_path):
    """They may be the same ones, of which other values are left out each time."""
    x = standardised(TABLE[:64])
    assert told(tmp_path / "run", x, make=lambda n: x * (torch.rand_like(x) > 0.5)) == []


def test_before_the_training(tmp_path):
    assert told(tmp_path / "run", standardised(TABLE), before=True) == []


def test_what_is_too_large_to_know_its_rows(tmp_path):
    """It may be all of the training's data, of which few rows are remembered."""
    x = standardised(torch.randn(20000, 5, generator=G))
    assert told(tmp_path / "run", x) == []


def test_some_columns(tmp_path):
    x = torch.cat([standardised(TABLE), TABLE[:, :2] > 3, torch.ones(200, 1)], 1)
    assert told(tmp_path / "run", x) == [(5, 7, 200)] * 3


@pytest.mark.parametrize(
    "x",
    [
        TABLE,
        (TABLE - TABLE[:150].mean(0)) / TABLE[:150].std(0),  # by another part
        torch.tensor([-1.0, 1.0]).repeat(100, 3),  # two values that come equally often
        standardised(TABLE)[:31],
        standardised(TABLE, dims=1),  # each row by itself
    ],
    ids=["raw", "another part", "signs", "few", "rows"],
)
def test_other_tables(x, tmp_path):
    assert all(columns == 0 for columns, _, _ in told(tmp_path / "run", x))


def test_images_by_their_channels(tmp_path):
    x = torch.rand(40, 3, 6, 6, generator=G)
    x = standardised(x, (0, 2, 3))
    assert told(tmp_path / "run", x) == [(3, 3, 40 * 36)] * 3


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("batch", [1, 4, None])
def test_samples_that_are_standardised_each(kind, batch, tmp_path):
    """As spectra and signals often are: nothing was fitted."""
    x = standardised(1000 + torch.rand(60, 2, 5, 50, generator=G), (2, 3), correction=0)
    found = told(tmp_path / "run", x.to(kind).float(), batch=batch)
    assert found
    assert all(columns == 0 for columns, _, _ in found)


def test_of_series_it_is_not_known_what_columns_are(tmp_path):
    x = standardised(torch.rand(40, 9, 4, generator=G), (0, 1))
    assert told(tmp_path / "run", x) == []


def test_rows_of_the_training(tmp_path):
    """Such as a graph all of whose nodes are given to the model, in training, too."""
    model = nn.Linear(5, 2)
    x = standardised(TABLE)
    with td.watch(model, run_dir=tmp_path / "run", supervise=False, rules=["train_val_mismatch"]):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(6):
            F.cross_entropy(model(x)[:50], (x[:50, 0] > 0).long()).backward()
            optimizer.step()
            with torch.no_grad():
                F.cross_entropy(model(x)[50:], (x[50:, 0] > 0).long())
    assert "loop/own_columns" not in td.Run(tmp_path / "run").names()


def test_integers_are_no_columns(tmp_path):
    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(9, 4), nn.Linear(4, 2)

        def forward(self, x):
            return self.head(self.embed(x.long()).mean(1))

    model = Words()
    x = torch.randint(0, 9, (64, 5), generator=G)
    with td.watch(model, run_dir=tmp_path / "run", supervise=False, rules=["train_val_mismatch"]):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(6):
            F.cross_entropy(model(x), x[:, 0] % 2).backward()
            optimizer.step()
            with torch.no_grad():
                model(x)
    assert "loop/own_columns" not in td.Run(tmp_path / "run").names()
