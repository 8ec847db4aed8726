"""Whether weights were changed since they were looked at last, of a handful of them.

What is written in place raises a tensor's version, and what is assigned to `.data` moves it. What
is written through `.data` does neither: it is told by a few elements. Those are read until a change
was told without them, which waits for a device.
"""

from __future__ import annotations

import enum
import weakref
from typing import TYPE_CHECKING, NamedTuple

import torch

from traindbg.hooks.torch_device import capturing_graph, own_operations
from traindbg.hooks.torch_parameters import number_of
from traindbg.hooks.torch_shards import local_part

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST = 8  # tensors that are looked at: half of them the smallest, the others from all over
_ELEMENTS = 8  # of each


class Found(enum.Enum):
    """What became of the weights."""

    SAME = enum.auto()
    CHANGED = enum.auto()
    GONE = enum.auto()  # none of them is there any more


class _Seen(NamedTuple):
    tensor: weakref.ref[torch.Tensor]
    version: int
    address: int
    elements: str  # as words: what is not a number is like itself


def elements_of(tensor: torch.Tensor) -> list[float]:
    """A few elements from all over it, or the first ones of one that is not contiguous. Waits."""
    local = local_part(tensor.detach())
    if local.layout is not torch.strided or local.numel() == 0 or capturing_graph(tensor):
        return []
    with own_operations():
        if local.is_contiguous():
            local = local.view(-1)[:: max(1, local.numel() // _ELEMENTS)]
        for _ in range(local.dim() - 1):  # without a copy of it all
            local = local[0]
        found: list[float] = local.reshape(-1)[:_ELEMENTS].tolist()
    return found


def _address(tensor: torch.Tensor) -> int:
    local = local_part(tensor.detach())
    return local.data_ptr() if local.layout is torch.strided else 0


def _can_be_seen(tensor: torch.Tensor) -> bool:
    return number_of(tensor) > 0 and not tensor.is_meta and not tensor.is_inference()


def _chosen(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    seen = [tensor for tensor in tensors if _can_be_seen(tensor)]
    if len(seen) <= _MOST:
        return seen
    by_size = sorted(seen, key=lambda tensor: tensor.numel())
    half = _MOST // 2
    rest = by_size[half:]
    return by_size[:half] + rest[:: -(-len(rest) // half)]


class Changes:
    """What a handful of tensors was like. Holds weak references."""

    def __init__(self) -> None:
        self._seen: list[_Seen] = []
        self._are_told_by_versions = False

    @property
    def waits(self) -> bool:
        """Whether there is something to compare with."""
        return bool(self._seen)

    def tensors(self) -> list[torch.Tensor]:
        """Those that are looked at, and alive."""
        return [tensor for seen in self._seen for tensor in (seen.tensor(),) if tensor is not None]

    def remember(self, tensors: Sequence[torch.Tensor]) -> None:
        """Looks at them, in the place of those before."""
        self._seen = [
            _Seen(weakref.ref(tensor), tensor._version, _address(tensor), self._words(tensor))
            for tensor in _chosen(tensors)
        ]

    def forget(self) -> None:
        """Nothing is compared until the next `remember`."""
        self._seen = []

    def found(self) -> Found:
        """What became of them since."""
        now = [seen.tensor() for seen in self._seen]
        if all(tensor is None for tensor in now):
            return Found.GONE
        for seen, tensor in zip(self._seen, now, strict=True):
            if tensor is None:
                return Found.CHANGED  # another one took its place
            if tensor._version != seen.version or _address(tensor) != seen.address:
                self._are_told_by_versions = True
                return Found.CHANGED
        for seen, tensor in zip(self._seen, now, strict=True):
            if tensor is not None and self._words(tensor) != seen.elements:
                return Found.CHANGED
        return Found.SAME

    def _words(self, tensor: torch.Tensor) -> str:
        return "" if self._are_told_by_versions else str(elements_of(tensor))
