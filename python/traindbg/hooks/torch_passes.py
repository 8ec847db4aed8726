"""Rows that come several times within one pass over data of which each is drawn once.

Whether a pass is of that kind, and how long it is, a `DataLoader` says by its sampler. Rows are
known again by their fingerprints (`torch_rows`); those that hold hardly more than one value, as
blank images and padding, are left out. What is kept are numbers of at most 16,384 rows, of the
pass under way.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_ROWS = 16_384
_MOST_CHANGES = 8
_FEWEST_CHANGES = 2


class Pass(NamedTuple):
    """One pass over the data."""

    number: int  # counts from 1
    rows: int  # that it has


class Batch(NamedTuple):
    """What is known of the rows of a batch that was looked at."""

    of: Pass
    step: int  # of the training
    size: int  # of which the first rows were looked at
    changes: list[int]  # of each row, how often neighbours of its values differ
    values: int  # of a row
    are_classes: bool  # a loss was given a score for each class, and the labels say which is right


class RowsAgain(NamedTuple):
    """What is told of the pass of which most was seen, as facts `loop/<field>`."""

    pass_rows: int  # that were looked at
    pass_rows_of: int  # that the pass has
    pass_rows_again: int  # of those looked at, those that came before in the pass
    pass_rows_half_again: int  # of which one half only did, of the half where fewer did
    pass_rows_labelled: int  # that came before, of those of which both classes are known
    pass_rows_contradicting: int  # of these, those of another class than before
    pass_rows_by_chance: float  # the share of them, if classes were dealt out anew
    pass_row_before_step: int  # an example: a row, and the step and place where it came before
    pass_row_before: int
    pass_row_again_step: int
    pass_row_again: int


def _classes_of(labels: Sequence[float]) -> list[int | None]:
    """None where a label is no class, and for all where they are the numbers of rows."""
    if len(set(labels)) == len(labels):
        return []
    return [int(label) if label >= 0 and label == label // 1 else None for label in labels]


class Passes:
    """One per recording, one thread."""

    def __init__(self) -> None:
        self._best: RowsAgain | None = None
        self._of = Pass(0, 0)
        self._begin(self._of, 0)

    def _begin(self, of: Pass, step: int) -> None:
        self._of = of
        self._since = step
        self._is_over = False
        # By fingerprint: the step, the place in the batch, the class if it is known.
        self._first: dict[int, tuple[int, int, int | None]] = {}
        self._halves: tuple[set[int], set[int]] = (set(), set())
        self._looked_at = self._again = self._labelled = self._contradicting = 0
        self._half_again = [0, 0]
        self._classes: Counter[int] = Counter()
        self._example = (0, 0, 0, 0)

    def batch(
        self, batch: Batch, rows: Sequence[Sequence[int]], labels: Sequence[float] | None
    ) -> None:
        """A batch of the training, and of its rows the fingerprints: two halves, other inputs."""
        if batch.of != self._of:
            self._keep()
            self._begin(batch.of, batch.step)
        # What kept its batches may give them again without another pass.
        if (batch.step - self._since + 1) * batch.size >= self._of.rows + batch.size:
            self._is_over = True
        if self._is_over or self._looked_at + len(rows) > _MOST_ROWS:
            return
        whole = [hash(tuple(row)) for row in rows]
        if self._is_replayed(whole):
            return
        classes = _classes_of(labels or []) if batch.are_classes else []
        classes += [None] * (len(rows) - len(classes))
        enough = max(_FEWEST_CHANGES, min(_MOST_CHANGES, batch.values // 2))
        for place, (key, row, kind) in enumerate(zip(whole, rows, classes, strict=False)):
            self._looked_at += 1
            if kind is not None:
                self._classes[kind] += 1
            if batch.changes[place] < enough:
                continue
            before = self._first.get(key)
            if before is not None:
                self._came_again(before, (batch.step, place, kind))
                continue
            self._first[key] = batch.step, place, kind
            for half in (0, 1):
                self._half_again[half] += row[half] in self._halves[half]
                self._halves[half].add(row[half])

    def unknown(self) -> None:
        """More belongs to a row than was seen: of this pass nothing is told."""
        self._is_over = True
        self._looked_at = 0

    def told(self) -> RowsAgain | None:
        """None: no pass was seen, or hardly more than a batch of one."""
        self._keep()
        return self._best

    def _is_replayed(self, whole: list[int]) -> bool:
        """Half of it were together in an earlier batch: one that was given once more."""
        steps = Counter(self._first[key][0] for key in set(whole) if key in self._first)
        return 2 * max(steps.values(), default=0) > len(whole)

    def _came_again(
        self, before: tuple[int, int, int | None], now: tuple[int, int, int | None]
    ) -> None:
        if self._again == 0:
            self._example = (*before[:2], *now[:2])
        self._again += 1
        if before[2] is not None and now[2] is not None:
            self._labelled += 1
            self._contradicting += before[2] != now[2]

    def _keep(self) -> None:
        if self._looked_at == 0 or (self._best and self._looked_at <= self._best.pass_rows):
            return
        count = max(self._classes.total(), 1)
        same = sum(n * n for n in self._classes.values()) / (count * count)
        self._best = RowsAgain(
            self._looked_at,
            self._of.rows,
            self._again,
            min(self._half_again),
            self._labelled,
            self._contradicting,
            1 - same if self._classes else 0.0,
            *self._example,
        )
