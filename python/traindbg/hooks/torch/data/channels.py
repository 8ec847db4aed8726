"""Whether the first and the last channel of images are exchanged in evaluations.

    image = cv2.imread(path)  # blue, green, red
    image = image[..., ::-1]  # in the training alone

Of each image two numbers are taken: how far the mean of its first channel lies above that of its
last one, and how far their spreads lie apart. Over many images these have a mean in the training,
and in an evaluation the same one; where the channels are exchanged it is the same with the other
sign. Both distances are told, in standard errors.

Nothing is kept but sums, which lie where the inputs do and come over when the step ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from traindbg.hooks.torch.base.device import capturing_graph, own_operations, widest_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from traindbg.hooks.torch.base.later import Later

_CHANNELS = 3
_FEWEST_PLACES = 8  # of an image, each way
_MOST_PLACES = 64
_MOST_OF_BATCH = 64  # images of the training
_MOST_TRAINED = 1024  # images
_MOST_EVALUATED = 512  # of one evaluation, which may be one batch
_MOST_TOLD = 3  # evaluations
_FEWEST = 64  # images, on either side


class Channels(NamedTuple):
    """What is told, as facts `loop/<field>`."""

    channels_difference: float  # of the means of the first and the last, in the training
    channels_difference_evaluated: float
    channels_apart: float  # sum of the squares of both distances, in standard errors
    channels_apart_exchanged: float  # the same, with those of the evaluation exchanged

    @property
    def is_odd(self) -> bool:
        """They fit better when they are exchanged."""
        return self.channels_apart > self.channels_apart_exchanged


class ChannelOrder:
    """Of one training. One per recording, one thread."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Another training begins."""
        self._trained: torch.Tensor | None = None
        self._trained_images = 0
        self._evaluated: torch.Tensor | None = None  # of the evaluation under way
        self._evaluated_images = 0
        self._told = 0  # evaluations
        self._step = -1

    def trained(self, inputs: torch.Tensor) -> None:
        """A batch of the training."""
        if self._trained_images >= _MOST_TRAINED or not _are_images(inputs):
            return
        images = min(inputs.shape[0], _MOST_OF_BATCH)
        self._trained_images += images
        self._trained = _plus(self._trained, inputs, images)

    def given(self, inputs: torch.Tensor, step: int) -> None:
        """A batch of an evaluation, before so many-th step of the training."""
        if self._told >= _MOST_TOLD or self._trained_images < _FEWEST or not _are_images(inputs):
            return
        if step != self._step:
            self._step, self._evaluated, self._evaluated_images = step, None, 0
        if self._evaluated_images >= _MOST_EVALUATED:
            return
        images = min(inputs.shape[0], _MOST_EVALUATED - self._evaluated_images)
        self._evaluated_images += images
        self._evaluated = _plus(self._evaluated, inputs, images)

    def ask(self, later: Later, told: Callable[[Channels], None]) -> None:
        """Training goes on: tells of the evaluation that is over, once."""
        evaluated, self._evaluated = self._evaluated, None
        if self._trained is None or evaluated is None or self._evaluated_images < _FEWEST:
            return
        self._told += 1

        def heard(values: list[torch.Tensor]) -> None:
            found = _judge(*values)
            if found is not None:
                told(found)

        later.ask("loop", [self._trained, evaluated], heard)


def _are_images(inputs: torch.Tensor) -> bool:
    return (
        type(inputs) is torch.Tensor
        and inputs.is_floating_point()
        and inputs.layout is torch.strided
        and inputs.dim() == 4
        and inputs.shape[0] > 0
        and inputs.shape[1] == _CHANNELS
        and min(inputs.shape[2:]) >= _FEWEST_PLACES
        and not inputs.is_meta
        and not capturing_graph(inputs)
    )


def _plus(sums: torch.Tensor | None, inputs: torch.Tensor, images: int) -> torch.Tensor:
    """With the first of a batch: images, the sums of both numbers and of their squares."""
    with own_operations():
        steps = [-(-size // _MOST_PLACES) for size in inputs.shape[2:]]
        each = inputs.detach()[:images, :: _CHANNELS - 1, :: steps[0], :: steps[1]]
        each = each.to(widest_of(inputs)).flatten(2)
        numbers = torch.stack([each.mean(2), each.std(2, correction=0)], 1)
        apart = numbers[..., 0] - numbers[..., 1]
        count = torch.full_like(apart[0, :1], apart.shape[0])
        added = torch.cat([count, apart.sum(0), apart.square().sum(0)])
        return added if sums is None else sums + added


def _judge(trained: torch.Tensor, evaluated: torch.Tensor) -> Channels | None:
    (ours, our_error), (theirs, their_error) = (_mean_of(sums) for sums in (trained, evaluated))
    error = our_error + their_error
    if not bool((error > 0).all()) or not bool(torch.isfinite(error).all()):
        return None
    apart = ((ours - theirs).square() / error).sum()
    exchanged = ((ours + theirs).square() / error).sum()
    return Channels(float(ours[0]), float(theirs[0]), float(apart), float(exchanged))


def _mean_of(sums: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """And the square of its standard error; both of two numbers."""
    sums = sums.double()
    count, mean = sums[0], sums[1:3] / sums[0]
    return mean, (sums[3:5] / count - mean.square()).clamp_min(0) / count
