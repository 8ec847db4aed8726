"""What is told of batches that are chosen anew at each step, and are the same rows each time."""

from __future__ import annotations

import gc
from itertools import islice

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
STEPS, ROWS, ALL = 260, 20, 400


def told(run_dir, batch, evaluated=None) -> list[float]:
    """`batch(step)` gives the training's rows."""
    gc.collect()  # other tests' tensors are larger ones, too
    torch.manual_seed(3)
    model = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    others = torch.randn(40, 6) if evaluated is None else evaluated
    watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["repeated_batch"])
    for step in range(STEPS):
        x = batch(step)
        optimizer.zero_grad()
        F.mse_loss(model(x), torch.zeros(len(x), 1)).backward()
        optimizer.step()
        if step % 20 == 19:
            with torch.no_grad():
                model(others)
    watcher.detach()
    run = td.Run(run_dir)
    name = "loop/input_chosen_anew_of"
    return run.scalars(name).values.tolist() if run.names(f"^{name}$") else []


def data() -> torch.Tensor:
    return torch.randn(ALL, 6, generator=torch.Generator().manual_seed(5))


def drawn() -> torch.Tensor:
    return torch.randperm(ALL, generator=torch.Generator().manual_seed(7))[:ROWS]


def test_rows_that_are_drawn_anew_by_the_same_seed_are_told(tmp_path):
    x = data()
    assert told(tmp_path, lambda _: x[drawn()])[-1] == ALL / ROWS


def test_row_numbers_in_a_variable_that_is_bound_anew_are_told(tmp_path):
    x = data()
    known = {}

    def batch(_):
        known["rows"] = drawn()
        return x[known["rows"]]

    assert told(tmp_path, batch)[-1] == ALL / ROWS


def test_the_front_of_a_list_of_rows_is_told(tmp_path):
    rows = list(zip(data(), torch.zeros(ALL), strict=True))
    batch = told(tmp_path, lambda _: torch.stack([x for x, _ in islice(rows, ROWS)]))
    assert batch[-1] == ALL / ROWS


def test_nothing_is_told_of_a_choice_that_is_kept(tmp_path):
    x, order, copy, numbers = data(), torch.randperm(ALL), data()[drawn()], drawn().tolist()
    assert told(tmp_path / "list", lambda _: x[numbers]) == []
    assert told(tmp_path / "list made a tensor", lambda _: x[torch.tensor(numbers)]) == []
    assert told(tmp_path / "order", lambda _: x[order[:ROWS]]) == []
    numbers.clear()
    assert told(tmp_path / "copy", lambda _: copy.clone()) == []
    assert told(tmp_path / "copy, in another order", lambda _: copy.flip(0)) == []


def test_nothing_is_told_of_an_array_in_a_dictionary(tmp_path):
    x, splits = data(), {"few": drawn().numpy()}
    assert told(tmp_path, lambda _: x[splits["few"]]) == []


def test_nothing_is_told_of_a_copy_in_an_array(tmp_path):
    x, copy = data(), data()[drawn()].numpy()
    assert told(tmp_path, lambda _: torch.tensor(copy)) == []
    assert len(x) == ALL


def test_nothing_is_told_of_an_array_in_an_object(tmp_path):
    class Pool:
        def __init__(self):
            self.x, self.few = data(), np.random.default_rng(3).permutation(ALL)[:ROWS]

        def batch(self, _):
            return self.x[torch.tensor(self.few)]

    assert told(tmp_path, Pool().batch) == []


def test_nothing_is_told_of_a_group_of_the_rows(tmp_path):
    x, group = data(), torch.arange(ALL) // ROWS
    assert told(tmp_path / "sorted", lambda _: x[group == 0]) == []
    mixed = group[torch.randperm(ALL)]
    assert told(tmp_path / "mixed", lambda _: x[mixed == 0]) == []


def test_nothing_is_told_of_a_list_of_few_rows(tmp_path):
    rows = list(data())
    few = rows[:ROWS]
    assert told(tmp_path, lambda _: torch.stack(few)) == []


def test_nothing_is_told_of_pairs_whose_sides_are_kept(tmp_path):
    x, order = data(), torch.randperm(ALL)
    one, other = order[:10].clone(), order[10:20].clone()
    del order
    assert told(tmp_path, lambda _: torch.cat([x[one], x[other]])) == []


def test_rows_that_are_evaluated_are_no_more_data(tmp_path):
    x = data()
    assert set(told(tmp_path, lambda _: x[drawn()], evaluated=x)) == {0}


def test_nothing_is_told_without_an_evaluation_of_other_rows(tmp_path):
    x = data()
    assert told(tmp_path, lambda _: x[drawn()], evaluated=x[drawn()]) == []


def test_nothing_is_told_of_all_rows_or_of_others_each_time(tmp_path):
    x = data()
    assert told(tmp_path / "all", lambda _: x.clone()) == []
    assert told(tmp_path / "others", lambda _: x[torch.randperm(ALL)[:ROWS]]) == []
