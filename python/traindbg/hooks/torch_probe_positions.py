"""Whether outputs at positions of a sequence change when only later positions of the input do.

Asked where each target is the input's next value (`torch_sequences`). From the middle on the values
of a sequence become those of the sequence before it in the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from traindbg.hooks.torch_probe_compare import Seen, compare

if TYPE_CHECKING:
    from traindbg.hooks.torch_probe_pass import Passes

_FEWEST = 3  # positions before the middle that have a target

# Their statistics are of all positions, by which hardly anything is seen of a single value.
_OVER_POSITIONS = (nn.GroupNorm, nn.modules.instancenorm._InstanceNorm)


def _along(tensor: torch.Tensor, length: int) -> int | None:
    """The dimension of an input that has the sequence's positions; None: it is not certain."""
    if tensor.dim() < 2 or tensor.shape[0] == tensor.shape[1]:
        return None
    if tensor.shape[1] == length:
        return 1
    return 0 if tensor.shape[0] == length else None


def middle_of(model: nn.Module, given: torch.Tensor, known: torch.Tensor) -> int | None:
    """From which position on the input is changed; `known`: [length], those with a target.

    None: it is not to be told by that.
    """
    along = _along(given, len(known))
    if along is None or any(isinstance(module, _OVER_POSITIONS) for module in model.modules()):
        return None
    places = known.nonzero().flatten().tolist()
    middle = places[len(places) // 2] if places else 0
    return middle if sum(place < middle for place in places) >= _FEWEST else None


def look(passes: Passes, given: torch.Tensor, known: torch.Tensor, middle: int) -> Seen | None:
    """`given`: the input, one of those of the passes; None: it cannot be told."""
    length, along = len(known), _along(given, len(known))
    rows = given.shape[1 - along] if along is not None else 0
    places = [place for place in known.nonzero().flatten().tolist() if place < middle]

    def change(tensor: torch.Tensor) -> torch.Tensor:
        made = tensor.detach().clone()
        if tensor is given and along is not None:
            later = made.narrow(along, middle, length - middle)
            other = later.roll(1, 1 - along) if rows > 1 else later.flip(along)
            if torch.equal(other, later):
                other = later.flip(along)
            later.copy_(other.clone())
        return made

    if along is None or torch.equal(change(given), given):
        return None

    def kept(tensor: torch.Tensor) -> torch.Tensor | None:
        """[positions, rows, ...] of those before the middle that have a target."""
        for size in (length, length - 1):  # the last one may be left out inside
            if tensor.dim() > 0 and tensor.shape[0] == rows * size and rows > 1:
                shape = (rows, size) if along == 1 else (size, rows)
                tensor = tensor.reshape(*shape, *tensor.shape[1:])
            positions = [dim for dim, n in enumerate(tensor.shape) if n == size]
            samples = [dim for dim, n in enumerate(tensor.shape) if n == rows]
            if len(positions) == 1 and len(samples) == 1 and positions != samples:
                turned = tensor.movedim((positions[0], samples[0]), (0, 1))
                return turned[places] if max(places) < size else None
        return None

    return compare(passes, change, kept, kept)
