"""Whether what is evaluated was trained on: rows of the model's input, known again by fingerprints.

Of some batches a few rows are looked at, and of each row some values that are always at the same
places. Two fingerprints are made of a row, of the first and of the second half of these values:
where rows are alike because there are few different ones (words of a small grammar, bits), many
are alike in one half only, and where the same data is there twice, hardly any is. Of rows that are
padded at their end the second half says nothing: they are also cut into every other value.

Here is what belongs to which rows, and what these are: of the training, or evaluated. The core
makes fingerprints of what it can read in place (`capture/row_prints.h`), and remembers them, of at
most 16,384 rows (`row_memory.h`, `row_passes.h`). On other devices operations make the same ones,
which come over when the step ends (`base.later`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from traindbg import _core
from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.later import brought, may_read
from traindbg.hooks.torch.data.passes import RowsAgain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from traindbg.hooks.torch.base.later import Later
    from traindbg.hooks.torch.data.passes import Pass

# As the core has them.
_MOST_ROWS = 64  # of a batch
_MOST_VALUES = 256  # of a row
_MOST_UNSCORED = 4096  # batches, in all
_MOST_UNREAD = 48
_MOST_WAITING = 2  # batches that a loss may yet be computed of
_MOST_LABELS = 16  # of a row
_FEW_VALUES = 64  # of a row, that are compared over a whole batch
_FEW_ROWS = 4  # by which a batch is known again
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
    """Three for each of the first rows of a batch: a tensor [rows, 3] on the batch's device.

    Of its first, its second and its even half, by operations, on any device. None where there are
    none: of what has no rows, or a single value in each.
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
        halves = mixed[:, :middle], mixed[:, middle:], mixed[:, ::2]
        return torch.stack([half.sum(1) for half in halves], 1)


def changes(inputs: torch.Tensor) -> torch.Tensor:
    """Of each row that has fingerprints: how often a value differs from the one before."""
    with own_operations():
        x = inputs.detach()[:_MOST_ROWS]
        x = x.reshape(x.shape[0], -1)[:, : 4 * _MOST_VALUES]
        return (x[:, 1:] != x[:, :-1]).sum(1)


def _repeats_of_first(inputs: torch.Tensor) -> torch.Tensor:
    """How many rows beyond those that have fingerprints are the first one, by some values."""
    with own_operations():
        x = inputs.detach()
        x = x.reshape(x.shape[0], -1)
        places = torch.arange(_FEW_VALUES, device=x.device) * x.shape[1] // _FEW_VALUES
        return (x[_MOST_ROWS:, places] == x[:1, places]).all(1).sum()


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
    rows_unscored_of: int  # that they have, looked at or not, between the two steps with most
    rows_unscored_batches_of: int  # that the evaluation with most rows has
    rows_unscored_again: int  # evaluations that had the same batches as the first one
    rows_unscored_mixed: int  # rows of batches that have some of the training's, and others
    rows_unscored_mixed_trained: int
    rows_unscored_mixed_batches: int  # such batches, of the evaluation with fewest
    rows_unscored_mixed_of: int  # their rows, looked at or not, of the evaluation with most
    rows_unscored_evaluations: int  # that these batches are of
    rows_alike_labelled_otherwise: int  # of `rows_alike`, pairs with two labels
    rows_held_out: int  # rows of batches that the program calls held out
    rows_held_out_trained: int
    rows_held_out_of: int  # their rows, looked at or not, of the evaluation with most
    rows_held_out_evaluations: int  # that they are of


class InTrainingMode(NamedTuple):
    """Of batches that a model in training mode was given without gradients and without a loss."""

    rows_in_train_mode_batches: int
    rows_in_train_mode: int
    rows_in_train_mode_trained: int
    rows_in_train_mode_steps: int  # of the training that had such batches before them
    # How often the first rows of the last such evaluation came again in it: for draws of dropout.
    rows_in_train_mode_again: float


class Labelled(NamedTuple):
    """Of rows of the training that came again with a class."""

    rows_again: int
    rows_again_changed: int  # of these, those that had another class before
    rows_again_by_chance: float  # the share of them, if classes were drawn anew each time


