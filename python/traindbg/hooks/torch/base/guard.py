"""What keeps failures of ours out of a training: they are swallowed, counted, said once.

After the third failure in a recording a feature is off for the rest of it; that is said, too, and
the run has an event of both. TRAINDBG_STRICT=1 lets exceptions out, for tests.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import torch

from traindbg._say import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from traindbg._core import HotPath, Session

STRIKES = 3
_MOST_SECONDS = 10.0  # that a hook waits for one in another thread
_MOST_OF_A_TEXT = 500  # characters of an error
# By feature, of the recording of this process; a new one begins without any.
failures: dict[str, int] = {}
_guard_of_now: weakref.ref[Guard] | None = None  # of that recording
# What the hot path carries of an ordinary step.
_OF_HOT_PATH = ("losses", "backward", "optimizer", "steps")
# Tried again however often they failed: a device may have memory again, and a recording must end.
_NEVER_OFF = frozenset({"devices", "closing"})

# What is called in it, no function mode of the training's hears, and no tensor's class of its own.
_unheard = torch._C.DisableTorchFunction

_F = TypeVar("_F", bound="Callable[..., Any]")


def failed(feature: str, error: Exception) -> None:
    """Counts that a feature failed; says it, and has the run know of it, where that is news."""
    if os.environ.get("TRAINDBG_STRICT") == "1":
        raise error
    count = failures[feature] = failures.get(feature, 0) + 1
    guard = None if _guard_of_now is None else _guard_of_now()
    if guard is not None and guard.dead:
        guard = None
    if guard is not None and hot_path_is_off():
        guard.hot.disarm()
    if count == 1:
        text = _text_of(error)
        _tell(guard, "hook_error", {"part": feature, "error": text})
        where = "" if guard is None else f" at step {guard.hot.steps}"
        say(
            f"{feature}: {text}; this part is not recorded{where}, the training goes on",
            is_error=True,
        )
    if count == STRIKES and feature not in _NEVER_OFF:
        facts = {"part": feature, "error": _text_of(error), "failures": STRIKES}
        _tell(guard, "hook_off", facts)
        where = "any more" if guard is None else f"from step {guard.hot.steps} on"
        say(f"{feature}: failed {STRIKES} times; it is not recorded {where}", is_error=True)
        if guard is not None and feature == "steps":
            guard.close()  # steps that do not end would take everything for ever


def _text_of(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:_MOST_OF_A_TEXT]
    except Exception:  # of the `__str__` of somebody's class
        return type(error).__name__


def _tell(guard: Guard | None, kind: str, facts: dict[str, Any]) -> None:
    if guard is not None:
        with contextlib.suppress(Exception):
            guard.session.event(kind, json.dumps(facts | {"step": guard.hot.steps}))


def is_off(feature: str) -> bool:
    """Whether it failed too often in this recording."""
    return failures.get(feature, 0) >= STRIKES and feature not in _NEVER_OFF


def hot_path_is_off() -> bool:
    """Whether a feature is off that the hot path carries: it is not to be taken then."""
    return any(failures.get(feature, 0) >= STRIKES for feature in _OF_HOT_PATH)


def guarded(feature: str, function: Callable[..., Any], *args: Any) -> Any:
    """Calls `function`; an exception of it is counted and said, not raised. None then."""
    if failures and is_off(feature):
        return None
    try:
        with _unheard():
            return function(*args)
    except Exception as error:
        failed(feature, error)
        return None


class Guard:
    """What guards all parts of one recording: none of them does anything once it is dead."""

    def __init__(self, session: Session, hot: HotPath, close: Callable[[], None]) -> None:
        """The recording begins: what failed before is no matter of it."""
        global _guard_of_now
        self.dead = False
        self.lock = threading.RLock()  # held by the thread that runs a hook; see `steps.threads`
        self.patience = _MOST_SECONDS  # to wait for it; none is left when it was in vain
        self.hot = hot  # holds the time's account
        self.session = session
        self.close = close  # the recording
        failures.clear()
        _guard_of_now = weakref.ref(self)

    def failed(self, feature: str, error: Exception) -> None:
        """See `failed`; once the recording is over, nobody counts."""
        if not self.dead:
            failed(feature, error)


class Guarded(Protocol):
    """Whose methods `boundary` guards."""

    guard: Guard


def boundary(feature: str) -> Callable[[_F], _F]:
    """Guards a method that the training calls, and takes the time that it needs.

    One thread at a time: another one waits for as long as a hook takes.
    """

    def decorate(method: _F) -> _F:
        @functools.wraps(method)
        def call(self: Guarded, *args: Any) -> Any:
            guard = self.guard
            if guard.dead or (failures and is_off(feature)):
                return None
            begin = time.perf_counter_ns()
            if not guard.lock.acquire(timeout=guard.patience):
                guard.patience = 0.0
                return None
            try:
                with _unheard():
                    return method(self, *args)
            except Exception as error:
                guard.failed(feature, error)
                return None
            finally:
                guard.lock.release()
                guard.hot.nanos += time.perf_counter_ns() - begin

        return call  # type: ignore[return-value]

    return decorate
