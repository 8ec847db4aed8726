"""What keeps failures of ours out of a training: they are swallowed, counted, said once.

After the third failure a feature is off. TRAINDBG_STRICT=1 lets exceptions out, for tests.
"""

from __future__ import annotations

import functools
import os
import time
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from traindbg._say import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from traindbg._core import HotPath

STRIKES = 3
failures: dict[str, int] = {}  # by feature, in this process

_F = TypeVar("_F", bound="Callable[..., Any]")


class Guarded(Protocol):
    """Whose methods `boundary` guards."""

    dead: bool
    hot: HotPath  # holds the time's account

    def failed(self, feature: str, error: Exception) -> None: ...


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


def guarded(feature: str, function: Callable[..., Any], *args: Any) -> Any:
    """Calls `function`; an exception of it is counted and said, not raised. None then."""
    if failures.get(feature, 0) >= STRIKES:
        return None
    try:
        return function(*args)
    except Exception as error:
        failed(feature, error)
        return None


def boundary(feature: str) -> Callable[[_F], _F]:
    """Guards a method that the training calls, and takes the time that it needs."""

    def decorate(method: _F) -> _F:
        @functools.wraps(method)
        def call(self: Guarded, *args: Any) -> Any:
            if self.dead or failures.get(feature, 0) >= STRIKES:
                return None
            begin = time.perf_counter_ns()
            try:
                return method(self, *args)
            except Exception as error:
                self.failed(feature, error)
                return None
            finally:
                self.hot.nanos += time.perf_counter_ns() - begin

        return call  # type: ignore[return-value]

    return decorate
