"""Whether what is evaluated was trained on: rows of the model's input, known again by fingerprints.

Of some batches a few rows are looked at, and of each row some values that are always at the same
places. Two fingerprints are made of a row, of the first and of the second half of these values:
where rows are alike because there are few different ones (words of a small grammar, bits), many
are alike in one half only, and where the same data is there twice, hardly any is.

What is kept are numbers: at most 16,384 rows. Fingerprints are made on the input's device, and are
read when the step ends, where there is a wait for the device anyway.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from traindbg.hooks.torch_device import capturing_graph, own_operations
from traindbg.hooks.torch_passes import Batch, Pass, Passes, RowsAgain

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_ROWS = 64  # of a batch
_MOST_VALUES = 256  # of a row
_MOST_KNOWN = 16_384
_MOST_UNSCORED = 4096  # batches, in all
_MOST_UNREAD = 48
_FEWEST_AGAIN = 40
_INTEGER = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _odd_numbers(count: int) -> list[int]:
    """Of 64 bits, always the same ones (splitmix64)."""
    numbers, state = [], 0
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) % 2**64
        mixed ^= mixed >> 31
        numbers.append((mixed | 1) - 2**63)
    return numbers


_factors: dict[torch.device, torch.Tensor] = {}


def _factors_on(device: torch.device) -> torch.Tensor:
    known = _factors.get(device)
    if known is None:
        known = _factors[device] = torch.tensor(_odd_numbers(_MOST_VALUES), device=device)
    return known


def fingerprints(inputs: torch.Tensor) -> torch.Tensor | None:
    """Two for each of the first rows of a batch: a tensor [rows, 2] on the batch's device.

    None where there are none: of what has no rows, or a single value in each.
    """
    if type(inputs) is not torch.Tensor or inputs.layout is not torch.strided or inputs.dim() < 2:
        return None
    rows = inputs.shape[0]
    values = inputs.numel() // max(rows, 1)
    if rows < 2 or values < 2 or inputs.is_complex() or inputs.is_quantized or inputs.is_conj():
        return None
    if capturing_graph(inputs):
        return None
    with own_operations():
        x = inputs.detach()[:_MOST_ROWS].reshape(min(rows, _MOST_ROWS), -1)
        if values > _MOST_VALUES:
            places = torch.arange(_MOST_VALUES, device=x.device) * values // _MOST_VALUES
            x = x[:, places]
        bits = x.contiguous().view(_INTEGER[x.element_size()]).to(torch.int64)
        mixed = bits * _factors_on(bits.device)[: bits.shape[1]]
        middle = bits.shape[1] // 2
        return torch.stack([mixed[:, :middle].sum(1), mixed[:, middle:].sum(1)], 1)


def changes(inputs: torch.Tensor) -> torch.Tensor:
    """Of each row that has fingerprints: how often a value differs from the one before."""
    with own_operations():
        x = inputs.detach()[:_MOST_ROWS]
        x = x.reshape(x.shape[0], -1)[:, : 4 * _MOST_VALUES]
        return (x[:, 1:] != x[:, :-1]).sum(1)


def _pairs(values: Iterable[int]) -> int:
    """How many pairs are equal."""
    return sum(count * (count - 1) // 2 for count in Counter(values).values())


class Evaluated(NamedTuple):
    """What is told of a batch that was evaluated, as facts `loop/<field>`."""

    rows_evaluated: int
    rows_evaluated_trained: int  # of these, those that the training had
    rows_evaluated_half_alike: int  # and those of which it had both halves, but in other rows
    rows_known: int  # of the training
    rows_of_training: float  # that there are, by the size of a loader or tensor; 0: not known
    rows_looked_at: int  # of the training's batches, also the same again
    rows_pairs: int  # of rows within these batches
    rows_alike: int  # pairs that are equal
    rows_half_alike: int  # pairs that are equal in one half only, of the half where fewer are
    rows_as_in_training: int  # 1: the batch has as many as the training's


class Unscored(NamedTuple):
    """The same of batches for which no loss was computed, between two steps of the training."""

    rows_unscored_batches: int
    rows_unscored: int
    rows_unscored_trained: int
    rows_unscored_half_alike: int
    rows_unscored_longest_without: int  # rows in a row, of batches that have none of the training's


class InTrainingMode(NamedTuple):
    """Of batches that a model in training mode was given without gradients and without a loss."""

    rows_in_train_mode_batches: int
    rows_in_train_mode: int
    rows_in_train_mode_trained: int
    rows_in_train_mode_steps: int  # of the training that had such batches before them


class Labelled(NamedTuple):
    """Of rows of the training that came again with a class."""

    rows_again: int
    rows_again_changed: int  # of these, those that had another class before
    rows_again_by_chance: float  # the share of them, if classes were drawn anew each time


class _Unread(NamedTuple):
    """Fingerprints that were not read yet."""

    rows: int | None  # of the batch, if it was evaluated
    prints: torch.Tensor
    labels: torch.Tensor | None = None  # of the first rows, of a batch of the training
    others: torch.Tensor | None = None  # fingerprints of its further inputs
    drawn: _Drawn | None = None  # a batch of a pass that gives each row once


class _Drawn(NamedTuple):
    """See `torch_passes.Batch`."""

    of: Pass
    step: int
    changes: torch.Tensor
    values: int
    are_classes: bool = False
    is_whole: bool = True  # all that belongs to a row was seen


class Rows:
    """What is remembered of the rows of one training. One per recording, one thread."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Another training begins."""
        self._known: set[int] = set()
        self._halves: tuple[set[int], set[int]] = (set(), set())
        self._looked_at = self._pairs = self._alike = 0
        self._half_alike = [0, 0]
        self._batch = 0  # rows of the training's last batch
        self._of_training = 0.0
        self._unread: list[_Unread] = []  # in order
        self._is_open = False  # the last of them is of the training and has no labels yet
        self._passes = Passes()
        self._classes: dict[int, int] = {}  # by the rows' fingerprints
        self._of_class: Counter[int] = Counter()
        self._again = self._changed = self._twice = 0
        self._by_chance = 0.0  # how many came again because rows are alike
        self._was_told = False
        # Of a batch without gradients and without a loss yet: rows, fingerprints, if the model is
        # in evaluation mode, and the step of the training.
        self._waiting: tuple[int, torch.Tensor, bool, int] | None = None
        # Of evaluations that had none, and whether the model was in evaluation mode.
        self._unscored: list[tuple[torch.Tensor, bool]] = []
        self._unscored_seen = 0
        self._in_training_at = -1  # the last step with one in training mode
        self._in_training_steps = 0  # such steps since they were read

    @property
    def wait(self) -> bool:
        """Whether there is something to read."""
        return bool(self._unread)

    def _pass_on(self) -> None:
        """No loss was computed of the batch that was waited for."""
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return
        _, prints, in_evaluation_mode, step = waiting
        if not in_evaluation_mode and step != self._in_training_at:
            self._in_training_at = step
            self._in_training_steps += 1
        if len(self._unscored) < _MOST_UNREAD and self._unscored_seen < _MOST_UNSCORED:
            self._unscored_seen += 1
            self._unscored.append((prints, in_evaluation_mode))

    def trained(
        self, inputs: torch.Tensor, batches: float, of: Pass | None = None, step: int = 0
    ) -> None:
        """A batch of the training, of so many; 1: that is not known.

        `of`: the pass over the data, if that gives each row once.
        """
        self._pass_on()
        self._is_open = False
        prints = fingerprints(inputs)
        if prints is not None:
            self._batch = inputs.shape[0]
            if batches > 1:
                self._of_training = max(self._of_training, batches * self._batch)
            drawn = None
            if of is not None:
                drawn = _Drawn(of, step, changes(inputs), inputs.numel() // self._batch)
            self._unread.append(_Unread(None, prints, drawn=drawn))
            self._is_open = True

    def further_input(self, inputs: torch.Tensor) -> None:
        """The training's batch has it, too: the first alone does not say which label belongs."""
        if not self._is_open:
            return
        dense = type(inputs) is torch.Tensor and inputs.layout is torch.strided
        if not dense or inputs.dim() < 1 or inputs.shape[0] != self._batch:
            self.more_belongs()
            return
        with own_operations():
            x = inputs.detach()[:_MOST_ROWS].reshape(min(self._batch, _MOST_ROWS), -1)
            found = fingerprints(torch.cat([x, x], 1))  # a single value, too
        if found is None:
            self.more_belongs()
            return
        last = self._unread[-1]
        with own_operations():
            mixed = found[:, 0] if last.others is None else last.others * 31 + found[:, 0]
        self._unread[-1] = last._replace(others=mixed)

    def more_belongs(self) -> None:
        """To the rows of the training's batch than is seen of them."""
        self._is_open = False
        self.called_again()

    def called_again(self) -> None:
        """The model is, in this step, with other rows or with more of the same."""
        if not self._unread:
            return
        last = self._unread[-1]
        if last.drawn is not None:
            self._unread[-1] = last._replace(drawn=last.drawn._replace(is_whole=False))

    def labelled(self, labels: Any, are_classes: bool = False) -> None:
        """A loss was given these for the training's batch, and a score for each class."""
        is_open, self._is_open = self._is_open, False
        if not is_open or type(labels) is not torch.Tensor or labels.numel() != self._batch:
            return
        if labels.is_complex() or labels.requires_grad or capturing_graph(labels):
            return
        with own_operations():
            kept = labels.detach().reshape(-1)[:_MOST_ROWS].clone()
        last = self._unread[-1]
        drawn = None if last.drawn is None else last.drawn._replace(are_classes=are_classes)
        self._unread[-1] = last._replace(labels=kept, drawn=drawn)

    def given(self, inputs: torch.Tensor, in_evaluation_mode: bool, step: int) -> None:
        """A batch of what may be an evaluation, before so many-th step of the training."""
        self._pass_on()
        prints = fingerprints(inputs)
        self._waiting = (
            None if prints is None else (inputs.shape[0], prints, in_evaluation_mode, step)
        )

    def evaluated(self) -> None:
        """A loss was computed of it, without gradients."""
        if self._waiting is not None:
            self._unread.append(_Unread(*self._waiting[:2]))
            self._is_open = False
            self._waiting = None

    def read(self) -> list[Evaluated]:
        """Reads what waits. Waits for a device."""
        unread, self._unread = self._unread, []
        self._is_open = False
        found: list[Evaluated] = []
        if any(capturing_graph(each.prints) for each in unread):
            return found  # reading would break the capture
        for size, prints, labels, others, drawn in unread:
            if size is None:
                rows = prints.tolist()
                self._learn(rows)
                more = [] if others is None else others.tolist()
                for row, other in zip(rows, more, strict=False):
                    row.append(other)
                of_rows = None if labels is None else labels.tolist()
                if of_rows is not None:
                    self._remember(rows, of_rows)
                if drawn is not None:
                    self._pass(drawn, rows, of_rows)
            else:
                found.append(self._compare(size, prints.tolist()))
        return found

    def _pass(self, drawn: _Drawn, rows: list[list[int]], labels: list[float] | None) -> None:
        if not drawn.is_whole:
            self._passes.unknown()
            return
        changed = drawn.changes.tolist()
        of, step, values, kinds = drawn.of, drawn.step, drawn.values, drawn.are_classes
        batch = Batch(of, step, self._batch, changed, values, kinds)
        self._passes.batch(batch, rows, labels)

    def read_again(self) -> RowsAgain | None:
        """What is known of rows that come several times in one pass, after `read`."""
        return self._passes.told()

    def read_labelled(self) -> Labelled | None:
        """What is known of rows that came again, after `read`. None: too little, or all alike.

        None of them, once that shows after all.
        """
        are_alike = 20 * self._twice > len(self._classes) or self._again <= 2 * self._by_chance
        if self._again < _FEWEST_AGAIN or are_alike:
            return Labelled(0, 0, 0.0) if self._was_told else None
        self._was_told = True
        count = self._of_class.total()
        same = sum(n * n for n in self._of_class.values()) / (count * count)
        return Labelled(self._again, self._changed, 1 - same)

    def _remember(self, rows: list[list[int]], labels: list[float]) -> None:
        """The rows' classes; numbers that differ for each row are none."""
        if len(set(labels)) == len(labels):
            return
        if not all(math.isfinite(label) and label == int(label) for label in labels):
            return
        whole = [hash(tuple(row)) for row in rows]
        often = Counter(whole)
        equal = self._alike / max(self._pairs, 1)  # the chance that two rows are
        self._by_chance += equal * len(self._classes) * len(whole)
        for row, label in zip(whole, map(int, labels), strict=False):
            if often[row] > 1:
                self._twice += 1  # what stands for many has many labels
            elif row in self._classes:
                self._again += 1
                self._changed += self._classes[row] != label
            elif len(self._classes) < _MOST_KNOWN:
                self._classes[row] = label
                self._of_class[label] += 1

    def read_unscored(self) -> tuple[Unscored | None, InTrainingMode | None]:
        """Of the batches that waited for a loss in vain; before `read`. None: there are none.

        Waits for a device.
        """
        batches, self._unscored = self._unscored, []
        steps, self._in_training_steps = self._in_training_steps, 0
        if any(capturing_graph(prints) for prints, _ in batches) or not self._known:
            return None, None
        evaluated = [
            prints.tolist() for prints, in_evaluation_mode in batches if in_evaluation_mode
        ]
        others = [
            prints.tolist() for prints, in_evaluation_mode in batches if not in_evaluation_mode
        ]
        trained = half = without = longest = 0
        for rows in evaluated:
            known, alike = self._count(rows)
            trained += known
            half += alike
            without = 0 if known else without + len(rows)
            longest = max(longest, without)
        count = sum(map(len, evaluated))
        unscored = Unscored(len(evaluated), count, trained, half, longest)
        trained = sum(self._count(rows)[0] for rows in others)
        in_training = InTrainingMode(len(others), sum(map(len, others)), trained, steps)
        return unscored if evaluated else None, in_training if others else None

    def standing(self) -> Evaluated:
        """What is known of the training, as with a batch of no rows."""
        return self._compare(0, [])

    def _learn(self, rows: list[list[int]]) -> None:
        whole = [hash(tuple(row)) for row in rows]
        alike = _pairs(whole)
        self._looked_at += len(rows) if len(self._known) < _MOST_KNOWN else 0
        self._pairs += len(rows) * (len(rows) - 1) // 2
        self._alike += alike
        for half in (0, 1):
            self._half_alike[half] += _pairs(row[half] for row in rows) - alike
        if len(self._known) < _MOST_KNOWN:
            self._known.update(whole)
            for half in (0, 1):
                self._halves[half].update(row[half] for row in rows)

    def _count(self, rows: list[list[int]]) -> tuple[int, int]:
        """How many rows the training had, and of how many others it had both halves."""
        known = [hash(tuple(row)) in self._known for row in rows]
        half = sum(
            not is_known and row[0] in self._halves[0] and row[1] in self._halves[1]
            for is_known, row in zip(known, rows, strict=True)
        )
        return sum(known), half

    def _compare(self, size: int, rows: list[list[int]]) -> Evaluated:
        known, half = self._count(rows)
        return Evaluated(
            len(rows),
            known,
            half,
            len(self._known),
            self._of_training,
            self._looked_at,
            self._pairs,
            self._alike,
            min(self._half_alike),
            int(size == self._batch),
        )
