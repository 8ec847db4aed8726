"""Whether what is evaluated was standardised by its own mean and spread.

    scaler.fit_transform(x_train)
    scaler.fit_transform(x_val)  # not transform: what was fitted is forgotten

The values of a column have then a mean of 0 and a spread of 1 to the last bits, which those of a
part of the data that was not fitted to never have. Columns are those of a table, and the channels
of images. The first few evaluations are looked at as a whole. Left out are what two values are (-1
and 1 may come equally often); samples each of which was standardised for itself; batches each of
which was, in an evaluation or in the training; and what may be the training's own data, as far as
enough of its rows are remembered to tell.

Nothing is kept but sums, which lie where the inputs do and come over when the step ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from traindbg.hooks.torch.base.device import capturing_graph, own_operations, widest_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from traindbg.hooks.torch.base.later import Later
    from traindbg.hooks.torch.data.rows import Rows

_MOST_EVALUATIONS = 3
_MOST_BATCHES = 2  # of the training
_MOST_VALUES = 1 << 20  # of one evaluation
_MOST_COLUMNS = 2048
_FEWEST = 32  # values of a column
_SAMPLES = 4  # of a batch, that are asked whether each was standardised for itself
_OF_ITSELF = 0.1  # below so many standard errors of a sample's mean it was
_EXACT = 3e-5  # deviations
_TWO_VALUES = 1e-3  # above the fourth moment of two values that come equally often
_ALL = 0.95  # of the rows that are known of the training
_REMEMBERED = 0.07  # of rows: of 64 that are among them, one is known in 99 of 100 cases


class Own(NamedTuple):
    """What is told, as facts `loop/<field>`."""

    own_columns: int  # of an evaluation, that were standardised by it
    own_columns_of: int  # that are not constant
    own_columns_values: int  # of each

    @property
    def is_odd(self) -> bool:
        """Some were."""
        return self.own_columns > 0


class _Sums(NamedTuple):
    """Of the columns of one or more batches."""

    powers: torch.Tensor  # rows; the sums of the first, second and fourth powers
    of_samples: torch.Tensor  # the largest mean of a sample, in its standard errors

    def plus(self, other: _Sums) -> _Sums:
        largest = torch.maximum(self.of_samples, other.of_samples)
        return _Sums(self.powers + other.powers, largest)

    def together(self) -> torch.Tensor:
        return torch.cat([self.powers, self.of_samples])


class OwnStatistics:
    """Of one training. One per recording, one thread."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.forget()

    def forget(self) -> None:
        """Another training begins."""
        self._evaluations = 0
        self._step = -1  # before which the evaluation under way is
        self._values = 0  # that were looked at in it
        self._samples = 0
        self._first: _Sums | None = None  # of its first batch, if there are several
        self._all: _Sums | None = None
        self._trained: list[torch.Tensor] = []  # of batches of the training

    def trained(self, inputs: torch.Tensor) -> None:
        """A batch of the training."""
        if len(self._trained) >= _MOST_BATCHES or not _may_be_standardised(inputs):
            return
        if inputs.numel() <= _MOST_VALUES:
            with own_operations():
                self._trained.append(_sums_of(inputs).together())

    def given(self, inputs: torch.Tensor, step: int) -> None:
        """A batch of an evaluation, before so many-th step of the training."""
        if step != self._step:
            if self._evaluations >= _MOST_EVALUATIONS or step == 0:
                return
            self._evaluations += 1
            self._step, self._values, self._samples = step, 0, 0
            self._first = self._all = None
        is_known = self._values == 0 and self._rows.are_any_trained(inputs)
        if is_known or not _may_be_standardised(inputs):
            self._values = _MOST_VALUES + 1
        self._values += inputs.numel()
        self._samples += inputs.shape[0] if inputs.dim() > 0 else 0
        if self._values > _MOST_VALUES:
            self._first = self._all = None
            return
        with own_operations():
            sums = _sums_of(inputs)
            if self._all is None:
                self._all = sums
            elif self._all.powers.shape == sums.powers.shape:
                self._first = self._first or self._all
                self._all = self._all.plus(sums)
            else:
                self._values = _MOST_VALUES + 1

    def ask(self, later: Later, told: Callable[[Own], None], is_over: bool = False) -> None:
        """Tells of the evaluation that is over, once; `is_over`: the training is, too."""
        every, first = self._all, self._first
        self._all = self._first = None
        if every is None or self._rows.known < _REMEMBERED * self._samples:
            return
        if is_over and self._samples >= _ALL * self._rows.known:
            return  # all data, perhaps, of which that of the training is not the first
        if self._rows.batch == self._samples:
            return  # perhaps all of the training's data, of which other values are dropped
        asked = [every.together(), *([] if first is None else [first.together()])]
        batches = len(asked)
        asked += self._trained

        def heard(values: list[torch.Tensor]) -> None:
            found = _judge(values[0])
            trained = values[batches:]
            is_each = batches > 1 and _judge(values[1]).own_columns > 0
            if len(trained) == _MOST_BATCHES and not torch.equal(*trained):
                is_each = is_each or all(_judge(each).own_columns > 0 for each in trained)
            told(found._replace(own_columns=0) if is_each else found)

        later.ask("loop", asked, heard)


def _may_be_standardised(inputs: torch.Tensor) -> bool:
    return (
        type(inputs) is torch.Tensor
        and inputs.is_floating_point()
        and inputs.layout is torch.strided
        and (inputs.dim() == 2 or inputs.dim() >= 4)
        and inputs.numel() > 0
        and inputs.shape[1] <= _MOST_COLUMNS
        and not inputs.is_meta
        and not capturing_graph(inputs)
    )


def _sums_of(inputs: torch.Tensor) -> _Sums:
    """Of each column, or channel."""
    each = inputs.detach().to(widest_of(inputs)).movedim(1, -1)
    each = each.reshape(each.shape[0], -1, each.shape[-1])  # samples, places, columns
    square = each.square()
    count = torch.full_like(each[0, 0], each.shape[0] * each.shape[1])
    sums = (each.sum((0, 1)), square.sum((0, 1)), square.square().sum((0, 1)))
    of_samples = each[:_SAMPLES].mean(1).abs().amax(0) * each.shape[1] ** 0.5
    return _Sums(torch.stack([count, *sums]), of_samples.unsqueeze(0))


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
    is_of_all = of_samples > _OF_ITSELF
    is_own = (mean.abs() < _EXACT) & is_one & has_more_values & varies & is_of_all
    return Own(int(is_own.sum()), int(varies.sum()), rows)
