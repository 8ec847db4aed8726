"""Rows that come several times within one pass over data of which each is drawn once.

Whether a pass is of that kind, and how long it is, a `DataLoader` says by its sampler. The core
remembers the rows (`capture/row_passes.h`); `data.rows` says which batches are of the pass.
"""

from __future__ import annotations

from typing import NamedTuple


class Pass(NamedTuple):
    """One pass over the data."""

    number: int  # counts from 1
    rows: int  # that it has


class RowsAgain(NamedTuple):
    """What is told of the pass of which most was seen, as facts `loop/<field>`."""

    pass_rows: int  # that were looked at
    pass_rows_of: int  # that the pass has
    pass_rows_again: int  # of those looked at, those that came before in the pass
    pass_rows_most: int  # how often the row came that came most often
    pass_rows_distinct: int  # rows that differ from all others
    pass_rows_effective: float  # so many rows that come equally often have as much weight
    pass_rows_distinct_in_class: (
        int  # the last two of the rows of each class that is known, added up
    )
    pass_rows_effective_in_class: float
    pass_rows_half_again: int  # of which one half only did, of the half where fewer did
    pass_rows_labelled: int  # that came before, of those of which both classes are known
    pass_rows_contradicting: int  # of these, those of another class than before
    pass_rows_by_chance: float  # the share of them, if classes were dealt out anew
    pass_row_before_step: int  # an example: a row, and the step and place where it came before
    pass_row_before: int
    pass_row_again_step: int
    pass_row_again: int
