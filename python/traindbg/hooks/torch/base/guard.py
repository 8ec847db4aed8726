"""What keeps failures of ours out of a training: they are swallowed, counted, said once.

After the third failure a feature is off. TRAINDBG_STRICT=1 lets exceptions out, for tests.
"""

from __future__ import annotations

import functools
import json
import os
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import torch

from traindbg._say import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from traindbg._core import HotPath, Session

STRIKES = 3
_MOST_SECONDS = 10.0  # that a hook waits for one in another thread
failures: dict[str, int] = {}  # by feature, in this process
# What the hot path carries of an ordinary step.
_OF_HOT_PATH = ("losses", "backward", "optimizer", "steps")

# What is called in it, no function mode of the training's hears, and no tensor's class of its own.
_unheard = torch._C.DisableTorchFunction

_F = TypeVar("_F", bound="Callable[..., Any]")


def failed(feature: str, error: Exception) -> None:
    """Counts and says that a feature failed."""
    if os.environ.get("TRAINDBG_STRICT") == "1":
        raise error
    failures[feature] = failures.get(feature, 0) + 1
    say(
        f"{feature}: {type(error).__name__}: {error}; "
        "this part is not recorded, the training goes on",
        once=f"failed {feature}",
        is_error=True,
    )


def hot_path_is_off() -> bool:
    """Whether a feature is off that the hot path carries: it is not to be taken then."""
    return any(failures.get(feature, 0) >= STRIKES for feature in _OF_HOT_PATH)


def guarded(feature: str, function: Callable[..., Any], *args: Any) -> Any:
    """Calls `function`; an exception of it is counted and said, not raised. None then."""
    if failures.get(feature, 0) >= STRIKES:
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
        self.dead = False
        self.lock = threading.RLock()  # held by the thread that runs a hook; see `steps.threads`
        self.patience = _MOST_SECONDS  # to wait for it; none is left when it was in vain
        self.hot = hot  # holds the time's account
        self._session = session
        self._close = close  # the recording

    def failed(self, feature: str, error: Exception) -> None:
        """Counts and says that a feature failed, and has the run know of it."""
        failed(feature, error)
        if hot_path_is_off():
            self.hot.disarm()
        if feature == "steps" and failures[feature] >= STRIKES:
            self._close()  # steps that do not end would take everything for ever
        if failures[feature] == 1 and not self.dead:
            text = f"{type(error).__name__}: {error}"[:500]
            self._session.event("hook_error", json.dumps({"part": feature, "error": text}))


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
            if guard.dead or failures.get(feature, 0) >= STRIKES:
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
