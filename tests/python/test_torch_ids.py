"""What is known of an object by its id is forgotten with the object."""

from __future__ import annotations

import gc

import torch
from torch import nn

from traindbg.hooks.torch.base.ids import Identities, IdentityTable


def made_at(key: int, kept: list[nn.Parameter]) -> nn.Parameter:
    """A parameter that has the id of one that is gone. The rest goes to `kept`, to stay there."""
    for _ in range(10_000):
        made = nn.Parameter(torch.zeros(3))
        if id(made) == key:
            return made
        kept.append(made)
    raise AssertionError("no parameter was given that id again")


def test_ids_of_parameters_that_are_gone_mean_nothing() -> None:
    known = Identities()
    first, other = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
    known.remember([first, other, first])
    key = id(first)
    assert known == {key, id(other)}
    del first
    gc.collect()
    assert known == {id(other)}
    second = made_at(key, [])
    assert id(second) not in known
    known.remember([second])
    assert id(second) in known


def test_a_table_keeps_the_first_value_as_long_as_the_object_is_there() -> None:
    table: IdentityTable[int] = IdentityTable()
    module = nn.Linear(2, 2)
    assert table.first_of(module, 1) == 1
    assert table.first_of(module, 2) == 1
    del module
    gc.collect()
    assert not table
