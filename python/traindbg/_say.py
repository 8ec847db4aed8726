"""The few lines that the Python side says on standard error. TRAINDBG_LOG=quiet: errors only."""

from __future__ import annotations

import contextlib
import os
import sys

_said: set[str] = set()


def say(message: str, *, once: str = "", is_error: bool = False) -> None:
    """Prints one line with traindbg's prefix; with `once`, only the first of that key."""
    if once:
        if once in _said:
            return
        _said.add(once)
    if os.environ.get("TRAINDBG_LOG") == "quiet" and not is_error:
        return
    with contextlib.suppress(OSError, ValueError):  # standard error is closed
        print(f"traindbg: {message}", file=sys.stderr, flush=True)