class _Draws:
    """How often the first rows of an evaluation in training mode come again in it.

    They do where dropout is sampled: batch by batch, pass by pass, or several times in one batch.
    Every batch is asked, and the first few rows of the first one are kept.
    """

    def __init__(self) -> None:
        self._step = -1  # of the training, before which the evaluation is
        self._first: list[tuple[int, int]] = []  # the fingerprints of these rows
        self._found = 0

    @property
    def again(self) -> float:
        """On average, each of them."""
        return self._found / len(self._first) if self._first else 0.0

    def add(self, batch: _Seen) -> None:
        """The next batch, which has come over."""
        halves = batch.prints.halves
        if batch.step != self._step:
            self._step, self._found = batch.step, 0
            self._first, halves = halves[:_FEW_ROWS], halves[_FEW_ROWS:]
        first = set(self._first)
        self._found += sum(row in first for row in halves) + len(self._first) * batch.repeats


class _Seen:
    """A batch whose rows wait to be read."""

    __slots__ = (
        "are_classes",
        "has_further",
        "in_evaluation_mode",
        "is_counted",
        "is_given_to_a_copy",
        "is_held_out",
        "is_trained",
        "is_whole",
        "labels",
        "later",
        "of",
        "prints",
        "repeats",
        "step",
    )

    def __init__(self, prints: _core.RowPrints, step: int) -> None:
        self.prints = prints
        self.step = step  # of the training
        self.is_trained = False  # it is of the training
        self.in_evaluation_mode = False  # the model is, to which it is given
        self.is_given_to_a_copy = False  # of a watched model, which nobody watches
        self.is_held_out = False  # as the program calls it
        self.is_counted = False  # among the draws of one evaluation
        self.repeats = 0  # how often its first row comes after those that are looked at
        # The pass that it is of, if that gives each row once; whether labels are classes, and
        # whether all that belongs to a row was seen.
        self.of: Pass | None = None
        self.are_classes = False
        self.is_whole = True
        self.has_further = False  # its rows have values in other inputs, too
        self.labels: torch.Tensor | None = None  # of the rows that are looked at
        # What is on a device until it is read, and what takes it then.
        self.later: list[tuple[Callable[[torch.Tensor], Any], torch.Tensor]] = []

    def put_repeats(self, count: torch.Tensor) -> None:
        """A single number."""
        self.repeats = int(count)

    def put_labels(self, labels: torch.Tensor) -> None:
        """One row for each row that is looked at, in memory that is read here."""
        self.labels = labels

    def labelled_otherwise(self) -> int:
        """Pairs of rows that are equal and have two labels: they are two records of the data."""
        if self.labels is None or self.has_further:
            return 0
        labels, pairs = self.labels.tolist(), 0
        of_row: dict[Any, list[Any]] = {}
        for halves, label in zip(self.prints.halves, labels, strict=True):
            alike = of_row.setdefault(halves, [])
            pairs += sum(label != other for other in alike)
            alike.append(label)
        return pairs

    def put(self, values: list[torch.Tensor]) -> None:
        """What was on a device is here: of each of `later`, in order."""
        later, self.later = self.later[len(values) :], self.later[: len(values)]
        for (put, _), value in zip(self.later, values, strict=True):
            put(value)
        self.later = later

    def receive(self) -> None:
        """Brings over what is still on a device. Waits for it."""
        if self.later:
            self.put(brought([tensor for _, tensor in self.later]))


def _take_further(seen: _Seen, inputs: torch.Tensor) -> bool:
    """A further input of a batch. False: it has not one row for each, or cannot be told apart."""
    seen.has_further = True
    is_plain, batch = type(inputs) is torch.Tensor, seen.prints.batch
    if is_plain and may_read(inputs) and seen.prints.take_further(inputs):
        return True
    dense = is_plain and inputs.layout is torch.strided
    if not dense or inputs.dim() < 1 or inputs.shape[0] != batch:
        return False
    with own_operations():
        x = inputs.detach()[:_MOST_ROWS].reshape(min(batch, _MOST_ROWS), -1)
        found = fingerprints(torch.cat([x, x], 1))  # a single value, too
        if found is not None:
            seen.later.append((seen.prints.put_further, found[:, 0].contiguous()))
    return found is not None


def _are_out_of_reach(batches: Iterable[_Seen]) -> bool:
    """To read them would break the capture of a CUDA graph."""
    return any(capturing_graph(tensor) for seen in batches for _, tensor in seen.later)


def _rows_of(labels: Any) -> int:
    """0: they are no tensor of rows."""
    return labels.shape[0] if isinstance(labels, torch.Tensor) and labels.dim() > 0 else 0


