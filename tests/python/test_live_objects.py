"""What of the process's objects is of a type: the walk that hooks make once or twice a training."""

from __future__ import annotations

import gc

import pytest
import torch

from traindbg import _autostart, _core


class Kind:
    pass


class Inner(Kind):
    pass


class Pretender:
    """As lazy proxies of other packages do, which must not be woken up."""

    def __getattribute__(self, name: str) -> object:
        raise AssertionError(f"asked for {name}")


def ids(things: list[object]) -> set[int]:
    return set(map(id, things))


def test_instances_of_a_type_and_of_its_subclasses() -> None:
    kept = [Kind(), Inner(), Kind()]
    assert ids(_core.instances_of(Kind)) == ids(kept)
    assert ids(_core.instances_of((Inner,))) == {id(kept[1])}
    assert ids(_core.instances_of((Inner, Kind))) == ids(kept)


def test_exact_leaves_subclasses_out() -> None:
    kept = [Kind(), Inner()]
    assert ids(_core.instances_of(Kind, exact=True)) == {id(kept[0])}
    assert ids(_core.instances_of((Kind, Inner), exact=True)) == ids(kept)


def test_no_object_is_asked_for_anything() -> None:
    kept = [Pretender(), Kind()]
    assert ids(_core.instances_of(Kind)) == {id(kept[1])}
    assert len(_core.instances_of(Pretender)) == 1


def test_what_is_gone_is_not_found() -> None:
    kept = Kind()
    assert len(_core.instances_of(Kind)) == 1
    del kept
    gc.collect()
    assert _core.instances_of(Kind) == []


@pytest.mark.parametrize("kinds", [3, (Kind, 3), [Kind], None])
def test_something_else_than_types_is_an_error(kinds: object) -> None:
    with pytest.raises(TypeError):
        _core.instances_of(kinds)


def test_of_two_modules_that_hold_as_much_the_first_one_is_found() -> None:
    older = torch.nn.Linear(2, 2)
    gc.collect()  # which the collector names after younger ones
    younger = torch.nn.Linear(2, 2)
    both = [list(older.parameters()), list(younger.parameters())]
    assert _autostart.find_roots([*both[0], *both[1]]) == [older, younger]
    assert _autostart.find_roots([*both[1], *both[0]]) == [younger, older]
    larger = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    assert _autostart.find_roots([*both[0], *larger.parameters()]) == [larger, older]
