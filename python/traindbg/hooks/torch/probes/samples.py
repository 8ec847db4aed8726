"""Whether what a model computes for a sample depends on the other samples of its batch.

Each second sample is replaced by the one before it; what is computed for the others must stay. That
the first dimension numbers samples is asked of how batches are dealt: a `DataLoader` deals them at
random in batches of this size, or rows that came together before come apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from traindbg.hooks.torch.probes.compare import Question, Seen, compare, told_apart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from traindbg.hooks.torch.probes.forward_pass import Passes

_FEWEST = 4  # samples of a batch
_MOST_ROWS = 4096  # that are remembered
_FEWEST_KNOWN = 8  # rows of a batch that came before
_FEWEST_BATCHES = 3  # from which they come


class Dealt:
    """Whether rows that came in one batch come in several later on. One per training."""

    def __init__(self) -> None:
        self.is_anew = False
        self._batch_of: dict[Any, int] = {}
        self._batches = 0

    def learn(self, rows: Sequence[Any]) -> None:
        """A batch of the training, its rows by their fingerprints."""
        if self.is_anew:
            return
        before = [self._batch_of[row] for row in rows if row in self._batch_of]
        enough = len(set(before)) >= _FEWEST_BATCHES
        self.is_anew = enough and len(before) >= min(_FEWEST_KNOWN, len(rows))
        self._batches += 1
        if self.is_anew:
            self._batch_of.clear()
        elif len(self._batch_of) < _MOST_ROWS:
            self._batch_of.update((row, self._batches) for row in rows)


def _is_of_samples(target: torch.Tensor, number: int) -> bool:
    """Whether a loss was given something for each of so many samples, and not their numbers."""
    if target.dim() == 0 or target.shape[0] == 0 or target.shape[0] % number != 0:
        return False
    if target.dim() == 1 and not target.is_floating_point():
        places = torch.arange(len(target), device=target.device)
        return not torch.equal(target, places) and not torch.equal(target, places % number)
    return True


def _uses_batch_statistics(model: nn.Module) -> bool:
    """In evaluation mode, too: it was made so."""
    of_batch = nn.modules.batchnorm._BatchNorm
    return any(isinstance(m, of_batch) and m.running_mean is None for m in model.modules())


def samples_of(
    model: nn.Module,
    tensors: list[torch.Tensor],
    targets: Iterable[torch.Tensor],
    is_dealt: Callable[[int], bool],
) -> int:
    """How many samples the batch has whose tensors these are; 0 where that is not certain.

    `is_dealt`: whether batches of so many are dealt anew.
    """
    number = tensors[0].shape[0] if tensors and tensors[0].dim() > 0 else 0
    if number < _FEWEST or not is_dealt(number) or _uses_batch_statistics(model):
        return 0
    for tensor in tensors:
        if tensor.layout is not torch.strided or number in tensor.shape[1:]:
            return 0  # a graph, or the other way round
        is_whole = not tensor.is_floating_point() and tensor.dtype != torch.bool
        if is_whole and tensor.dim() == 2 and len(tensor) == 2:
            return 0  # edges
    return number if any(_is_of_samples(target, number) for target in targets) else 0


def _doubled(tensor: torch.Tensor) -> torch.Tensor:
    """Each second sample becomes the one before it."""
    places = torch.arange(len(tensor), device=tensor.device)
    return tensor[places - places % 2]


def _keeps_longest(tensors: list[torch.Tensor], number: int) -> bool:
    """Whether none of what may be lengths has its largest value at the samples that go."""
    lengths = [t for t in tensors if t.shape == (number,) and not t.is_floating_point()]
    return all(bool(t[::2].max() == t.max()) for t in lengths if t.dtype != torch.bool)


def look(passes: Passes, tensors: list[torch.Tensor], number: int) -> Seen | None:
    """Of the batch of these tensors, so many samples; None: it cannot be told."""
    rows = told_apart(number, *(size for tensor in tensors for size in tensor.shape[1:]))

    def batch(tensor: torch.Tensor) -> torch.Tensor:
        is_of_samples = tensor.dim() > 0 and len(tensor) == number
        return (tensor[:rows] if is_of_samples else tensor).detach().clone()

    def change(tensor: torch.Tensor) -> torch.Tensor:
        made = batch(tensor)
        return _doubled(made) if tensor.dim() > 0 and len(tensor) == number else made

    before = [batch(tensor) for tensor in tensors]
    is_same = all(torch.equal(x, change(t)) for x, t in zip(before, tensors, strict=True))
    if is_same or not _keeps_longest(before, rows):
        return None

    def kept_inside(tensor: torch.Tensor) -> torch.Tensor | None:
        """Where one dimension alone numbers samples."""
        dims = [dim for dim, size in enumerate(tensor.shape) if size == rows]
        return tensor.movedim(dims[0], 0)[None, ::2] if len(dims) == 1 else None

    def kept(tensor: torch.Tensor) -> torch.Tensor | None:
        has_samples = tensor.dim() > 0 and tensor.shape[0] == rows
        return kept_inside(tensor) if has_samples else None

    seen = compare(passes, Question(change, kept, kept_inside, batch))
    return None if seen is not None and seen.share > 0 and passes.rounds else seen
