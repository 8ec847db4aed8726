"""What callbacks and trackers of all frameworks have in common."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from traindbg.hooks.torch import watching as hook
from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.recording import recording as recordings
from traindbg.hooks.torch.recording.user_values import number_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch


def missing(module: str, package: str, error: ImportError) -> ImportError:
    """What to raise where a framework is not installed."""
    return ImportError(
        f"{module} needs {package}, which is not installed: pip install {package} ({error})"
    )


class Training:
    """One training of a trainer: watched, with the metrics that the trainer logs.

    Joins a recording that this process has begun, such as that of `traindbg run`, and leaves it
    open; one that it began itself ends with the training.
    """

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        """`arguments`: of `watch`, without the model."""
        self._arguments = dict(arguments)
        self._watcher: hook.Watcher | None = None
        self._is_ours = False
        self._waiting: dict[str, float] = {}  # for the step that they will be part of
        self._last: dict[str, float] = {}

    def __getstate__(self) -> dict[str, Any]:
        """What a copy of a callback has: it watches nothing, which is this process's alone."""
        return self.__dict__ | {"_watcher": None, "_is_ours": False}

    @property
    def watcher(self) -> hook.Watcher | None:
        """What watches the model; None before the training and after it."""
        return self._watcher

    def begin(self, model: torch.nn.Module) -> None:
        """Watches the model. Raises InvalidArgument, as `watch` does."""
        self.end()
        before = recordings.current
        self._watcher = hook.watch(model, **self._arguments)
        began = recordings.current is not before
        self._is_ours = began and not os.environ.get("TRAINDBG_RUN_DIR")

    def calls_parts(self) -> None:
        """The training may call the parts of the model, but never the model itself."""
        if recordings.current is not None:
            recordings.current.attachment.parts_are_called()

    def log(self, metrics: Mapping[str, Any], *, changed_only: bool = False) -> None:
        """Records the numbers among them: at once in an evaluation, else in the next step.

        A trainer logs when the step has ended that it logs of; so the last values do not become a
        step of their own. `changed_only` leaves out those that are as they were the last time.
        """
        guarded("metrics", self._log, dict(metrics), changed_only)

    def _log(self, metrics: dict[str, Any], changed_only: bool) -> None:
        if recordings.current is None:
            return
        numbers = {}
        for name, value in metrics.items():
            number = number_in(value)
            if number is None or (changed_only and self._is_known(name, number)):
                continue
            numbers[str(name)] = number
        self._last |= numbers
        if recordings.current.is_evaluating:
            self._record(numbers, evaluation=True)
        else:
            self._waiting |= numbers

    def _is_known(self, name: str, number: float) -> bool:
        last = self._last.get(name)
        return last is not None and (last == number or (math.isnan(last) and math.isnan(number)))

    def step_begins(self) -> None:
        """Records what waited for it."""
        if self._waiting:
            waiting, self._waiting = self._waiting, {}
            self._record(waiting, evaluation=False)

    def _record(self, numbers: dict[str, float], evaluation: bool) -> None:
        recording = recordings.current
        if recording is not None:
            for name, number in numbers.items():
                recording.user_values.metric(name, number, evaluation)

    def end(self, error: BaseException | None = None) -> None:
        """The training is over: closes the recording if it began it. `error`: how it ended."""
        waiting, self._waiting = self._waiting, {}
        self._last = {}
        self._record(waiting, evaluation=True)
        watcher, self._watcher = self._watcher, None
        if recordings.current is not None and watcher is not None:
            if error is not None:  # also before the first step
                guarded("events", recordings.current.record_exception, error)
            guarded("events", recordings.current.loop_ended, error)
        if watcher is not None and self._is_ours:
            watcher.detach()
        self._is_ours = False
