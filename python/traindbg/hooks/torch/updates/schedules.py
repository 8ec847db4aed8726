"""Which learning rate schedules were made, and whether any of them was ever stepped.

A schedule changes nothing until its `step()` is called, and then only the optimizer that it was
made for. Heard are the constructors of PyTorch's schedules, and what each of their steps calls
(`_enable_get_lr_call`, `ReduceLROnPlateau._is_better`); not `step()` itself, because its warnings
name the line that called it. Whether a schedule was stepped is kept in a record that outlives it:
it may belong to a function that has returned. No schedule and no optimizer is kept alive.

What is found is told at the end of a recording: until then a schedule may be about to be stepped.

Of a `ReduceLROnPlateau` the numbers that it is given are followed, too: where it cuts the rate
while one of the first two is still the best, how many moved the other way than it waits for.
"""

from __future__ import annotations

import functools
import math
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from torch.optim import lr_scheduler

from traindbg import _core
from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.base.sources import sources

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

_MOST_SCHEDULES = 64


class Plateau(NamedTuple):
    """What a `ReduceLROnPlateau` was given that has cut the rate, as facts `loop/plateau_<field>`.

    The first number, or the second, was the best one all the time.
    """

    sense: int  # -1: it waits for lower numbers, 1: for higher ones
    values: int  # that it was given
    turned: int  # of these, those that lie on the wrong side of the one before
    first: float  # the best one
    last: float


class _Schedule:
    """What is known of one of them."""

    def __init__(self, schedule: Any, is_stepped: bool) -> None:
        optimizer = schedule.optimizer
        self.name = type(schedule).__name__
        self.of: weakref.ref[torch.optim.Optimizer] = weakref.ref(optimizer)
        self.is_stepped = is_stepped
        self.is_part = False  # of another schedule, which steps it when its turn comes
        self.parts: list[_Schedule] = []
        # Of the optimizer, as far as it was looked at:
        self.drives = False  # its steps count
        self.is_beside = False  # it has parameters of the one that drives
        self.has_stepped = False
        # Of a `ReduceLROnPlateau`; None: not from its first number on, or a later one was better.
        self.plateau: Plateau | None = None
        self.is_cut = False  # it has reduced the rate, and that was not told yet

    @property
    def was_stepped(self) -> bool:
        return self.is_stepped or any(part.was_stepped for part in self.parts)


def _was_stepped(schedule: Any) -> bool:
    """Of one that was made before anybody listened; its constructor makes the first step."""
    parts = getattr(schedule, "_schedulers", ())
    count, last = getattr(schedule, "_step_count", 0), getattr(schedule, "last_epoch", 0)
    return count > 1 or last > 0 or any(map(_was_stepped, parts))


def _is_wrapped(optimizer: torch.optim.Optimizer) -> bool:
    """Whether a schedule was made for it, which has its steps counted."""
    return hasattr(optimizer.step, "_wrapped_by_lr_sched")


