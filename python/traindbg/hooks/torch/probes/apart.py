"""Work that leaves nothing in the training: it is done in a child of the process.

The child has a copy of everything, as it is at that moment: weights, buffers, random numbers, what
the code of a model counts in its files. It computes with one thread, prints nothing, hears no
signals of the user's, and ends without a word. Only its answer, a line of JSON, comes back.

What is not copied is what processes share: files that are open, memory that is shared on purpose.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import torch

from traindbg import _core

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST = 5.0  # seconds
_MOST_BYTES = (
    8 << 30
)  # resident: each page of them is looked up, and once more when it is written to
_MOST_ANSWER = 1 << 16
_FATAL = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT)


class NotProbedError(Exception):
    """Says why."""


def _resident_bytes() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def apart(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `work` returns in a child. Raises NotProbedError; waits five seconds at most."""
    if _resident_bytes() > _MOST_BYTES:
        raise NotProbedError("the process has more than 8 GiB of memory")
    reader, writer = os.pipe()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        child = _core.fork_silently()
    except OSError as error:
        os.close(reader)
        os.close(writer)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        raise NotProbedError(f"there is no child process: {error}") from None
    if child == 0:
        _do(work, writer)  # does not return
    is_over = False
    try:
        os.close(writer)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        answer = _read(reader)
        is_over = True
    finally:
        os.close(reader)
        _end(child, is_over)
    if not answer:
        raise NotProbedError("its process ended without an answer")
    found: dict[str, Any] = json.loads(answer)
    if "why" in found:
        raise NotProbedError(str(found["why"]))
    return found


def _read(reader: int) -> bytes:
    """All that the child writes. Raises NotProbedError when it takes too long."""
    end = time.monotonic() + _LONGEST
    poll = select.poll()
    poll.register(reader, select.POLLIN | select.POLLHUP)
    answer = b""
    while True:
        left = end - time.monotonic()
        if left <= 0 or not poll.poll(1000 * left):
            raise NotProbedError(f"it takes more than {_LONGEST:g} seconds")
        part = os.read(reader, _MOST_ANSWER)
        if not part:
            return answer
        answer += part


def _has_ended(child: int) -> bool:
    """Within a second."""
    for _ in range(1000):
        if os.waitpid(child, os.WNOHANG)[0] == child:
            return True
        time.sleep(0.001)
    return False


def _end(child: int, is_over: bool) -> None:
    """Sees the child off. `is_over`: it has closed its end of the pipe, as it does when it ends."""
    with contextlib.suppress(OSError):  # somebody waits for every child
        if is_over and _has_ended(child):
            return
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _do(work: Callable[[], dict[str, Any]], writer: int) -> None:
    """In the child, to its end."""
    try:
        _be_silent()
        torch.set_num_threads(1)
        answer = work()
    except BaseException as error:
        kind = "" if isinstance(error, NotProbedError) else f"{type(error).__name__}: "
        answer = {"why": f"{kind}{error}"[:300]}
    try:
        os.write(writer, json.dumps(answer).encode())
    finally:
        os._exit(0)


def _be_silent() -> None:
    gc.disable()  # nothing of the training's is taken apart here
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    sys.stdout = sys.stderr = os.fdopen(null, "w")  # which may be others than these
    for number in signal.valid_signals():
        # Handlers are of the training: a checkpoint is written once.
        if number in _FATAL or callable(signal.getsignal(number)):
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 2 * _LONGEST)  # should nobody be left to end it
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # where memory gets short, the child goes, and not the training
