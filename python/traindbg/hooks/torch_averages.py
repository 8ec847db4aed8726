"""Averages of the weights that are kept in 16 bits, and no longer follow.

    average.mul_(0.999).add_(weight.to(torch.bfloat16), alpha=0.001)

A step of such an average is less than half of its last bit, unless it is far from the weight: it is
rounded away, and the average stays where it was. So it is with a target network that follows by a
small factor. PyTorch has no place where averages are kept; they are looked for once, among all
tensors of 16 bits, by the shape and the direction of a weight.

Told where, between two looks, an average changed in some elements, and others that are far from the
weight did not. A copy that is made anew now and then is as it was, or as the weight is.
"""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from traindbg.hooks.torch_device import capturing_graph, own_operations
from traindbg.hooks.torch_parameters import has_memory

if TYPE_CHECKING:
    from collections.abc import Iterable

    from traindbg.hooks.torch_watched import WatchedModels

_FROM = 25  # the step that the search waits for
_LOOKS = 3
_MOST = 16  # tensors
_PART = 1 << 16  # elements of a tensor that are looked at
_LEAST = 64  # elements of a tensor
_ALIKE = 0.5  # the cosine of an average and its weight is more
_FAR = 0.03  # of its size: an element is so far from its weight that its average must move
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_SHORT = (torch.bfloat16, torch.float16)


class Found(NamedTuple):
    """Of all averages."""

    lost: float  # share of what is far from its weights and stayed, of what is far
    place: str  # the weight of the one that stayed most


class _Average(NamedTuple):
    tensor: weakref.ref[torch.Tensor]
    weight: weakref.ref[torch.Tensor]
    name: str
    before: torch.Tensor  # the first elements, when they were looked at last


def _first(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().reshape(-1)[:_PART] if tensor.is_contiguous() else tensor[:0]


def _is_candidate(thing: Any, shapes: set[torch.Size]) -> bool:
    if type(thing) not in _PLAIN or thing.dtype not in _SHORT or thing.layout != torch.strided:
        return False
    if thing.shape not in shapes or thing.grad_fn is not None or not thing.is_contiguous():
        return False
    return has_memory(thing)


class Averages:
    """One per recording. Keeps the first elements of the averages that it found."""

    def __init__(self, watched: WatchedModels) -> None:
        self._watched = watched
        self._averages: list[_Average] | None = None
        self._looks = 0

    def clear(self) -> None:
        """Of another training."""
        self._averages, self._looks = None, 0

    def look(self, step: int, optimizers: Iterable[torch.optim.Optimizer]) -> Found | None:
        """At a step that is due. None: there is no average, or none to compare it with."""
        if step < _FROM or self._looks >= _LOOKS or self._averages == []:
            return None
        with own_operations():
            if self._averages is None:
                self._averages = self._search(optimizers)
                return None
            self._looks += 1
            return self._compare(self._averages)

    def _search(self, optimizers: Iterable[torch.optim.Optimizer]) -> list[_Average]:
        weights = [
            (prefix + name, weight)
            for model, prefix in self._watched.models()
            for name, weight in model.named_parameters()
            if type(weight) in _PLAIN and weight.dim() > 1 and weight.numel() >= _LEAST
        ]
        others = {id(weight) for _, weight in weights}
        others.update(id(weight.grad) for _, weight in weights if weight.grad is not None)
        for optimizer in optimizers:
            for state in optimizer.state.values():
                if isinstance(state, dict):
                    others.update(map(id, state.values()))
        shapes = {weight.shape for _, weight in weights}
        found: list[_Average] = []
        tensors = [thing for thing in gc.get_objects() if type(thing) in _PLAIN]
        for thing in tensors:
            if id(thing) not in others and _is_candidate(thing, shapes):
                average = _nearest(thing, weights)
                if average is not None:
                    found.append(average)
                if len(found) >= _MOST:
                    break
        return found

    def _compare(self, averages: list[_Average]) -> Found | None:
        far = stayed = 0
        worst, place = -1.0, ""
        again: list[_Average] = []
        for known in averages:
            tensor, weight = known.tensor(), known.weight()
            if tensor is None or weight is None or not _is_candidate(tensor, {weight.shape}):
                continue
            if capturing_graph(tensor):
                return None
            now = _first(tensor)
            has_stayed = now == known.before
            again.append(known._replace(before=now.clone()))
            if bool(has_stayed.all()):
                continue  # it is no average, or has yet to be one
            is_far = (now.float() - _first(weight).float()).abs() > _FAR * now.float().abs()
            number, lost = int(is_far.sum()), int((is_far & has_stayed).sum())
            far, stayed = far + number, stayed + lost
            if number > 0 and lost / number > worst:
                worst, place = lost / number, known.name
        averages[:] = again
        return Found(stayed / far, place) if far > 0 else None


def _nearest(thing: torch.Tensor, weights: list[tuple[str, torch.Tensor]]) -> _Average | None:
    """The weight whose direction it has."""
    if capturing_graph(thing):
        return None
    values = _first(thing)
    best, found = _ALIKE, None
    for name, weight in weights:
        if weight.shape != thing.shape or weight.device != thing.device:
            continue
        other = _first(weight)
        if other.numel() != values.numel() or other.numel() == 0:
            continue
        cosine = float(torch.cosine_similarity(values.float(), other.float(), dim=0))
        if cosine > best:
            best, found = cosine, (name, weight)
    if found is None:
        return None
    return _Average(weakref.ref(thing), weakref.ref(found[1]), found[0], values.clone())
