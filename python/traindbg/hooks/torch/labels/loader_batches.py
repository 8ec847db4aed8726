"""Batches of a `DataLoader`: what they hold, and whether a model or loss is given it as it came.

Of a batch a few items are looked at, and no code of its class is called. A part is known again by
its memory or its values, as long as nothing was written into it.
"""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any

import torch

from traindbg.hooks.torch.base.device import own_operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    Path = tuple[Any, ...]  # keys of nested containers

_MOST_PARTS = 8  # of a batch
_MOST_ITEMS = 64  # that are looked at for them
_DEPTH = 3
_MOST_VALUES = 1 << 24  # that are compared, where a part was copied
_MOST_COPIED = 1 << 22  # that are, of a part of which nothing tells whether it was written to


def is_plain(value: Any) -> bool:
    """Whether it is a tensor of numbers that can be compared."""
    return (
        type(value) in (torch.Tensor, torch.nn.Parameter)
        and value.layout is torch.strided
        and not value.is_quantized
        and not value.is_complex()
        and value.dim() > 0
        and value.numel() > 0
    )


def _items(value: Any) -> Iterator[tuple[Any, Any]]:
    """What a container holds. Code of its class is not called: it may draw random numbers."""
    if isinstance(value, collections.UserDict):
        value = value.__dict__.get("data")
    if isinstance(value, dict):
        yield from ((k, item) for k, item in dict.items(value) if type(k) in (str, int))
    elif isinstance(value, tuple):
        yield from enumerate(tuple.__iter__(value))
    elif isinstance(value, list):
        yield from enumerate(list.__iter__(value))


def leaves_of(value: Any) -> list[tuple[Path, Any]]:
    """What is no container in one, with the keys that lead there: of the first items."""
    found: list[tuple[Path, Any]] = []
    waiting: collections.deque[tuple[Path, Any]] = collections.deque([((), value)])
    seen = 0
    while waiting and seen < _MOST_ITEMS:
        path, each = waiting.popleft()
        seen += 1
        if isinstance(each, (dict, tuple, list, collections.UserDict)):
            for key, item in _items(each) if len(path) < _DEPTH else ():
                if seen + len(waiting) >= _MOST_ITEMS:
                    break
                waiting.append(((*path, key), item))
        else:
            found.append((path, each))
    return found


def leaf_at(value: Any, path: Path) -> Any:
    """What `leaves_of` has found there. None: there is no such thing."""
    for key in path:
        if isinstance(value, collections.UserDict):
            value = value.__dict__.get("data")
        if isinstance(value, dict):
            value = dict.get(value, key)
        elif isinstance(value, (tuple, list)) and type(key) is int and key < len(value):
            base: Any = tuple if isinstance(value, tuple) else list
            value = base.__getitem__(value, key)
        else:
            return None
    return value


class Part:
    """A tensor of a batch, and how to tell that nothing was written into it since."""

    __slots__ = ("_at", "_copy", "_version", "tensor")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self._at = tensor.data_ptr()
        self._version: int | None = None
        self._copy: torch.Tensor | None = None
        if not tensor.is_inference():
            self._version = tensor._version
        elif tensor.numel() <= _MOST_COPIED:  # it has no version
            with own_operations():
                self._copy = tensor.detach().clone()

    def is_as_given(self) -> bool:
        if self.tensor.data_ptr() != self._at:
            return False
        if self._version is not None:
            return not self.tensor.is_inference() and self.tensor._version == self._version
        return self._copy is not None and torch.equal(self.tensor, self._copy)

    def is_given(self, tensor: torch.Tensor) -> bool:
        """Whether `tensor` has its memory, in the same order, or its values."""
        own = self.tensor
        if own.numel() != tensor.numel() or not self.is_as_given():
            return False
        if tensor.data_ptr() == own.data_ptr() and tensor.device == own.device:
            are_alike = tensor.is_contiguous() and own.is_contiguous()
            are_alike = are_alike or (tensor.shape == own.shape and tensor.stride() == own.stride())
            if are_alike:
                return bool(tensor.dtype == own.dtype)
        if own.numel() > _MOST_VALUES:
            return False
        mine = own.detach().reshape(-1).to(tensor.device, tensor.dtype)
        return bool(torch.equal(tensor.detach().reshape(-1), mine))


def data_of(iterator: Any) -> Any:
    """What tells the data of a `DataLoader`'s iterator from others', and has weak references."""
    data = iterator._dataset
    is_referable = getattr(type(data), "__weakrefoffset__", 0) != 0
    return data if is_referable else getattr(iterator, "_index_sampler", iterator)


class Batch:
    """What a loader gave, as far as it may have a role."""

    __slots__ = ("data", "is_used", "parts")

    def __init__(self, batch: Any, data: Any, paths: list[Path] | None) -> None:
        self.is_used = False  # the model was given it
        self.data = data  # the set that it is of
        leaves = leaves_of(batch) if paths is None else [(p, leaf_at(batch, p)) for p in paths]
        plain = [(path, leaf) for path, leaf in leaves if is_plain(leaf)]
        self.parts = {path: Part(leaf) for path, leaf in plain[:_MOST_PARTS]}