class Rows:
    """What is remembered of the rows of one training. One per recording, one thread."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Another training begins."""
        self._memory = _core.RowMemory()
        self._passes = _core.RowPasses()
        self._batch = 0  # rows of the training's last batch
        self._of_training = 0.0
        self._unread: list[_Seen] = []  # in order
        self._is_open = False  # the last of them is of the training and has no labels yet
        self._was_told = False  # of rows that came again with a class
        self._waiting: list[_Seen] = []  # without gradients, and without a loss yet; the last ones
        self._unscored: list[_Seen] = []  # those that had none
        self._unscored_seen = 0
        self._sizes: dict[
            int, tuple[int, int]
        ] = {}  # their rows and batches, also of those passed over
        self._draws = _Draws()
        self._in_training_at = -1  # the last step with one in training mode
        self._in_training_steps = 0  # such steps since they were read
        self._labelled_otherwise = 0  # pairs of equal rows
        self._given: _Seen | None = None  # the last of them
        self._first: _Seen | None = None  # of all batches without gradients
        self._evaluation: list[Any] | None = None  # that began with it
        self._evaluations_again = 0  # those that were the same

    @property
    def wait(self) -> bool:
        """Whether there is something to read."""
        return bool(self._unread)

    def _pass_on(self, waiting: _Seen) -> None:
        """No loss was computed of the batch that was waited for."""
        if not waiting.in_evaluation_mode and waiting.step != self._in_training_at:
            self._in_training_at = waiting.step
            self._in_training_steps += 1
        if not waiting.in_evaluation_mode and not waiting.later:
            self._draws.add(waiting)
            waiting.is_counted = True
        if waiting.in_evaluation_mode:
            rows, batches = self._sizes.get(waiting.step, (0, 0))
            self._sizes[waiting.step] = rows + waiting.prints.batch, batches + 1
        if len(self._unscored) < _MOST_UNREAD and self._unscored_seen < _MOST_UNSCORED:
            self._unscored_seen += 1
            self._unscored.append(waiting)

    def _look_at(
        self, inputs: torch.Tensor, step: int, wants_changes: bool = False
    ) -> _Seen | None:
        """None: its rows have no fingerprints."""
        if type(inputs) is torch.Tensor and may_read(inputs):
            prints = _core.row_prints(inputs, wants_changes)
            if prints is not None:
                return _Seen(prints, step)
        found = fingerprints(inputs)
        if found is None:
            return None
        rows = inputs.shape[0]
        prints = _core.RowPrints(rows, inputs.numel() // rows)
        seen = _Seen(prints, step)
        seen.later.append((prints.put_halves, found))
        if wants_changes:
            seen.later.append((prints.put_changes, changes(inputs)))
        return seen

    def trained(
        self, inputs: torch.Tensor, batches: float, of: Pass | None = None, step: int = 0
    ) -> None:
        """A batch of the training, of so many; 1: that is not known.

        `of`: the pass over the data, if that gives each row once.
        """
        self.give_up()
        self._is_open = False
        seen = self._look_at(inputs, step, wants_changes=of is not None)
        if seen is not None:
            self._batch = seen.prints.batch
            if batches > 1:
                self._of_training = max(self._of_training, batches * self._batch)
            seen.is_trained = True
            seen.of = of
            self._unread.append(seen)
            self._is_open = True

    def further_input(self, inputs: torch.Tensor) -> None:
        """The training's batch has it, too: the first alone does not say which label belongs."""
        if self._is_open and not _take_further(self._unread[-1], inputs):
            self.more_belongs()

    def further_given(self, inputs: torch.Tensor) -> None:
        """So has the batch that was given last, of what may be an evaluation."""
        if self._given is not None and self._given in self._waiting:
            _take_further(self._given, inputs)

    def more_belongs(self) -> None:
        """To the rows of the training's batch than is seen of them."""
        self._is_open = False
        self.called_again()

    def called_again(self) -> None:
        """The model is, in this step, with other rows or with more of the same."""
        if self._unread:
            self._unread[-1].is_whole = False

    def labelled(self, labels: Any, are_classes: bool = False) -> None:
        """A loss was given these for the training's batch, and a score for each class."""
        is_open, self._is_open = self._is_open, False
        if not is_open or type(labels) is not torch.Tensor or labels.requires_grad:
            return
        last = self._unread[-1]
        self._keep_labels(last, labels)
        if not (may_read(labels) and last.prints.take_labels(labels)):
            if labels.numel() != self._batch or labels.is_complex() or capturing_graph(labels):
                return
            with own_operations():
                kept = labels.detach().reshape(-1)[:_MOST_ROWS].clone()
            last.later.append((last.prints.put_labels, kept))
        last.are_classes = are_classes

    def _keep_labels(self, seen: _Seen, labels: torch.Tensor) -> None:
        """Until the batch is read: whether equal rows have two labels is asked then."""
        rows = min(self._batch, _MOST_ROWS)
        if labels.dim() == 0 or labels.shape[0] != self._batch or labels.numel() == 0:
            return
        if labels.layout is not torch.strided or capturing_graph(labels):
            return
        with own_operations():
            kept = labels.detach()[:rows].reshape(rows, -1)[:, :_MOST_LABELS].clone()
        if may_read(kept):
            seen.put_labels(kept)
        else:
            seen.later.append((seen.put_labels, kept))

    def given(
        self,
        inputs: torch.Tensor,
        in_evaluation_mode: bool,
        step: int,
        to_a_copy: bool = False,
        is_held_out: bool = False,
    ) -> None:
        """A batch of what may be an evaluation, before so many-th step of the training.

        `is_held_out`: as the program calls it.
        """
        if len(self._waiting) == _MOST_WAITING:
            self._pass_on(self._waiting.pop(0))
        given = self._given = self._look_at(inputs, step)
        if given is None:  # the next loss is of this one
            self.give_up()
            return
        given.in_evaluation_mode = in_evaluation_mode
        if not in_evaluation_mode and inputs.shape[0] > _MOST_ROWS:
            count = _repeats_of_first(inputs)
            if may_read(count):
                given.put_repeats(count)
            else:
                given.later.append((given.put_repeats, count))
        given.is_given_to_a_copy = to_a_copy
        given.is_held_out = is_held_out
        self._waiting.append(given)
        self._first = self._first or given

    def give_up(self) -> None:
        """Training goes on, or is over: no loss will be computed of what waits."""
        while self._waiting:
            self._pass_on(self._waiting.pop(0))

    def drop_waiting(self) -> None:
        """What was given last is told of by others."""
        if self._waiting and self._waiting[-1].is_given_to_a_copy:
            self._waiting.pop()

    def waits_for(self, labels: Any) -> bool:
        """Whether a batch of as many rows that the model was given has had no loss yet."""
        rows = _rows_of(labels)
        return any(seen.prints.batch == rows for seen in self._waiting) and not any(
            seen.is_given_to_a_copy for seen in self._waiting
        )

    def evaluated(self, labels: Any = None) -> None:
        """A loss was computed without gradients, with these labels: of one of those that wait.

        The model may have been called for two batches before the loss of the first is computed:
        then that one has as many rows as labels. Else it is of the last one, and none of others.
        """
        if not self._waiting:
            return
        rows = _rows_of(labels)
        alike = [at for at, seen in enumerate(self._waiting) if seen.prints.batch == rows]
        if len(alike) == 1:
            seen = self._waiting.pop(alike[0])
        else:
            seen = self._waiting.pop()
            self.give_up()
        self._unread.append(seen)
        self._is_open = False

    def ask(self, later: Later) -> None:
        """For what waits to be read; before `read`."""
        for seen in self._unread:
            later.ask("rows", [tensor for _, tensor in seen.later], seen.put)

    def read(self) -> list[Evaluated]:
        """Reads what waits. Waits for a device where it was not asked for."""
        unread, self._unread = self._unread, []
        self._is_open = False
        found: list[Evaluated] = []
        if _are_out_of_reach(unread):
            return found
        for seen in unread:
            seen.receive()
            if not seen.is_trained:
                found.append(self._compare(seen.prints))
                continue
            before = self._memory.figures[3]
            self._memory.learn(seen.prints)
            if self._memory.figures[3] > before:
                self._labelled_otherwise += seen.labelled_otherwise()
            if seen.of is not None and seen.is_whole:
                number, rows = seen.of
                of_pass = number, rows, seen.step, self._batch
                self._passes.batch(seen.prints, *of_pass, seen.are_classes)
            elif seen.of is not None:
                self._passes.unknown()
        return found

    def read_again(self) -> RowsAgain | None:
        """What is known of rows that come several times in one pass, after `read`."""
        told = self._passes.told()
        return None if told is None else RowsAgain(*told)

    def read_labelled(self) -> Labelled | None:
        """What is known of rows that came again, after `read`. None: too little, or all alike.

        None of them, once that shows after all.
        """
        found = self._memory.relabelled
        if found is None:
            return Labelled(0, 0, 0.0) if self._was_told else None
        self._was_told = True
        return Labelled(*found)

    def ask_unscored(
        self, later: Later, told: Callable[[Unscored | None, InTrainingMode | None], Any]
    ) -> None:
        """Tells of the batches that waited for a loss in vain, if there are some; before `read`."""
        batches, self._unscored = self._unscored, []
        sizes, self._sizes = self._sizes, {}
        steps, self._in_training_steps = self._in_training_steps, 0
        if not batches or _are_out_of_reach(batches):
            return

        def heard(values: list[torch.Tensor]) -> None:
            known = iter(values)
            for seen in batches:
                seen.put([next(known) for _ in seen.later])
            told(*self._look_up(batches, steps, max(sizes.values(), default=(0, 0))))

        later.ask("rows", [tensor for seen in batches for _, tensor in seen.later], heard)

    def _look_up(
        self, batches: list[_Seen], steps: int, largest: tuple[int, int]
    ) -> tuple[Unscored | None, InTrainingMode | None]:
        """`largest`: rows and batches of the largest evaluation."""
        self._note_evaluations(batches)
        most, batches_of_most = largest
        if self._memory.figures[0] == 0:
            return None, None
        evaluated = [seen for seen in batches if seen.in_evaluation_mode]
        others = [seen.prints for seen in batches if not seen.in_evaluation_mode]
        trained = half = without = longest = 0
        count = mixed = mixed_trained = 0
        mixed_of: dict[
            int, list[int]
        ] = {}  # rows of each such batch, by the step of the evaluation
        held_out = held_out_trained = 0
        held_out_of: dict[int, int] = {}  # rows of these, likewise
        for seen in evaluated:
            prints = seen.prints
            known, alike = self._memory.find(prints)
            count += len(prints)
            trained += known
            half += alike
            without = 0 if known else without + len(prints)
            longest = max(longest, without)
            if seen.is_held_out:
                held_out += len(prints)
                held_out_trained += known
                held_out_of[seen.step] = held_out_of.get(seen.step, 0) + prints.batch
            of_evaluation = mixed_of.setdefault(seen.step, [])
            if 0 < known < len(prints):
                mixed += len(prints)
                mixed_trained += known
                of_evaluation.append(prints.batch)
        unscored = Unscored(
            len(evaluated),
            count,
            trained,
            half,
            longest,
            most,
            batches_of_most,
            self._evaluations_again,
            mixed,
            mixed_trained,
            min(map(len, mixed_of.values()), default=0),
            max(map(sum, mixed_of.values()), default=0),
            len(mixed_of),
            self._labelled_otherwise,
            held_out,
            held_out_trained,
            max(held_out_of.values(), default=0),
            len(held_out_of),
        )
        trained = sum(self._memory.find(prints)[0] for prints in others)
        for seen in batches:
            if not seen.in_evaluation_mode and not seen.is_counted:
                self._draws.add(seen)
        again = self._draws.again if others else 0.0
        in_training = InTrainingMode(len(others), sum(map(len, others)), trained, steps, again)
        return unscored if evaluated else None, in_training if others else None

    def _note_evaluations(self, batches: list[_Seen]) -> None:
        """Whether evaluations are the same as the first one."""
        evaluations: dict[int, list[_Seen]] = {}
        for seen in batches:
            if seen.in_evaluation_mode:
                evaluations.setdefault(seen.step, []).append(seen)
        for parts in evaluations.values():
            prints = [(seen.prints.batch, seen.prints.halves[:_FEW_ROWS]) for seen in parts]
            if self._evaluation is not None:
                self._evaluations_again += prints == self._evaluation
            elif parts[0] is self._first:
                self._evaluation = prints

    def are_trained(self, inputs: torch.Tensor) -> bool:
        """Whether most of the first rows of a batch were trained on, as far as that is known."""
        prints = _core.row_prints(inputs, False) if may_read(inputs) else None
        if prints is None or len(prints) == 0:
            return False
        return bool(2 * self._memory.find(prints)[0] >= len(prints))

    def are_any_trained(self, inputs: torch.Tensor) -> bool:
        """Whether one of the first rows of a batch was trained on, as far as that is known."""
        prints = _core.row_prints(inputs, False) if may_read(inputs) else None
        return prints is not None and self._memory.find(prints)[0] > 0

    @property
    def batch(self) -> int:
        """Rows of the training's last batch."""
        return self._batch

    @property
    def known(self) -> int:
        """Rows of the training that are remembered."""
        return int(self._memory.figures[0])

    def standing(self) -> Evaluated:
        """What is known of the training, as with a batch of no rows."""
        return self._compare(_core.RowPrints(0, 0))

    def _compare(self, rows: _core.RowPrints) -> Evaluated:
        known, half = self._memory.find(rows)
        in_all, looked_at, pairs, alike, half_alike = self._memory.figures
        return Evaluated(
            len(rows),
            known,
            half,
            in_all,
            self._of_training,
            looked_at,
            pairs,
            alike,
            half_alike,
            int(rows.batch == self._batch),
        )
