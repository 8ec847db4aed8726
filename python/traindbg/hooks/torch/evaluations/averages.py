"""Averages of the weights that are kept in 16 bits, and no longer follow.

    average.mul_(0.999).add_(weight.to(torch.bfloat16), alpha=0.001)

A step of such an average is less than half of its last bit, unless it is far from the weight: it is
rounded away, and the average stays where it was. So it is with a target network that follows by a
small factor. PyTorch has no place where averages are kept; they are looked for once, among all
tensors of 16 bits, by the shape and the direction of a weight.

Told of the elements that were far from their weights at the look before, and still are: how many of
them did not change, while others did. A copy that is made anew now and then takes all of them along
that were far when it is made.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn

from traindbg import _core
from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.parameters import has_memory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from traindbg.hooks.torch.base.watched import WatchedModels

_APART = 25  # steps, at least: from the beginning to the search, and from look to look
_LOOKS = 3
_MOST = 16  # averages
_MOST_SEARCHED = 512  # tensors, and weights that these are compared with
_SAMPLED = 256  # elements of each of them
_PART = 1 << 16  # elements of an average that are looked at
_LEAST = 64  # elements of a tensor
_ALIKE = 0.5  # the cosine of an average and its weight is more
_FAR = 0.03  # of its size: an element is so far from its weight that its average must move
_PLAIN = (torch.Tensor, nn.Parameter)
_SHORT = (torch.bfloat16, torch.float16)

_Kind = tuple[torch.Size, torch.device]


class Found(NamedTuple):
    """Of all averages."""

    lost: float  # share of what is far from its weights and stayed, of what is far
    place: str  # the weight of the one that stayed most
    steps: int  # since the look before


class _Average(NamedTuple):
    tensor: weakref.ref[torch.Tensor]
    weight: weakref.ref[torch.Tensor]
    name: str
    before: torch.Tensor  # the first elements, when they were looked at last
    was_far: torch.Tensor  # which of them were far from the weight then


def _first(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().reshape(-1)[:_PART] if tensor.is_contiguous() else tensor[:0]


def _kind(tensor: torch.Tensor) -> _Kind:
    return tensor.shape, tensor.device


def _is_candidate(thing: Any, kinds: set[_Kind]) -> bool:
    if type(thing) not in _PLAIN or thing.dtype not in _SHORT or thing.layout != torch.strided:
        return False
    if _kind(thing) not in kinds or thing.grad_fn is not None or not thing.is_contiguous():
        return False
    return has_memory(thing)


def _sampled(tensor: torch.Tensor) -> torch.Tensor:
    """Elements from all over, of direction 1 together."""
    values = tensor.detach().reshape(-1)
    every = values.numel() // _SAMPLED | 1  # an odd number does not stay in one column
    return nn.functional.normalize(values[::every][:_SAMPLED].float().nan_to_num(), dim=0)


def _is_far(values: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return (values.float() - weight.float()).abs() > _FAR * values.float().abs()


class Averages:
    """One per recording. Keeps the first elements of the averages that it found."""

    def __init__(self, watched: WatchedModels) -> None:
        self._watched = watched
        self._averages: list[_Average] | None = None
        self._looks = 0
        self._last: int | None = None  # the step of the last look, or the first one

    def forget(self) -> None:
        """What was found is of another training."""
        self._averages, self._looks, self._last = None, 0, None

    def look(self, step: int, optimizers: Iterable[torch.optim.Optimizer]) -> Found | None:
        """At a step that is due. None: there is no average, or none to compare it with."""
        if self._averages == []:
            return None
        last = self._last = step if self._last is None else self._last
        weights = self._weights()
        if step < last + _APART or any(capturing_graph(weight) for _, weight in weights[:1]):
            return None
        self._last = step
        with own_operations():
            if self._averages is None:
                self._averages = _search(weights, optimizers)
                return None
            self._looks += 1
            found = self._compare(self._averages, step - last)
        if self._looks >= _LOOKS:
            self._averages = []
        return found

    def _weights(self) -> list[tuple[str, torch.Tensor]]:
        return [
            (prefix + name, weight)
            for model, prefix in self._watched.models()
            for name, weight in model.named_parameters()
            if type(weight) in _PLAIN and weight.dim() > 1 and weight.numel() >= _LEAST
        ]

    @staticmethod
    def _compare(averages: list[_Average], steps: int) -> Found | None:
        far = stayed = 0
        worst, place = -1.0, ""
        again: list[_Average] = []
        for known in averages:
            tensor, weight = known.tensor(), known.weight()
            if tensor is None or weight is None or not _is_candidate(tensor, {_kind(weight)}):
                continue
            now, other = _first(tensor), _first(weight)
            if other.numel() != now.numel():
                continue
            has_stayed, is_far = now == known.before, _is_far(now, other)
            again.append(known._replace(before=now.clone(), was_far=is_far))
            is_far = is_far & known.was_far
            sums = [has_stayed.sum(), is_far.sum(), (is_far & has_stayed).sum()]
            alike, number, lost = torch.stack(sums).tolist()
            if alike == now.numel():
                continue  # it is no average, or has yet to be one
            far, stayed = far + number, stayed + lost
            if number > 0 and lost / number > worst:
                worst, place = lost / number, known.name
        averages[:] = again
        return Found(stayed / far, place, steps) if far > 0 else None


def _search(
    weights: list[tuple[str, torch.Tensor]], optimizers: Iterable[torch.optim.Optimizer]
) -> list[_Average]:
    """Tensors of 16 bits that have the shape and the direction of a weight."""
    if not weights:
        return []
    others = {id(weight) for _, weight in weights}
    others.update(id(weight.grad) for _, weight in weights if weight.grad is not None)
    for optimizer in optimizers:
        for state in optimizer.state.values():
            if isinstance(state, dict):
                others.update(map(id, state.values()))
    kinds = {_kind(weight) for _, weight in weights}
    candidates: dict[_Kind, list[torch.Tensor]] = {}
    searched = 0
    for thing in _core.instances_of(_PLAIN, exact=True):
        if id(thing) not in others and _is_candidate(thing, kinds):
            candidates.setdefault(_kind(thing), []).append(thing)
            searched += 1
            if searched >= _MOST_SEARCHED:
                break
    compared = [one for one in weights if _kind(one[1]) in candidates and one[1].is_contiguous()]
    found: list[_Average] = []
    for kind, things in candidates.items():
        alike = [one for one in compared[:_MOST_SEARCHED] if _kind(one[1]) == kind]
        if alike:
            found += _nearest(things, alike)
    return found[:_MOST]


def _nearest(
    things: list[torch.Tensor], weights: list[tuple[str, torch.Tensor]]
) -> Iterator[_Average]:
    """Those that have the direction of a weight."""
    ours = torch.stack([_sampled(thing) for thing in things])
    theirs = torch.stack([_sampled(weight) for _, weight in weights])
    cosine, number = (ours @ theirs.T).max(dim=1)
    for thing, best, index in zip(things, *torch.stack([cosine, number]).tolist(), strict=True):
        if best > _ALIKE:
            name, weight = weights[int(index)]
            values = _first(thing)
            is_far = _is_far(values, _first(weight))
            yield _Average(weakref.ref(thing), weakref.ref(weight), name, values.clone(), is_far)
