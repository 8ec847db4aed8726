"""What the measure must reach: each figure with its bar."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from measure.scores import Count, Score, Steps

if TYPE_CHECKING:
    from collections.abc import Callable


class Bar(NamedTuple):
    text: str
    is_reached: Callable[[Count | Steps], bool | None]  # None where there is nothing to judge


def at_least(percent: int) -> Bar:
    def reached(value: Count | Steps) -> bool | None:
        assert isinstance(value, Count)
        return 100 * value.hits >= percent * value.of if value.of else None

    return Bar(f"≥ {percent} %" if percent < 100 else "100 %", reached)


def at_most(percent: int) -> Bar:
    def reached(value: Count | Steps) -> bool | None:
        assert isinstance(value, Count)
        return 100 * value.hits <= percent * value.of if value.of else None

    return Bar(f"≤ {percent} %" if percent else "none", reached)


def median_at_most(most: int) -> Bar:
    def reached(value: Count | Steps) -> bool | None:
        assert isinstance(value, Steps)
        return None if value.median is None else value.median <= most

    return Bar(f"median ≤ {most}" if most > 1 else "median 1", reached)


class Measure(NamedTuple):
    name: str  # a field of Score
    text: str
    bar: Bar | None = None

    def of(self, score: Score) -> Count | Steps:
        value = getattr(score, self.name)
        assert isinstance(value, Count | Steps)
        return value

    def is_reached(self, score: Score) -> bool | None:
        return None if self.bar is None else self.bar.is_reached(self.of(score))


MEASURES = (
    Measure("detected", "faulty programs detected", at_least(95)),
    Measure("healthy_alarms", "healthy runs with a finding above info", at_most(3)),
    Measure("twin_alarms", "… of the healthy twins"),
    Measure("training_alarms", "… of the healthy trainings that look odd"),
    Measure("healthy_errors", "healthy runs with a finding at error level", at_most(0)),
    Measure("pairs", "pairs right: found by a right kind, and the twin quiet", at_least(90)),
    Measure("pairs_any", "… found by whatever kind, and the twin quiet"),
    Measure("first", "right kind named first", at_least(80)),
    Measure("first_three", "right kind among the first three", at_least(92)),
    Measure("place", "right place, of those detected", at_least(88)),
    Measure("silent", "silent errors detected", at_least(90)),
    Measure("exact", "exact kinds found by a right kind", at_least(100)),
    Measure("exact_alarms", "twins of the exact kinds with a finding above info", at_most(0)),
    Measure("steps", "steps to the first right finding, early faults", median_at_most(10)),
    Measure("exact_steps", "… of these, exact kinds", median_at_most(3)),
    Measure("nan_steps", "… kinds about NaN, from the training's start", median_at_most(1)),
    Measure("nan_steps_after", "… the same, from the first loss that is not finite"),
)


def told(value: Count | Steps) -> str:
    """97.0 % (194/200), or a median of steps."""
    if isinstance(value, Steps) or not value.of:
        return str(value)
    return f"{value.percent} ({value})"
