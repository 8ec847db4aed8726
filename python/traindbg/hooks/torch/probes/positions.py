"""Whether outputs at positions of a sequence change when only later positions of the input do.

Asked where each target is the input's next value (`data.sequences`). From the middle on the values
of a sequence become those of the sequence before it in the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from traindbg.hooks.torch.probes.compare import Question, Seen, compare, told_apart

if TYPE_CHECKING:
    from traindbg.hooks.torch.data.next_values import Next
    from traindbg.hooks.torch.probes.forward_pass import Passes

_FEWEST = 3  # positions before the middle that have a target, and sequences

# Their statistics are of all positions, by which hardly anything is seen of a single value.
_OVER_POSITIONS = (nn.GroupNorm, nn.modules.instancenorm._InstanceNorm)


def _places_of(following: Next) -> list[int]:
    """Of the positions that have a target."""
    places: list[int] = following.known.nonzero().flatten().tolist()
    return places


def middle_of(model: nn.Module, given: torch.Tensor, following: Next) -> int | None:
    """From which position on the input is changed; None: it is not to be told by that."""
    if following.along > 1:  # of channels: what a layer does to them is seen of itself
        return None
    if given.dim() < 2 or given.shape[following.along] != following.length:
        return None
    if given.shape[1 - following.along] < _FEWEST:
        return None
    if any(isinstance(module, _OVER_POSITIONS) for module in model.modules()):
        return None
    places = _places_of(following)
    middle = places[len(places) // 2] if places else 0
    return middle if sum(place < middle for place in places) >= _FEWEST else None


def look(passes: Passes, given: torch.Tensor, following: Next, middle: int) -> Seen | None:
    """`given`: the input, one of those of the passes; None: it cannot be told."""
    length, along, across = following.length, following.along, 1 - following.along
    all_rows = given.shape[across]
    rows = told_apart(all_rows, length, length - 1)
    places = [place for place in _places_of(following) if place < middle]

    def batch(tensor: torch.Tensor) -> torch.Tensor:
        dims = [dim for dim, size in enumerate(tensor.shape) if size == all_rows]
        if tensor.shape == given.shape:  # targets, say
            tensor = tensor.narrow(across, 0, rows)
        elif len(dims) == 1:
            tensor = tensor.narrow(dims[0], 0, rows)
        return tensor.detach().clone()

    def change(tensor: torch.Tensor) -> torch.Tensor:
        made = batch(tensor)
        if tensor is given:
            later = made.narrow(along, middle, length - middle)
            other = later.roll(1, across)
            later.copy_(later.flip(along) if torch.equal(other, later) else other)
        return made

    if torch.equal(change(given), batch(given)):
        return None

    def kept(tensor: torch.Tensor) -> torch.Tensor | None:
        """[positions, rows, ...] of those before the middle that have a target."""
        for size in (length, length - 1):  # the last one may be left out inside
            if tensor.dim() > 0 and tensor.shape[0] == rows * size:
                shape = (rows, size) if along == 1 else (size, rows)
                tensor = tensor.reshape(*shape, *tensor.shape[1:])
            positions = [dim for dim, n in enumerate(tensor.shape) if n == size]
            samples = [dim for dim, n in enumerate(tensor.shape) if n == rows]
            if len(positions) == 1 and len(samples) == 1 and positions != samples:
                turned = tensor.movedim((positions[0], samples[0]), (0, 1))
                return turned[places] if max(places) < size else None
        return None

    return compare(passes, Question(change, kept, kept, batch))
