"""How a process ends that records, as far as trouble ended it.

Python tells of an exception that nobody catches in several places: of the main thread's by
`sys.last_value`, whatever `sys.excepthook` is, of other threads' by `threading.excepthook`. A child
of `multiprocessing` catches what it raises itself and leaves without `atexit`, but runs its
finalizers while the exception is under way. A script that catches an exception, prints it and calls
`sys.exit(1)`, as trainers with a command line of their own and `torch.multiprocessing.spawn` do, is
heard at that call.

What stood in these two places is called as ever, and is put back when the recording ends, unless
the script has replaced ours meanwhile: then ours stays behind it and does nothing any more.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from multiprocessing import util
from typing import TYPE_CHECKING, Any, Protocol

from traindbg.hooks.torch.base.guard import guarded

if TYPE_CHECKING:
    from collections.abc import Callable

_process = 0  # in which `at_end_of_child` has registered something


class Recorded(Protocol):
    """The recording."""

    def record_exception(self, error: BaseException, thread: str = "") -> None: ...
    def record_exit(self, code: Any, error: BaseException | None) -> None: ...


def at_end_of_child(function: Callable[[], None]) -> None:
    """Calls it when this process ends, where that is a child of `multiprocessing`; once in each.

    A forked one forgets the finalizers of its parent.
    """
    global _process
    if _process != os.getpid():
        _process = os.getpid()
        util.Finalize(None, function, exitpriority=0)


def raised() -> BaseException | None:
    """What ends this process, asked while it ends: an exception that nobody has caught."""
    return sys.exc_info()[1] or getattr(sys, "last_value", None)


def is_failure(code: Any) -> bool:
    """Whether a process that leaves with this, given to `sys.exit`, has an exit code but 0."""
    return code is not None and code != 0


class Ends:
    """Listens while a recording is open."""

    def __init__(self, recording: Recorded) -> None:
        self._recording: Recorded | None = recording
        self._put: list[tuple[Any, str, Any, Any]] = []  # where, name, ours, what stood there

    def listen(self) -> None:
        self._replace(threading, "excepthook", self._thread_raised(threading.excepthook))
        self._replace(sys, "exit", self._leaves(sys.exit))

    def close(self) -> None:
        """Of a recording that has ended, or of the parent of this process."""
        self._recording = None
        for place, name, ours, original in self._put:
            if getattr(place, name) is ours:
                setattr(place, name, original)
        self._put.clear()

    def _replace(self, place: Any, name: str, ours: Any) -> None:
        self._put.append((place, name, ours, getattr(place, name)))
        setattr(place, name, ours)

    def _thread_raised(self, original: Any) -> Any:
        @functools.wraps(original)
        def excepthook(args: Any, /) -> Any:
            recording, error = self._recording, args.exc_value
            ends_alone = error is None or isinstance(error, SystemExit)
            if recording is not None and not ends_alone:
                name = args.thread.name if args.thread is not None else "unknown"
                guarded("events", recording.record_exception, error, name)
            return original(args)

        return excepthook

    def _leaves(self, original: Any) -> Any:
        @functools.wraps(original)
        def leave(status: Any = None, /) -> Any:
            recording = self._recording
            # Another thread ends alone by it.
            is_main = threading.current_thread() is threading.main_thread()
            if recording is not None and is_main:
                guarded("events", recording.record_exit, status, sys.exc_info()[1])
            return original(status)

        return leave
