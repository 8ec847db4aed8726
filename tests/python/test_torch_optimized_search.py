"""What optimizers train where no module holds it: when it is found, and what is followed then."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from traindbg.hooks.torch.base.leaves import Optimized, are_models_beside, names_of
from traindbg.hooks.torch.steps import patches
from traindbg.hooks.torch.steps.optimized_search import OptimizedSearch
from traindbg.hooks.torch.steps.pass_search import PassListener

Found = list[list[torch.optim.Optimizer]]


@pytest.fixture
def found() -> Found:
    return []


@pytest.fixture
def search(found: Found) -> Iterator[OptimizedSearch]:
    patches.acquire()
    search = OptimizedSearch(PassListener(), found.append)
    yield search
    search.end()
    assert patches.state.listener is None
    patches.release()


def weights(*sizes: int) -> torch.Tensor:
    return torch.ones(*sizes, requires_grad=True)


def test_a_pass_that_leads_to_what_is_trained_tells(search: OptimizedSearch, found: Found) -> None:
    weight = weights(3)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    search.add(optimizer)
    weights(2).sum().backward()
    assert found == []
    (2 * weight).sum().backward()
    assert found == [[optimizer]]


def test_so_does_autograd_grad(search: OptimizedSearch, found: Found) -> None:
    weight = weights(3)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    search.add(optimizer)
    loss = (weight * weight).sum()
    torch.autograd.grad(loss, [weight], create_graph=True)
    assert found == [[optimizer]]


def test_all_whose_models_are_unknown_are_told(search: OptimizedSearch, found: Found) -> None:
    one, other = weights(3), weights(4)
    optimizers = [torch.optim.SGD([weight], lr=0.1) for weight in (one, other)]
    for optimizer in optimizers:
        search.add(optimizer)
    one.sum().backward()
    assert len(found) == 1
    assert set(found[0]) == set(optimizers)


@pytest.mark.parametrize(
    "trained",
    [torch.ones((), requires_grad=True), torch.ones(3, dtype=torch.long)],
    ids=["a multiplier", "whole numbers"],
)
def test_these_are_not_looked_for(
    search: OptimizedSearch, found: Found, trained: torch.Tensor
) -> None:
    optimizer = torch.optim.SGD([weights(1)], lr=0.1)
    optimizer.param_groups[0]["params"] = [trained]
    search.add(optimizer)
    assert patches.state.listener is None
    weights(1).sum().backward()
    assert found == []


def test_an_optimizer_that_is_gone_is_not_held(search: OptimizedSearch, found: Found) -> None:
    weight = weights(3)
    search.add(torch.optim.SGD([weight], lr=0.1))
    gc.collect()
    weight.sum().backward()
    assert found == []


def optimized(*tensors: torch.Tensor) -> tuple[torch.optim.Optimizer, Optimized]:
    optimizer = torch.optim.SGD(list(tensors), lr=0.1)
    return optimizer, Optimized([optimizer], names_of)


def test_names_are_those_of_what_holds_the_tensors() -> None:
    held = {"mean": weights(3), "width": weights(3)}
    _, model = optimized(*held.values())
    assert [name for name, _ in model.named_parameters()] == ["mean", "width"]
    assert not model.has_changed()


def test_a_tensor_has_the_name_of_the_one_whose_place_it_took() -> None:
    held = {"mean": weights(3), "width": weights(3)}
    optimizer, model = optimized(*held.values())
    before = weakref.ref(held["width"])
    wider = held["width"] = optimizer.param_groups[0]["params"][1] = weights(5)
    assert before() is None
    assert [name for name, _ in model.named_parameters()] == ["mean"]
    assert model.has_changed()
    assert not model.has_changed()
    assert dict(model.named_parameters()) == {"mean": held["mean"], "width": wider}


def test_a_tensor_that_has_the_id_of_one_that_is_gone_is_another() -> None:
    optimizer, model = optimized(weights(3), weights(4))
    parameters = optimizer.param_groups[0]["params"]
    for _ in range(50):  # memory that was just freed is mostly given again
        parameters[0] = None
        parameters[0] = weights(3)
        assert model.has_changed()
        assert next(tensor for _, tensor in model.named_parameters()) is parameters[0]


def test_groups_that_are_added_leave_the_names_of_those_before() -> None:
    held = {"mean": weights(3)}
    optimizer, model = optimized(*held.values())
    more = {"mean": weights(4), "width": weights(5)}
    optimizer.add_param_group({"params": list(more.values())})
    assert model.has_changed()
    assert [name for name, _ in model.named_parameters()] == ["mean", "mean#2", "width"]
    assert model.named_parameters().__next__()[1] is held["mean"]


def test_what_several_optimizers_share_is_there_once() -> None:
    shared = weights(3)
    optimizers = [torch.optim.SGD([shared], lr=0.1) for _ in range(2)]
    assert len(list(Optimized(optimizers, names_of).named_parameters())) == 1


def test_models_with_parameters_are_beside_it() -> None:
    layer = nn.Linear(2, 2)
    assert are_models_beside()
    assert layer.weight.requires_grad


def test_an_optimizer_that_is_made_anew_goes_on_with_the_same_tensors() -> None:
    weight = weights(3)
    optimizer, model = optimized(weight)
    del optimizer
    gc.collect()
    assert not model.has_changed()
    assert [name for name, _ in model.named_parameters()] == ["tensor0"]
    another = torch.optim.SGD([weight], lr=0.1)
    model.add(another)
    assert not model.has_changed()
    another.add_param_group({"params": [weights(2)]})
    assert model.has_changed()


def test_tensors_are_looked_for_in_the_thread_that_began() -> None:
    weight = weights(3)
    optimizer, model = optimized(weight)
    optimizer.param_groups[0]["params"][0] = weights(5)
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(model.has_changed()))
    thread.start()
    thread.join()
    assert found == [False]
    assert model.has_changed()


def test_of_what_grows_at_each_step_many_are_learnt_anew_seldom() -> None:
    optimizer, model = optimized(weights(2))
    followed = 0
    for _ in range(1000):
        optimizer.add_param_group({"params": [weights(2)]})
        followed += model.has_changed()
    assert followed < 50


def test_huge_lists_are_not_gone_through_for_names() -> None:
    weight, held = weights(2), [None] * 10_000
    held[-1] = weight
    assert names_of([weight]) == ["tensor0"]
    assert names_of([{"0.weight": weight}["0.weight"]]) == ["tensor0"]
    table = {"0.weight": weight}
    assert names_of(list(table.values())) == ["0.weight"]
