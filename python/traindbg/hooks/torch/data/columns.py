"""Whether a column of the inputs tells the label.

What is handed in is looked at only, and nothing of it is kept. All is computed where the inputs
lie, and nothing waits for a device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Union

import torch

from traindbg.hooks.torch.base.device import widest_of
from traindbg.hooks.torch.base.later import may_read
from traindbg.hooks.torch.data.joined import Begins, Together, begins_with_last, scaled_with_input
from traindbg.hooks.torch.data.planes import Planes, copied_planes

_FEWEST_STEPS = 3  # of a series
_FEWEST_ROWS = 24  # with fewer, two columns of zeros and ones are alike by chance
_MOST_VALUES = 1 << 20
_MOST_IN_GROUP = 12  # rows, of which a mean is known by its fraction
_OF_MORE = 0.1  # share of the rows in between that may be of larger groups
_FRACTION = 1e-5  # by which a fraction may be off by rounding
_FEWEST_FILLED = 4  # rows, of a column that is filled in for some
_FEWEST_BEYOND = 8  # rows more than columns that are to add up to the label, and other rows
_MOSTLY = 0.8  # of amounts: so many differ
_SAME = 1e-3  # deviations, by which values of one column may differ by rounding


def is_table(inputs: torch.Tensor) -> bool:
    """Whether it may be rows of real numbers, or series of them, with a label each."""
    return inputs.is_floating_point() and inputs.dim() in (2, 3)


class Closest(NamedTuple):
    """The column whose correlation with the labels is the largest: one value each."""

    correlation: torch.Tensor  # its size
    column: torch.Tensor
    is_at_the_end: bool  # of series, whose last steps were looked at


def closest_column(inputs: torch.Tensor, labels: torch.Tensor) -> Closest | None:
    """Of a table of inputs, the size of the largest correlation with the labels, and its column.

    Of series the last step is looked at: there a window is that ends too late. None where they are
    no real numbers with one label for each row, or too many or too few of them. Cost: one pass over
    the table, in float64.
    """
    rows = labels.numel()
    if (
        rows < _FEWEST_ROWS
        or inputs.numel() > _MOST_VALUES
        or not inputs.is_floating_point()
        or inputs.layout is not torch.strided
        or labels.layout is not torch.strided
        or labels.is_complex()
        or labels.device != inputs.device
    ):
        return None
    ends = _last_steps(inputs, rows)
    if ends is None and (inputs.dim() != 2 or inputs.shape[0] != rows or inputs.shape[1] < 2):
        return None
    wide = widest_of(inputs)
    parts = [inputs] if ends is None else ends
    table = torch.cat([part.detach().to(wide) for part in parts], 1)
    table = table - table.mean(0)
    wanted = labels.detach().reshape(rows).to(wide)
    wanted = wanted - wanted.mean()
    # A column that is constant has no correlation.
    size = (table.square().sum(0) * wanted.square().sum()).sqrt()
    found = torch.where(size > 0, (wanted @ table).abs() / size.clamp_min(1e-300), 0.0)
    value = found.max()
    # What two parts share is in both of them: the first one, whichever rounding makes the larger.
    column = (found >= value - 1e-9).int().argmax()
    first = parts[0].shape[1]
    return Closest(value, torch.where(column < first, column, column - first), ends is not None)


def _last_steps(inputs: torch.Tensor, rows: int) -> list[torch.Tensor] | None:
    """Of as many series the last step, as one table; as two where either of two sizes may be steps.

    Series are (rows, steps, values) or (steps, rows, values), as of recurrent layers, or (rows,
    channels, steps), as of convolutions, where there are more steps than channels. None: no series,
    or one without values.
    """
    if inputs.dim() != 3 or inputs.numel() == 0:
        return None
    if inputs.shape[0] != rows:
        is_series = inputs.shape[1] == rows and inputs.shape[0] >= _FEWEST_STEPS
        return [inputs[-1]] if is_series else None
    ends = []
    if inputs.shape[2] >= _FEWEST_STEPS and inputs.shape[1] < inputs.shape[2]:
        ends.append(inputs[..., -1])
    if inputs.shape[1] >= _FEWEST_STEPS:
        ends.append(inputs[:, -1])
    return ends or None


class OneSided(NamedTuple):
    """The column that tells a label of two best by its usual value: one value each."""

    agreement: torch.Tensor  # share of rows; 0 where no column has other values for one label alone
    column: torch.Tensor
    rows: torch.Tensor  # that have another value than the usual one


def one_sided_column(inputs: torch.Tensor, labels: torch.Tensor) -> OneSided | None:
    """Of a table, the column that tells a label of two best by whether it has its usual value.

    A column that is filled in only once the label is known (a recovery after a default) has its
    usual value, mostly 0, in all rows of the one label, and in few of the other. None where it is
    no table with one label of 0 or 1 for each row. Cost: a sort of each column.
    """
    rows = labels.numel()
    if not _is_table_of(inputs, labels, rows) or inputs.numel() > _MOST_VALUES // 16:
        return None
    table, wanted = inputs.detach(), labels.detach().reshape(rows, 1)
    is_one, is_zero = wanted == 1, wanted == 0
    is_other = table != table.mode(0).values
    ones, zeros = (is_other & is_one).sum(0), (is_other & is_zero).sum(0)
    agree_one = ones + (~is_other & is_zero).sum(0)
    agree_zero = zeros + (~is_other & is_one).sum(0)
    is_binary = (is_one | is_zero).all() & is_one.any() & is_zero.any()
    agree = torch.maximum(agree_one * (zeros == 0), agree_zero * (ones == 0)) * is_binary
    best, column = agree.max(0)
    other = (ones + zeros).index_select(0, column.reshape(1)).squeeze(0)  # waits for no device
    return OneSided(best / rows, column, other)


class Beyond(NamedTuple):
    """Of a column beyond one value of which lie all rows of one label: one value each."""

    columns: torch.Tensor  # there are so many of them; the rest is of the first
    column: torch.Tensor
    is_above: torch.Tensor  # the rows of label 1 lie above those of label 0, else below
    low: torch.Tensor  # the largest value of the lower ones
    high: torch.Tensor  # the smallest value of the upper ones
    deviation: torch.Tensor  # of the column's values
    fewer: torch.Tensor  # rows of the label that has fewer
    others: torch.Tensor  # what the other columns tell of the label: 1 where that is chance
    rows: int


def column_beyond(inputs: torch.Tensor, labels: torch.Tensor) -> Beyond | None:
    """Whether one value of a column parts the rows of label 0 from those of label 1.

    So does a number that the label was made of by a limit (a delay of fifteen minutes and more is
    "late"). `others` is the mean of (rows - 1) r² of the other columns, r being their correlation
    with the label. None where it is no table with one label of 0 or 1 for each row. Cost: seven
    passes over the table.
    """
    rows = labels.numel()
    if not _is_table_of(inputs, labels, rows) or inputs.numel() > _MOST_VALUES:
        return None
    table, wanted = inputs.detach(), labels.detach().reshape(rows, 1)
    is_one, is_zero = wanted == 1, wanted == 0
    ones, zeros = is_one.sum(), is_zero.sum()
    first_one = table.masked_fill(~is_one, math.inf).amin(0)
    last_one = table.masked_fill(~is_one, -math.inf).amax(0)
    first_zero = table.masked_fill(~is_zero, math.inf).amin(0)
    last_zero = table.masked_fill(~is_zero, -math.inf).amax(0)
    is_above, is_below = first_one > last_zero, first_zero > last_one
    is_known = (is_one | is_zero).all() & (ones > 0) & (zeros > 0) & table.isfinite().all()
    parts = (is_above | is_below) & is_known
    column = parts.int().argmax()
    # Chosen by `index_select`, since an index that is a tensor waits for the device.
    picked = column.reshape(1)

    def of(values: torch.Tensor) -> torch.Tensor:
        return values.index_select(-1, picked).squeeze(-1)

    above = of(is_above)
    told = _told_by_each(table, is_one)
    return Beyond(
        parts.sum(),
        column,
        above,
        torch.where(above, of(last_zero), of(last_one)),
        torch.where(above, of(first_one), of(first_zero)),
        of(table.std(0)),
        torch.minimum(ones, zeros),
        (told.sum() - of(told)) / (told.numel() - 1),
        rows,
    )


class Ordered(NamedTuple):
    """Of a column whose values are in the same order as the labels: one value each."""

    columns: torch.Tensor  # there are so many of them; the rest is of the first
    column: torch.Tensor
    is_falling: torch.Tensor  # the larger the label, the smaller the column's value
    is_as_given: torch.Tensor  # the rows were in that order, or the reverse one, as they came
    labels: torch.Tensor  # that differ from each other
    others: torch.Tensor  # what the other columns tell of the label: 1 where that is chance
    rows: int


def ordered_column(inputs: torch.Tensor, labels: torch.Tensor) -> Ordered | None:
    """Whether the rows are in one and the same order by a column and by their labels.

    So are they where the label was made of the column by a curve, as a logarithm of a price of the
    price; and by a column of times, where both go one way and rows come one after the other, which
    `is_as_given` says. Of labels that are equal, the column's values must be, but for rounding, and
    half of the rows must have another value than the one before. A column with a value that is not
    finite is none, and tells nothing. `others` is as of `column_beyond`. None where it is no table
    of three columns or more with one label of floating point for each row, and in host memory where
    fewer than half of the labels differ, or too few. Cost: a sort of the
    labels, and about twenty passes over the table.
    """
    rows = labels.numel()
    if not _is_table_of(inputs, labels, rows) or inputs.numel() > _MOST_VALUES:
        return None
    if inputs.shape[1] < 3 or not labels.is_floating_point():
        return None
    wide = widest_of(inputs)
    given = labels.detach().reshape(rows).to(wide)
    follows = given.diff()
    wanted, order = given.sort(stable=True)
    is_larger = wanted.diff().reshape(rows - 1, 1) > 0
    # Of yes and no, and of classes, nothing is to be compared; on other devices asking would wait.
    if may_read(given) and int(is_larger.sum()) + 1 < max(_FEWEST_ROWS, rows / 2):
        return None
    table = inputs.detach().to(wide).index_select(0, order)
    is_finite = table.isfinite().all(0)
    table = torch.where(is_finite, table, 0.0)
    rise = table.diff(dim=0)
    equal = rise.abs() <= _SAME * table.std(0)
    rising = torch.where(is_larger, rise >= 0, equal).all(0)
    falling = torch.where(is_larger, rise <= 0, equal).all(0)
    moves = 2 * (rise != 0).sum(0) >= rows
    is_ordered = (rising | falling) & moves & wanted.isfinite().all()
    column = is_ordered.int().argmax()
    picked = column.reshape(1)
    told = _told_by_each(table, wanted.reshape(rows, 1))
    return Ordered(
        is_ordered.sum(),
        column,
        falling.index_select(0, picked).squeeze(0),
        (follows >= 0).all() | (follows <= 0).all(),
        is_larger.sum() + 1,
        (told.sum() - told.index_select(0, picked).squeeze(0)) / (told.numel() - 1),
        rows,
    )


class GroupMeans(NamedTuple):
    """Of a column that is the mean label of few rows, the own one among them: one value each."""

    columns: torch.Tensor  # there are so many of them; the rest is of the first
    column: torch.Tensor
    least: torch.Tensor  # its value where all labels of a group are 0
    most: torch.Tensor  # and where all are 1
    none: torch.Tensor  # rows with that least value, all of them of label 0
    all: torch.Tensor  # rows with that most value, all of them of label 1
    low: torch.Tensor  # rows in between, below one half
    low_excess: torch.Tensor  # of them, labels 1 beyond what the means say
    low_variance: torch.Tensor  # of that, by chance
    high: torch.Tensor  # rows in between, from one half on
    high_excess: torch.Tensor
    high_variance: torch.Tensor
    sizes: torch.Tensor  # of the groups: bit n is set where one of n rows is needed


def group_means_column(inputs: torch.Tensor, labels: torch.Tensor) -> GroupMeans | None:
    """Whether a column is the mean of the labels of a few rows, of which the own one is one.

    So it is where a publisher's or a street's rows give their mean label (target encoding) and a
    row counts in its own. Between its least and its greatest value such a column has fractions of
    small whole numbers; all rows with the least one have label 0, since none of theirs is 1, all
    with the greatest one label 1. In between the share of labels 1 is the fraction itself. None
    where it is no table with one label of 0 or 1 for each row. Cost: about sixty passes over the
    table.
    """
    rows = labels.numel()
    if not _is_table_of(inputs, labels, rows) or inputs.numel() > _MOST_VALUES // 16:
        return None
    wide = widest_of(inputs)
    table, wanted = inputs.detach().to(wide), labels.detach().reshape(rows, 1)
    is_one, is_zero = wanted == 1, wanted == 0
    least, most = table.amin(0), table.amax(0)
    share = (table - least) / (most - least).clamp_min(1e-30)
    left = torch.ones_like(share, dtype=torch.bool)  # of no number of rows up to now
    sizes = torch.zeros_like(least, dtype=torch.int64)
    for size in range(1, _MOST_IN_GROUP + 1):
        parts = share * size
        fits = ((parts - parts.round()).abs() <= _FRACTION * size) & left
        left = left & ~fits
        sizes = sizes + fits.any(0) * (1 << size)
    at_least, at_most = share <= _FRACTION, share >= 1 - _FRACTION
    between = ~at_least & ~at_most
    low, high = between & (share < 0.5), between & (share >= 0.5)
    excess, variance = is_one.to(wide) - share, share * (1 - share)
    is_known = (is_one | is_zero).all() & table.isfinite().all(0) & (most > least)
    is_pure = ~(at_least & is_one).any(0) & ~(at_most & is_zero).any(0)
    are_any = between.any(0)
    is_of_few = left.sum(0) <= _OF_MORE * between.sum(0)
    are_means = is_known & is_pure & is_of_few & are_any
    column = are_means.int().argmax()
    picked = column.reshape(1)

    def of(values: torch.Tensor) -> torch.Tensor:
        return values.index_select(-1, picked).squeeze(-1)

    return GroupMeans(
        are_means.sum(),
        column,
        of(least),
        of(most),
        of(at_least.sum(0)),
        of(at_most.sum(0)),
        of(low.sum(0)),
        of((excess * low).sum(0)),
        of((variance * low).sum(0)),
        of(high.sum(0)),
        of((excess * high).sum(0)),
        of((variance * high).sum(0)),
        of(sizes),
    )


class Parts(NamedTuple):
    """Of columns that are filled in for some rows: whether they add up to the label there."""

    columns: int  # there are so many of them
    column: int  # the first one
    rows: int  # in which one or more is filled in
    error: float  # of the best sum of them there, at most, in standard deviations of these labels
    others: float  # deviation of the other labels, as a share of that of all


def parts_of_label(inputs: torch.Tensor, labels: torch.Tensor) -> Parts | None:
    """How well columns with a usual value add up to the label in the rows where they have others.

    So they do where a row's label was taken apart after it was known, as a delay by its causes or
    a bill by its items, and rows that were no case for it have zeros. The usual value is that of
    half of the rows or more, the others are hardly ever the same, as amounts are. None where it is
    no table of three columns or more with one label of floating point for each row, where no column
    is such a one or too few rows are, and on other devices, of which nothing is read. Cost: a sort
    of the columns, and a least squares fit of a few of them.
    """
    rows = labels.numel()
    if not _is_table_of(inputs, labels, rows) or inputs.numel() > _MOST_VALUES // 16:
        return None
    if inputs.shape[1] < 3 or not labels.is_floating_point() or not may_read(labels):
        return None
    table = inputs.detach().to(torch.float64)
    wanted = labels.detach().reshape(rows).to(torch.float64)
    if not bool(table.isfinite().all() & wanted.isfinite().all()):
        return None
    usual = table.median(0).values
    is_other = table != usual
    counts = is_other.sum(0)
    often = ((counts >= _FEWEST_FILLED) & (2 * counts <= rows)).nonzero().flatten().tolist()
    columns = [at for at in often if _are_amounts(table[is_other[:, at], at])]
    filled = is_other[:, columns].any(1)
    there, elsewhere = wanted[filled], wanted[~filled]
    left_over = [at for at in range(table.shape[1]) if at not in columns]
    if (
        len(columns) < 2
        or _tells(table[:, left_over], filled)  # the author knows where they are filled in
        or len(there) < len(columns) + _FEWEST_BEYOND
        or len(elsewhere) < _FEWEST_BEYOND
        or not _are_amounts(there)
    ):
        return None
    terms = table[filled][:, columns] - usual[columns]
    terms = torch.cat([terms / terms.std(0).clamp_min(1e-30), terms.new_ones(len(terms), 1)], 1)
    goal = (there - there.mean()) / there.std()
    best = torch.linalg.lstsq(terms, goal.unsqueeze(1), driver="gelsd").solution
    left = goal - (terms @ best).squeeze(1)
    return Parts(
        len(columns),
        columns[0],
        len(there),
        float(left.abs().max()),
        float(elsewhere.std() / wanted.std()),
    )


def _tells(columns: torch.Tensor, mask: torch.Tensor) -> bool:
    """Whether one of them has one value where the mask is set, and another one elsewhere."""
    inside, outside = columns[mask], columns[~mask]
    if inside.numel() == 0 or outside.numel() == 0:
        return False
    are_same = (inside == inside[0]).all(0) & (outside == outside[0]).all(0)
    return bool((are_same & (inside[0] != outside[0])).any())


def _are_amounts(values: torch.Tensor) -> bool:
    """Whether hardly any of them is another one's equal."""
    return bool(values.unique().numel() > _MOSTLY * values.numel())