class Schedules:
    """Of the process; its calls come from the training's thread."""

    def __init__(self) -> None:
        self.are_heard = False  # there is what their steps call
        self._records: list[_Schedule] = []
        self._driver: weakref.ref[torch.optim.Optimizer] | None = None
        self._known: weakref.WeakKeyDictionary[Any, _Schedule] = weakref.WeakKeyDictionary()

    def clear(self) -> None:
        """Forgets all."""
        self._records.clear()
        self._known.clear()
        self._driver = None

    def made(self, schedule: Any, is_stepped: bool = False) -> None:
        """A schedule was made."""
        if len(self._records) >= _MOST_SCHEDULES or not hasattr(schedule, "optimizer"):
            return
        record = self._known.get(schedule)
        if record is None:  # else of a constructor that calls its base's
            record = self._known[schedule] = _Schedule(schedule, is_stepped)
            self._records.append(record)
        for part in getattr(schedule, "_schedulers", ()):
            known = self._known.get(part)
            if known is not None and known not in record.parts:
                known.is_part = True
                known.is_stepped = False  # when that one was made
                record.parts.append(known)

    def steps(self, schedule: Any) -> None:
        """`schedule` makes a step."""
        record = self._known.get(schedule)
        if record is not None:  # else by its constructor
            record.is_stepped = True
            sources.note("schedule_step")

    def given(self, schedule: Any, value: float, best: float, is_better: bool) -> None:
        """A `ReduceLROnPlateau` compares a number with its best one."""
        record = self._known.get(schedule)
        if record is None or type(value) is not float:
            return
        known, record.plateau = record.plateau, None
        if known is None:
            if abs(best) == math.inf and is_better:
                sense = 1 if schedule.mode == "max" else -1
                record.plateau = Plateau(sense, 1, 0, value, value)
        elif not is_better:
            turned = known.turned + ((value - known.last) * known.sense < 0)
            record.plateau = known._replace(values=known.values + 1, turned=turned, last=value)
        elif known.values == 1:  # two numbers that are alike may come in either order
            record.plateau = known._replace(values=2, first=value, last=value)

    def cuts(self, schedule: Any) -> None:
        """A `ReduceLROnPlateau` is about to reduce the rate."""
        record = self._known.get(schedule)
        if record is not None:
            record.is_cut = True

    def read_plateau(self, driver: torch.optim.Optimizer) -> Plateau | None:
        """Of a schedule of `driver`, whose rate has changed: once where it cut the rate."""
        found = None
        for record in self._records:
            if record.is_cut and record.of() is driver:
                record.is_cut, found = False, record.plateau
        return found

    def uses(self, optimizer: torch.optim.Optimizer) -> None:
        """`optimizer` makes its first step that is heard."""
        for record in self._records:
            record.has_stepped = record.has_stepped or record.of() is optimizer

    def look(self, driver: torch.optim.Optimizer) -> None:
        """`driver`, whose steps count, is about to step; it may be gone when `idle` is asked."""
        self._driver = weakref.ref(driver)
        owned: set[int] | None = None
        for record in self._records:
            optimizer = record.of()
            if optimizer is None:
                continue
            record.drives = optimizer is driver
            record.has_stepped = record.has_stepped or getattr(optimizer, "_opt_called", False)
            if record.drives or record.has_stepped:
                continue
            owned = _parameters_of(driver) if owned is None else owned
            record.is_beside = not owned.isdisjoint(_parameters_of(optimizer))

    def idle(self) -> tuple[str, str] | None:
        """A fact and the kind of schedule that it is about; None: nothing is found.

        `schedule_not_stepped`: all of the schedules of the optimizer that drives the steps.
        `schedule_of_another`: it has none, and one is stepped whose optimizer never steps.
        """
        driver = None if self._driver is None else self._driver()
        if not self.are_heard:
            return None
        if driver is not None:
            self._search(driver)
            self.look(driver)
        whole = [record for record in self._records if not record.is_part]
        mine = [record for record in whole if record.drives]
        if mine:
            is_idle = not any(record.was_stepped for record in mine)
            return ("schedule_not_stepped", mine[-1].name) if is_idle else None
        for record in whole:
            if record.is_beside and record.was_stepped and not record.has_stepped:
                return "schedule_of_another", record.name
        return None

    def _search(self, driver: torch.optim.Optimizer) -> None:
        """Finds schedules of `driver` that were made before anybody listened.

        Goes through all objects of the process, once, and only where its steps are counted for one.
        """
        if not _is_wrapped(driver) or any(record.of() is driver for record in self._records):
            return
        found: list[Any] = _core.instances_of(lr_scheduler.LRScheduler)
        mine = [thing for thing in found if getattr(thing, "optimizer", None) is driver]
        for schedule in (*mine, *mine):  # again for those that are parts of others
            self.made(schedule, _was_stepped(schedule))


def _parameters_of(optimizer: torch.optim.Optimizer) -> set[int]:
    return {id(p) for group in optimizer.param_groups for p in group["params"]}


schedules = Schedules()


def _listening_made(original: Callable[..., Any]) -> Callable[..., Any]:
    """What the constructor of a schedule ends with, or all of it."""

    @functools.wraps(original)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        guarded("schedules", schedules.made, self)
        guarded("sources", sources.made, self)
        guarded("sources", sources.used, "schedule", self)

    return made


def _listening_step(original: Callable[..., Any]) -> Callable[..., Any]:
    """What each step of a schedule calls, with the schedule in front."""
    schedules.are_heard = True

    @functools.wraps(original, updated=())
    def inside_step(schedule: Any, *args: Any, **kwargs: Any) -> Any:
        guarded("schedules", schedules.steps, schedule)
        return original(schedule, *args, **kwargs)

    return inside_step


def _listening_value(original: Callable[..., Any]) -> Callable[..., Any]:
    """How a `ReduceLROnPlateau` compares a number with its best one."""
    listening = _listening_step(original)

    @functools.wraps(original, updated=())
    def inside_step(schedule: Any, *args: Any, **kwargs: Any) -> Any:
        is_better = listening(schedule, *args, **kwargs)
        if len(args) == 2:
            guarded("schedules", schedules.given, schedule, *args, bool(is_better))
        return is_better

    return inside_step


def _listening_cut(original: Callable[..., Any]) -> Callable[..., Any]:
    """How a `ReduceLROnPlateau` reduces the rate."""

    @functools.wraps(original, updated=())
    def inside_step(schedule: Any, *args: Any, **kwargs: Any) -> Any:
        guarded("schedules", schedules.cuts, schedule)
        return original(schedule, *args, **kwargs)

    return inside_step


# What is heard, for `steps.patches`: the owner of a function, its name, and what takes its place.
# Schedules that do without the base's constructor have a line of their own.
LISTENED: tuple[tuple[Any, str, Callable[[Callable[..., Any]], Callable[..., Any]]], ...] = (
    (lr_scheduler.LRScheduler, "__init__", _listening_made),
    (lr_scheduler.SequentialLR, "__init__", _listening_made),
    (lr_scheduler.ChainedScheduler, "__init__", _listening_made),
    (lr_scheduler.ReduceLROnPlateau, "_reset", _listening_made),
    (lr_scheduler, "_enable_get_lr_call", _listening_step),
    (lr_scheduler.ReduceLROnPlateau, "_is_better", _listening_value),
    (lr_scheduler.ReduceLROnPlateau, "_reduce_lr", _listening_cut),
)
