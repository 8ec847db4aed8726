"""How many rows the columns of what an embedding is given ask for."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.data.fields import highest_of_columns

SIZES = [12, 9, 4, 5]


class Machine(nn.Module):
    def __init__(self):
        super().__init__()
        self.factors = nn.Embedding(sum(SIZES), 3)
        self.head = nn.Linear(3, 1)

    def forward(self, rows):
        return self.head(self.factors(rows).mean(1)).squeeze(1)


def train(run_dir, rows_of):
    torch.manual_seed(0)
    model = Machine()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False):
        for step in range(8):
            out = model(rows_of(step))
            optimizer.zero_grad()
            F.mse_loss(out, torch.zeros_like(out)).backward()
            optimizer.step()


def fields(step=0):
    return torch.stack([torch.randint(0, size, (200,)) for size in SIZES], 1)


def told(run_dir, fact):
    run = td.Run(run_dir)
    name = f"loop/{fact}/factors"
    return run.scalars(name).values.tolist() if name in run.names() else []


def test_the_greatest_number_of_each_column():
    assert highest_of_columns(torch.tensor([[0, 5], [3, 1]])).tolist() == [3, 5]
    for shape in ((8,), (8, 1), (1, 4), (8, 200), (8, 2, 2)):
        assert highest_of_columns(torch.zeros(shape, dtype=torch.long)) is None


def test_fields_that_share_rows_are_told(run_dir):
    train(run_dir, fields)
    assert told(run_dir, "fields")[-1] == 4
    assert told(run_dir, "fields_rows")[-1] == sum(SIZES)
    assert told(run_dir, "fields_widest")[-1] == 12
    assert told(run_dir, "fields_narrowest")[-1] == 4


def test_numbers_that_come_up_later_count(run_dir):
    train(run_dir, lambda step: fields().clamp(max=step))
    rows = told(run_dir, "fields_rows")
    assert rows == sorted(rows)
    assert rows[0] == 4
    assert rows[-1] == 8 + 8 + 4 + 5


@pytest.mark.parametrize("kind", ["offsets", "one column", "other widths"])
def test_what_are_no_such_fields(run_dir, kind):
    def rows_of(step):
        if kind == "offsets":
            return fields() + torch.tensor([0, *SIZES[:-1]]).cumsum(0)
        if kind == "one column":
            return fields()[:, :1]
        return fields()[:, : 2 + step % 2]

    train(run_dir, rows_of)
    found = told(run_dir, "fields")
    assert not found or found[-1] == 0