def _told_by_each(table: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """(rows - 1) r² of each column, r being its correlation with the labels: 1 by chance."""
    wide = widest_of(table)
    table, label = table.to(wide), labels.to(wide)
    centred, label = table - table.mean(0), label - label.mean()
    size = centred.square().sum(0) * label.square().sum()
    return (label * centred).sum(0).square() / size.clamp_min(1e-30) * (labels.shape[0] - 1)


def _is_table_of(inputs: torch.Tensor, labels: torch.Tensor, rows: int) -> bool:
    """Rows and two columns or more of floating point, and one label for each row."""
    return (
        inputs.dim() == 2
        and inputs.shape[0] == rows
        and inputs.shape[1] >= 2
        and rows >= _FEWEST_ROWS
        and inputs.is_floating_point()
        and inputs.layout is torch.strided
        and labels.layout is torch.strided
        and not labels.is_complex()
        and labels.device == inputs.device
    )


Found = Union[
    "Closest",
    "OneSided",
    "Beyond",
    "Ordered",
    "GroupMeans",
    "Parts",
    Together,
    Begins,
    Planes,
    None,
]
Look = Callable[[torch.Tensor, torch.Tensor], Found]
# By the word that stands in the names of what is told.
COLUMNS: dict[str, Look] = {
    "in_input": closest_column,
    "on_one_side": one_sided_column,
    "beyond": column_beyond,
    "ordered": ordered_column,
    "grouped": group_means_column,
    "in_parts": parts_of_label,
    "scaled": scaled_with_input,
    "begins": begins_with_last,
    "in_planes": copied_planes,
}
