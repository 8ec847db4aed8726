"""Whether weights were changed since they were looked at last, of a handful of them.

What is written in place raises a tensor's version, and what is assigned to `.data` moves it. What
is written through `.data` does neither: it is told by a few elements. Copies of those are kept on
their device, and compared until a change was told without them, which waits for the device.
"""

from __future__ import annotations

import enum
import weakref
from typing import TYPE_CHECKING, NamedTuple

import torch

from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.later import brought, packed
from traindbg.hooks.torch.base.parameters import number_of
from traindbg.hooks.torch.base.shards import local_part

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


def elements_of(tensor: torch.Tensor, *, first: bool = False) -> torch.Tensor | None:
    """A few elements from all over it, on its device. None: they cannot be asked for now.

    The first ones where that is wanted, and of one that is not contiguous.
    """
    local = local_part(tensor.detach())
    if local.layout is not torch.strided or local.numel() == 0 or capturing_graph(tensor):
        return None
    with own_operations():
        if local.is_contiguous() and not first:
            local = local.view(-1)[:: max(1, local.numel() // _ELEMENTS)]
        for _ in range(local.dim() - 1):  # without a copy of it all
            local = local[0]
        return local.reshape(-1)[:_ELEMENTS]


class Elements:
    """What some elements were like, by their bytes: what is not a number is like itself."""

    def __init__(self, elements: Sequence[torch.Tensor | None]) -> None:
        self._are_there = [one is not None for one in elements]
        with own_operations():
            self._parts = packed([one for one in elements if one is not None])

    def differ(self, now: Elements) -> list[torch.Tensor]:
        """Truth values on their devices, one of which is True if some element is another one."""
        if self._are_there != now._are_there:
            return []  # that cannot be told
        if len(self._parts) != len(now._parts):
            return [torch.ones((), dtype=torch.bool)]
        found: list[torch.Tensor] = []
        with own_operations():
            for one, other in zip(self._parts, now._parts, strict=True):
                before, after = one.together, other.together
                if before.device != after.device or before.shape != after.shape:
                    return [torch.ones((), dtype=torch.bool)]
                found.append((before != after).any())
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
        self._elements: Elements | None = None
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
        chosen = _chosen(tensors)
        self._seen = [
            _Seen(weakref.ref(tensor), tensor._version, _address(tensor)) for tensor in chosen
        ]
        if not self._are_told_by_versions:
            self._elements = Elements([elements_of(tensor) for tensor in chosen])

    def forget(self) -> None:
        """Nothing is compared until the next `remember`."""
        self._seen, self._elements = [], None

    def found(self) -> Found:
        """What became of them since. Another thread may forget them meanwhile."""
        known, elements = self._seen, self._elements
        now = [seen.tensor() for seen in known]
        if all(tensor is None for tensor in now):
            return Found.GONE
        for seen, tensor in zip(known, now, strict=True):
            if tensor is None:
                return Found.CHANGED  # another one took its place
            if tensor._version != seen.version or _address(tensor) != seen.address:
                self._are_told_by_versions = True
                return Found.CHANGED
        if elements is None or self._are_told_by_versions:
            return Found.SAME
        after = Elements([elements_of(tensor) for tensor in now if tensor is not None])
        with own_operations():
            differ = any(map(bool, brought(elements.differ(after))))
        return Found.CHANGED if differ else Found.SAME
