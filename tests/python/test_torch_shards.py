"""What keeps the copies of a model alike on all ranks is found, and looked for once."""

from __future__ import annotations

import gc

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore

from traindbg.hooks.torch.base.shards import Wrappers

FOUND = {"data_parallel": "DistributedDataParallel"}


@pytest.fixture(autouse=True)
def one_of_four():
    """A process group that answers at once, as if there were three other ranks."""
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    yield
    torch.distributed.destroy_process_group()


@pytest.fixture
def searches(monkeypatch):
    """Grows by one whenever all objects of the process are gone through."""
    made, original = [], gc.get_objects
    monkeypatch.setattr(gc, "get_objects", lambda: made.append(1) or original())
    return made


def test_one_that_was_made_before_is_found_by_the_model_inside_of_it(searches):
    model, other = nn.Linear(2, 2), nn.Linear(2, 2)
    wrapper = DistributedDataParallel(model)
    wrappers = Wrappers()
    assert wrappers.of(model) == wrappers.of(model) == FOUND
    assert len(searches) == 1
    assert wrappers.of(wrapper) == FOUND
    assert wrappers.of(other) == {}


def test_one_that_is_made_later_is_heard_of(searches):
    model, wrappers = nn.Linear(2, 2), Wrappers()
    assert wrappers.of(model) == wrappers.of(model) == {}
    wrapper = DistributedDataParallel(model)
    wrappers.made(wrapper)
    assert wrappers.of(model) == FOUND
    assert len(searches) == 1
    del wrapper
    gc.collect()
    assert wrappers.of(model) == {}


def test_one_that_averages_in_a_way_of_its_own_does_not_count():
    model = nn.Linear(2, 2)
    wrapper = DistributedDataParallel(model)
    wrapper.register_comm_hook(None, lambda _, bucket: bucket.buffer())
    assert Wrappers().of(model) == {}


def test_one_that_was_refused_does_no_harm():
    frozen = nn.Linear(2, 2).requires_grad_(False)
    with pytest.raises(RuntimeError, match="doesn't have any parameter") as refused:
        DistributedDataParallel(frozen)  # the traceback holds what was begun
    assert Wrappers().of(nn.Linear(2, 2)) == {}
    del refused
