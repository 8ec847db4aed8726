"""What a model's modules keep and no optimizer trains: running means, counters, masks.

Looked at when a step ends, after its forward passes and its optimizer's step. Which buffers there
are is asked anew each time: assigning one to a module, or taking one away, calls nobody.

Also those that did not change are read again. PyTorch's version counter does not tell: batch norms
write their running statistics without it, and so does whoever writes through `.data` or NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from traindbg import _core
from traindbg.hooks.torch.base.parameters import buffers_in, number_of

if TYPE_CHECKING:
    import torch

    from traindbg.hooks.torch.base.parameters import Owner
    from traindbg.hooks.torch.base.watched import WatchedModels

BUFFERS = _core.ROLE_BITS["buffer"]


class Taker(Protocol):
    """Who registers and takes tensors (`base.tensors`)."""

    def tensor_id(
        self, name: str, role: str, tensor: torch.Tensor | None, owner: Owner | None
    ) -> int: ...
    def take_batch(
        self, ids: list[int], tensors: list[torch.Tensor] | list[torch.Tensor | None]
    ) -> None: ...
    def cannot_describe(self, name: str, error: Exception) -> None: ...


class BufferObserver:
    """Looks at buffers when a step has ended. One per recording."""

    def __init__(self, taker: Taker, watched: WatchedModels) -> None:
        self._taker = taker
        self._watched = watched
        self._ids: dict[str, int] = {}
        self._odd: set[str] = set()  # by path: those that are not even described

    def take(self) -> None:
        """Takes the buffers of all watched models.

        One that several modules share is taken by its first name. A buffer keeps its name whatever
        shape it gets: caches grow, and a name for each size would use names up.
        """
        seen: set[int] = set()
        ids: list[int] = []
        buffers: list[torch.Tensor] = []
        for watcher in self._watched.numbered():
            model = watcher.model
            if model is None:
                continue
            for buffer, owner in buffers_in(model, watcher.prefix, watcher.first_layer or 0):
                if id(buffer) in seen or owner.path in self._odd:
                    continue
                try:
                    known = self._id_of(buffer, owner)
                except Exception as error:  # the others can be taken all the same
                    self._odd.add(owner.path)
                    self._taker.cannot_describe(f"buffer/{owner.path}", error)
                    continue
                if known is None:
                    continue
                seen.add(id(buffer))
                ids.append(known)
                buffers.append(buffer)
        if buffers:
            self._taker.take_batch(ids, buffers)

    def _id_of(self, buffer: torch.Tensor, owner: Owner) -> int | None:
        """None where it has no elements."""
        if number_of(buffer) == 0:
            return None
        known = self._ids.get(owner.path)
        if known is None:
            name = f"buffer/{owner.path}"
            known = self._ids[owner.path] = self._taker.tensor_id(name, "buffer", buffer, owner)
        return known
