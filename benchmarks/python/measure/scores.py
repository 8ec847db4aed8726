"""Counts outcomes: what was found, what was left alone, and after how many steps."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from measure.outcomes import Outcome

# Faults that are a number which is none: to be told at the step at which it comes.
NAN_KINDS = ("division_by_zero_norm", "nan_input", "unstable_log_softmax")


class Count(NamedTuple):
    """So many of so many."""

    hits: int
    of: int

    def __str__(self) -> str:
        return f"{self.hits}/{self.of}" if self.of else "-"

    @property
    def percent(self) -> str:
        return f"{100 * self.hits / self.of:.1f} %" if self.of else "-"


def count(values: Iterable[object]) -> Count:
    listed = list(values)
    return Count(sum(bool(value) for value in listed), len(listed))


class Steps(NamedTuple):
    """Of each fault that was found: steps until its first right finding, that step included."""

    values: tuple[int, ...]

    @property
    def median(self) -> float | None:
        return statistics.median(self.values) if self.values else None

    @property
    def latest(self) -> int | None:
        return max(self.values, default=None)

    def within(self, most: int) -> Count:
        return count(value <= most for value in self.values)

    def __str__(self) -> str:
        return "-" if self.median is None else f"{self.median:g}"


def steps(values: Iterable[int | None]) -> Steps:
    return Steps(tuple(value for value in values if value is not None))


class Score(NamedTuple):
    """The counts of some programs. What has an error is in none of them."""

    programs: int
    detected: Count  # faulty ones with a finding above info
    quiet: Count  # healthy twins without one
    pairs: Count  # detected by a right kind, and the twin quiet
    pairs_any: Count  # detected by whatever kind, and the twin quiet
    first: Count  # the right kind is named first
    first_three: Count
    place: Count  # of those detected
    silent: Count  # of those whose training loss falls all the same, detected
    exact: Count  # of those to be told without a threshold, found by a right kind
    healthy_alarms: Count  # twins and healthy trainings with a finding above info
    healthy_errors: Count  # with one at error level
    twin_alarms: Count
    training_alarms: Count  # healthy trainings, which are nobody's twin
    exact_alarms: Count  # twins of the exact ones with a finding above info
    steps: Steps  # of faults that are there from the start
    exact_steps: Steps  # of these, those to be told without a threshold
    nan_steps: Steps  # of NAN_KINDS, from the start of the training
    nan_steps_after: Steps  # of NAN_KINDS, from the first loss that is not finite


def score(outcomes: Iterable[Outcome]) -> Score:
    measured = [o for o in outcomes if not o.error]
    faulty = [o for o in measured if o.task.is_faulty]
    healthy = [o for o in measured if not o.task.is_faulty]
    twins = {(o.task.program.name, o.task.seed): o for o in healthy if o.task.program.kind}
    pairs = [
        (o, twins[o.task.program.name, o.task.seed])
        for o in faulty
        if (o.task.program.name, o.task.seed) in twins
    ]
    early = [o for o in faulty if o.task.program.early]
    exact = [o for o in faulty if o.task.program.exact]
    nan = [o for o in faulty if o.task.program.kind in NAN_KINDS]
    return Score(
        programs=len({o.task.program.name for o in measured}),
        detected=count(o.alarms for o in faulty),
        quiet=count(not o.alarms for o in twins.values()),
        pairs=count(o.is_right and not twin.alarms for o, twin in pairs),
        pairs_any=count(o.alarms and not twin.alarms for o, twin in pairs),
        first=count(o.right_kinds & set(o.kinds[:1]) for o in faulty),
        first_three=count(o.right_kinds & set(o.kinds[:3]) for o in faulty),
        place=count(o.is_place_right for o in faulty if o.alarms),
        silent=count(o.alarms for o in faulty if o.task.program.silent),
        exact=count(o.is_right for o in exact),
        healthy_alarms=count(o.alarms for o in healthy),
        healthy_errors=count(o.has_error for o in healthy),
        twin_alarms=count(o.alarms for o in twins.values()),
        training_alarms=count(o.alarms for o in healthy if not o.task.program.kind),
        exact_alarms=count(o.alarms for o in twins.values() if o.task.program.exact),
        steps=steps(o.steps for o in early),
        exact_steps=steps(o.steps for o in early if o.task.program.exact),
        nan_steps=steps(o.steps for o in nan),
        nan_steps_after=steps(o.steps_after_nan for o in nan),
    )
