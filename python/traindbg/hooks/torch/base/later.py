"""Values of tensors that are asked for now and told when the step ends, all by one wait.

To read a tensor of a device is to wait until the device has done all that it was given, and a
training that runs ahead of its device loses its head start. So what is wanted of such tensors is
asked for with what is to be done then. When the step ends their bytes are put together on the
device and come over with whatever else waits there (`base.device`), and each who asked is told, in
the order of asking. What can be read where it lies is told at once.

Until then the tensors are kept: those who ask give small ones that nobody else writes to.
"""

from __future__ import annotations

import itertools
import math
import os
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch

from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.guard import guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


_WIDEST = 16  # bytes of the widest type of element


class Carrier(Protocol):
    """Who brings tensors over when a step ends (`base.device`)."""

    def bring(self, tensor: torch.Tensor) -> torch.Tensor: ...


class Switch(Protocol):
    """Who remembers that something waits for the end of the step (the hot path)."""

    has_deferred: bool


def may_read(tensor: torch.Tensor) -> bool:
    """Whether its values are at hand: it lies in host memory, which holds what was computed."""
    return tensor.is_cpu and os.environ.get("TRAINDBG_DEVICE_PATH") != "1"


class Packed(NamedTuple):
    """Tensors of one device, as bytes behind each other."""

    places: list[int]  # of each among all that were packed
    tensors: Sequence[torch.Tensor]  # all of them
    together: torch.Tensor

    def unpacked(self, host: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
        """Place and values of each. `host`: the bytes, in host memory."""
        if host.storage_offset() % _WIDEST != 0:  # it came over among others
            host = host.clone()
        at = 0
        for place in self.places:
            like = self.tensors[place]
            size = like.numel() * like.element_size()
            yield place, host[at : at + size].view(like.dtype).reshape(like.shape)
            at += size


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    whole = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    if whole.stride(0) != 1:  # a lone element is contiguous whatever the stride
        whole = whole.clone(memory_format=torch.contiguous_format)
    return whole.view(torch.uint8)


def packed(tensors: Sequence[torch.Tensor]) -> list[Packed]:
    """Copies of them, one for each device. Waits for none."""
    by_device: dict[torch.device, list[int]] = {}
    for place, tensor in enumerate(tensors):
        by_device.setdefault(tensor.device, []).append(place)
    found: list[Packed] = []
    for places in by_device.values():
        # Wide elements first: each begins where one of its type may.
        places.sort(key=lambda place: -tensors[place].element_size())
        together = torch.cat([_bytes_of(tensors[place]) for place in places])
        found.append(Packed(places, tensors, together))
    return found


def brought(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The same in host memory, at once. Waits, once for each device."""
    if all(map(may_read, tensors)):
        return list(tensors)
    found = list(tensors)
    with own_operations():
        for part in packed(tensors):
            for place, values in part.unpacked(part.together.cpu()):
                found[place] = values
    return found


class _Question(NamedTuple):
    feature: str  # under which a failure is counted
    tensors: list[torch.Tensor]
    told: Callable[[list[torch.Tensor]], Any]


class Later:
    """What was asked for in the step under way. One per recording, one thread."""

    def __init__(self, carrier: Carrier, switch: Switch) -> None:
        self._carrier = carrier
        self._switch = switch
        self._questions: list[_Question] = []
        self._sent: list[tuple[Packed, torch.Tensor]] = []

    def ask(
        self,
        feature: str,
        tensors: Sequence[torch.Tensor],
        told: Callable[[list[torch.Tensor]], Any],
    ) -> None:
        """Calls `told` with the same tensors in host memory: at once, or when the step ends.

        Never, if a CUDA graph is captured now or then, or nothing can be brought over.
        """
        if all(map(may_read, tensors)):
            told(list(tensors))
        elif not any(map(capturing_graph, tensors)):
            self._questions.append(_Question(feature, list(tensors), told))
            self._switch.has_deferred = True

    def ask_numbers(
        self,
        feature: str,
        numbers: Sequence[float | torch.Tensor],
        told: Callable[[list[float]], Any],
    ) -> None:
        """The same of numbers, some of which are tensors of one element."""

        def heard(values: list[torch.Tensor]) -> None:
            known = iter(values)
            told([float(next(known) if is_tensor else number) for number, is_tensor in both])

        both = [
            (
                math.nan if isinstance(number, torch.Tensor) else number,
                isinstance(number, torch.Tensor),
            )
            for number in numbers
        ]
        self.ask(feature, [x for x in numbers if isinstance(x, torch.Tensor)], heard)

    def send(self) -> None:
        """The step ends: what was asked for sets out."""
        if not self._questions:
            return
        if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
            self.clear()  # no wait may become a part of the graph
            return
        tensors = list(itertools.chain(*(question.tensors for question in self._questions)))
        with own_operations():
            self._sent = [(part, self._carrier.bring(part.together)) for part in packed(tensors)]

    def deliver(self) -> None:
        """It has come over: tells all who asked."""
        sent, questions = self._sent, self._questions
        self.clear()
        if not questions:
            return
        found: dict[int, torch.Tensor] = {}
        with own_operations():
            for part, host in sent:
                found.update(part.unpacked(host))
            values = iter(found[place] for place in range(len(found)))
            for question in questions:
                own = list(itertools.islice(values, len(question.tensors)))
                guarded(question.feature, question.told, own)

    def clear(self) -> None:
        """Drops everything."""
        self._questions, self._sent = [], []
