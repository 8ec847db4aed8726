"""Whether what is evaluated was standardised by its own mean and spread.

    scaler.fit_transform(x_train)
    scaler.fit_transform(x_val)  # not transform: what was fitted is forgotten

The values of a column have then a mean of 0 and a spread of 1 to the last bits, which those of a
part of the data that was not fitted to never have. Columns are those of a table, the features of
series and the channels of images. The first few evaluations are looked at, each as a whole and its
first batch alone. What two values are is left out (-1 and 1 may come equally often), and samples
each of which was standardised for itself; so are rows of the training.

Nothing is kept but sums, which lie where the inputs do and come over when the step ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from traindbg.hooks.torch_device import capturing_graph, own_operations, widest_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from traindbg.hooks.torch_later import Later

_MOST_EVALUATIONS = 3
_MOST_VALUES = 1 << 22  # of one evaluation
_MOST_COLUMNS = 2048
_FEWEST = 32  # values of a column
_SAMPLES = 4  # that are asked whether each was standardised for itself
_EXACT = 3e-5  # deviations
_TWO_VALUES = 1e-3  # above the fourth moment of two values that come equally often


class Own(NamedTuple):
    """What is told, as facts `loop/<field>`."""

    own_columns: int  # of an evaluation, standardised by it, or by its first batch
    own_columns_of: int  # that are not constant
    own_columns_values: int  # of each


class OwnStatistics:
    """Of one training. One per recording, one thread."""

    def __init__(self, are_trained: Callable[[torch.Tensor], bool]) -> None:
        self._are_trained = are_trained  # rows of an input, as far as that is known
        self.forget()

    def forget(self) -> None:
        """Another training begins."""
        self._evaluations = 0
        self._step = -1  # before which the evaluation under way is
        self._values = 0  # that were looked at in it
        # By what columns are: the sums of all batches, and of the first one alone.
        self._sums: dict[str, list[torch.Tensor]] = {}

    def given(self, inputs: torch.Tensor, step: int) -> None:
        """A batch of an evaluation, before so many-th step of the training."""
        if step != self._step:
            if self._evaluations >= _MOST_EVALUATIONS:
                return
            self._evaluations += 1
            self._step, self._values, self._sums = step, 0, {}
        if not _may_be_standardised(inputs) or (self._values == 0 and self._are_trained(inputs)):
            self._values = _MOST_VALUES + 1
        self._values += inputs.numel()
        if self._values > _MOST_VALUES:
            self._sums = {}
            return
        with own_operations():
            for kind, table in _columns_of(inputs.detach()):
                sums = torch.cat([_sums_of(table), _means_of_samples(inputs, table)])
                known = self._sums.get(kind)
                if known is None:
                    self._sums[kind] = [sums, sums]
                elif known[0].shape == sums.shape:
                    known[0] = known[0] + sums

    def ask(self, later: Later, told: Callable[[Own], None]) -> None:
        """Training goes on: tells of the evaluation that is over, once."""
        if not self._sums:
            return
        asked = [sums for both in self._sums.values() for sums in both]
        self._sums = {}

        def heard(values: list[torch.Tensor]) -> None:
            told(max(map(_judge, values)))

        later.ask("loop", asked, heard)


def _may_be_standardised(inputs: torch.Tensor) -> bool:
    return (
        type(inputs) is torch.Tensor
        and inputs.is_floating_point()
        and inputs.layout is torch.strided
        and inputs.dim() >= 2
        and inputs.numel() > 0
        and not capturing_graph(inputs)
    )


def _columns_of(inputs: torch.Tensor) -> list[tuple[str, torch.Tensor]]:
    """As tables, of rows that all have the same columns."""
    if inputs.dim() == 2:
        found = [("columns", inputs)]
    else:
        channels = inputs.movedim(1, -1)
        found = [("channels", channels.reshape(-1, channels.shape[-1]))]
        if inputs.dim() == 3:
            found.append(("features", inputs.reshape(-1, inputs.shape[-1])))
    return [(kind, table) for kind, table in found if table.shape[1] <= _MOST_COLUMNS]


def _sums_of(table: torch.Tensor) -> torch.Tensor:
    """How many rows, and of each column the sums of the first, second and fourth powers."""
    wide = table.to(widest_of(table))
    square = wide.square()
    count = torch.full_like(wide[0], wide.shape[0])
    return torch.stack([count, wide.sum(0), square.sum(0), square.square().sum(0)])


def _means_of_samples(inputs: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Of each column, the largest mean that it has in one of the first samples."""
    each = table.detach().reshape(inputs.shape[0], -1, table.shape[1])[:_SAMPLES]
    return each.to(widest_of(table)).mean(1).abs().amax(0, keepdim=True)


def _judge(sums: torch.Tensor) -> Own:
    count, first, second, fourth, of_samples = sums.double()
    rows = int(count[0])
    if rows < _FEWEST:
        return Own(0, 0, rows)
    mean = first / rows
    variance = second / rows - mean.square()
    varies = variance > 1e-12
    deviation = variance.clamp_min(0).sqrt()
    unbiased = deviation * (rows / (rows - 1)) ** 0.5
    is_one = ((deviation - 1).abs() < _EXACT) | ((unbiased - 1).abs() < _EXACT)
    has_more_values = fourth / rows > 1 + _TWO_VALUES
    is_of_all = of_samples > _EXACT
    is_own = (mean.abs() < _EXACT) & is_one & has_more_values & varies & is_of_all
    return Own(int(is_own.sum()), int(varies.sum()), rows)
