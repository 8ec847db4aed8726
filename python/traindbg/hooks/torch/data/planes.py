"""Whether a channel of images, or of series, is the mask that the model is to find in them.

    rgba = load(file)  # its transparency is the mask that the object was cut out by

Then the model copies that channel, and on pictures that have none it fails. What is handed in is
looked at only, nothing of it is kept, and nothing waits for a device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from traindbg.hooks.torch.base.device import widest_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_VALUES = 1 << 20  # of inputs, in as many of the first rows as hold them
_FEWEST_VALUES = 256  # of a mask, over all rows that are looked at
_FEWEST_ROWS = 2
_MOST_CHANNELS = 64
_SAME = 1e-6  # what a correlation of 1 may be off by rounding


class Planes(NamedTuple):
    """Of channels that are the labels of all places, but for scale and offset: one value each."""

    channels: torch.Tensor  # there are so many of them; 0 where the labels are no mask
    channel: torch.Tensor  # the first of them
    others: torch.Tensor  # channels that are something else, and not the same in all rows


def copied_planes(inputs: torch.Tensor, labels: torch.Tensor) -> Planes | None:
    """Whether channels of the inputs are a label that there is for each of their places.

    Args:
        inputs: (rows, channels, *places) or (rows, *places, channels), of floating point.
        labels: (rows, *places), or the same with a dimension of one channel; whole numbers, or
            0 and 1. Others are no mask, but values that may be there to be given back.

    Returns:
        None where it is something else, or too few or too many of either. Cost: four passes over
        the inputs, in float64.
    """
    if (
        not inputs.is_floating_point()
        or inputs.layout is not torch.strided
        or labels.layout is not torch.strided
        or labels.is_complex()
        or labels.device != inputs.device
        or inputs.dim() < 3
        or inputs.numel() == 0
        or labels.dim() < 2
        or inputs.shape[0] != labels.shape[0]
    ):
        return None
    rows = min(inputs.shape[0], _MOST_VALUES * inputs.shape[0] // inputs.numel())
    if rows < _FEWEST_ROWS:
        return None
    for planes in _as_planes(inputs.detach()[:rows], tuple(labels.shape)):
        wanted = labels.detach()[:rows].reshape(rows, -1)
        if 2 <= planes.shape[1] <= _MOST_CHANNELS and wanted.numel() >= _FEWEST_VALUES:
            return _compared(planes, wanted)
    return None


def _as_planes(inputs: torch.Tensor, labels: tuple[int, ...]) -> Iterator[torch.Tensor]:
    """(rows, channels, places), if there is one label for each place."""
    for axis in (1, inputs.dim() - 1):
        places = (*inputs.shape[1:axis], *inputs.shape[axis + 1 :])
        if labels[1:] in (places, (1, *places), (*places, 1)):
            yield inputs.movedim(axis, 1).flatten(2)


def _compared(planes: torch.Tensor, wanted: torch.Tensor) -> Planes:
    wide = widest_of(planes)
    planes, mask = planes.to(wide), wanted.to(wide)
    is_mask = mask.isfinite().all()
    if wanted.is_floating_point():
        is_mask = is_mask & ((mask == 0) | (mask == 1)).all()
    mask = mask - mask.mean()
    centred = planes - planes.mean((0, 2), keepdim=True)
    size = (centred.square().sum((0, 2)) * mask.square().sum()).sqrt()
    product = (centred * mask.unsqueeze(1)).sum((0, 2)).abs()
    is_copy = (size > 0) & (product >= (1 - _SAME) * size) & is_mask
    differs = (planes != planes[:1]).flatten(2).any(2).any(0)
    return Planes(is_copy.sum(), is_copy.int().argmax(), (differs & ~is_copy).sum())
