"""Whose training is recorded where several threads train at the same time: one of them.

A recording is of one training, whose steps follow one another. What is more, a backward pass writes
gradients without the interpreter's lock, and so does `zero_grad()` give them back: to look at
`.grad` in another thread meanwhile can end the process. So a thread that begins a backward pass
waits until hooks that run in another one are left, and when that one trains, only one of the two is
heard from then on, and what the other one trains is watched no more. Threads that train one after
the other are all heard.
"""

from __future__ import annotations

import concurrent.futures.thread
import queue
import selectors
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import torch

from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.base.leaves import leaves_of
from traindbg.hooks.torch.steps.in_backward import in_backward

if TYPE_CHECKING:
    from collections.abc import Callable

    from traindbg._core import HotPath
    from traindbg.hooks.torch.base.guard import Guard
    from traindbg.hooks.torch.base.watched import WatchedModels
    from traindbg.hooks.torch.recording.watcher import Watcher

# Of a thread that is not heard, without a step of the one that is: that one has stopped training.
_PASSES_UNTIL_HEARD = 100
_MOST_SECONDS = 10.0  # to wait for hooks of another thread; they take milliseconds
# Without a step of a thread that trained: it waits in a way of its own. The longer its steps took,
# the longer.
_SECONDS_UNTIL_IDLE, _STEPS_UNTIL_IDLE = 5.0, 10
_MOST_LOOKS = 3  # for the model that a thread's passes train
_RUNS_A_PASS = "_engine_run_backward"  # PyTorch's, while the interpreter's lock is given away
_this_thread = threading.get_ident
_WAITING = {module.__file__ for module in (threading, queue, selectors, concurrent.futures.thread)}
_WAITS = {"_wait_for_tstate_lock", "_worker", "acquire", "get", "join", "put", "select", "wait"}
# Where a compiler follows a backward pass into what is called here, it warns of builtin functions
# that it does not know.
_is_compiling = torch.compiler.is_compiling


def _is_alive(thread: int) -> bool:
    return any(each.ident == thread for each in threading.enumerate())


def _is_busy(thread: int | None) -> bool:
    """Whether a thread runs, and does not wait for others, for its work or its end."""
    frame = None if thread is None else sys._current_frames().get(thread)
    if frame is None:
        return False
    return frame.f_code.co_filename not in _WAITING or frame.f_code.co_name not in _WAITS


def _is_in_pass(thread: int) -> bool:
    """Whether a thread is inside of a backward pass now, and may write gradients."""
    frame = sys._current_frames().get(thread)
    while frame is not None:
        if frame.f_code.co_name == _RUNS_A_PASS:
            return True
        frame = frame.f_back
    return False


class Threads:
    """One per recording. `lose` is told of models that are watched no more."""

    def __init__(
        self,
        guard: Guard,
        hot: HotPath,
        watched: WatchedModels,
        lose: Callable[[list[Watcher]], None],
    ) -> None:
        self._guard = guard
        self._hot = hot
        self._watched = watched
        self._lose = lose
        self._deciding = threading.Lock()  # taken for moments, inside of the guard's
        self._last: int | None = None  # that began a backward pass which was heard
        self._began_at = -1  # the step in which it did, or is about to
        self._its: Watcher | None = None  # of the model that it trains; None: not known to be any
        self._looks = 0  # for that
        self._trains: int | None = None  # the one that ended a step
        self._silent = (0, 0)  # passes that were not heard, and after how many steps
        # When another thread was about to train for the first time since so many steps.
        self._asked: tuple[int, float] | None = None
        self._made_at = time.monotonic()
        self._idle: set[int] = set()  # threads that trained, and have not for a while
        self._had_passes: set[int | None] = set()  # threads that did, heard or not

    def hears_backward(self, tensors: Any) -> bool:
        """A backward pass is about to begin in this thread: whether it is heard."""
        # A pass inside of another one is part of it: a recomputation, on a device in the thread
        # that computes its gradients.
        if _is_compiling() or in_backward():
            return True
        this, root = _this_thread(), tensors
        if isinstance(tensors, (list, tuple)):
            root = tensors[0] if tensors else None
        if not isinstance(root, torch.Tensor):
            root = None
        self._had_passes.add(this)
        with self._deciding:
            is_same, is_heard = this == self._last, self._last is None
            if is_same or is_heard:
                self._last, self._began_at = this, self._hot.steps
        if is_same:
            is_unknown = self._its is None and self._looks < _MOST_LOOKS
            if is_unknown and threading.active_count() > 1:
                self._looks += 1
                self._its = guarded("threads", self._watcher_of, root)
            self._settle()
            return True
        if not is_heard and not guarded("threads", self._takes_over, this, root):
            return False
        self._its = guarded("threads", self._watcher_of, root)
        self._looks = 1
        self._settle()
        return True

    def _settle(self) -> None:
        """Of a thread whose passes were looked at, native code need not ask any more."""
        is_known = self._its is not None or self._looks >= _MOST_LOOKS
        with self._deciding:
            if self._last == _this_thread():
                self._hot.settled_thread = (self._last or 0) if is_known else 0

    def is_heard(self) -> bool:
        """Of a pass of this thread, in hooks: whether no other one was heard since it was asked.

        None will be until they are left. Nor is another one about to train, which would not ask.
        """
        if in_backward():
            return True
        return self._last in (None, _this_thread()) and self.is_alone()

    def is_alone(self) -> bool:
        """Whether no other thread may be training now: the last ones or, of several models, any."""
        others = {self._last, self._trains}
        if len(self._watched.watchers) > 1:
            others |= self._had_passes
        return not any(map(self._is_busy, others - {None, _this_thread()}))

    def _is_busy(self, thread: int | None) -> bool:
        return thread not in self._idle and _is_busy(thread)

    def may_look_at_gradients(self) -> bool:
        """At the end of a step: whether no other thread may be computing some."""
        if _is_compiling():
            return True
        self._trains = _this_thread()
        return self.is_alone()

    def _watcher_of(self, root: torch.Tensor | None) -> Watcher | None:
        for holder in self._watched.holders_of(
            {id(leaf) for leaf in leaves_of(root, with_complex=True)}
        ):
            return holder if holder.leader is None else holder.leader
        return None

    def _takes_over(self, this: int, root: torch.Tensor | None) -> bool:
        """Whether this thread is heard although the pass before was another one's."""
        lock = self._guard.lock
        if not lock.acquire(timeout=_MOST_SECONDS):
            return False
        try:
            with self._deciding:
                is_heard = self._is_to_be_heard(this, root)
                if is_heard:
                    self._last, self._began_at = this, self._hot.steps
                return is_heard
        finally:
            lock.release()

    def _is_to_be_heard(self, this: int, root: torch.Tensor | None) -> bool:
        # From now on the other one asks before it begins a pass: either it has begun one, which
        # shows below, or it waits.
        self._hot.settled_thread = 0
        self._idle.discard(this)
        last = self._last
        if last is None or not _is_alive(last):
            self._hot.only_thread = 0
            return True
        if self._hot.only_thread != 0:
            return self._is_heard_again(root)
        if self._hot.first_backward and self._began_at != self._hot.steps:  # between two steps
            if self._trains in (None, this) or not self._is_busy(self._trains):
                return True
            if self._asked is None:
                self._asked = self._hot.steps, time.monotonic()
            steps, since = self._asked
            if steps == self._hot.steps:  # who made the last one may make more
                of_a_step = (since - self._made_at) / max(1, steps)
                wait = max(_SECONDS_UNTIL_IDLE, _STEPS_UNTIL_IDLE * of_a_step)
                if time.monotonic() - since < wait:
                    return False
                self._idle.add(self._trains)
                self._asked = None
                return True
            self._asked = None
        ours, theirs = self._watcher_of(root), self._its
        if ours is None:
            return False  # a pass that trains nothing that is watched
        if theirs is None:
            return True  # theirs was such a one
        if theirs is ours and not _is_in_pass(last):
            return True  # one training that goes from thread to thread
        is_ours = self._trains == this  # and the other one has not ended a step
        self._hot.only_thread = this if is_ours else last
        if is_ours and theirs is not ours:
            self._lose([each for each in self._watched.watchers if each is not ours])
        else:
            self._lose([ours])
        return is_ours

    def _is_heard_again(self, root: torch.Tensor | None) -> bool:
        """A pass of a thread that is not heard any more."""
        steps = self._hot.steps
        passes = self._silent[0] + 1 if self._silent[1] == steps else 1
        self._silent = (passes, steps)
        if passes > _PASSES_UNTIL_HEARD:
            self._hot.only_thread = 0
            return True
        if len(self._watched.watchers) > 1:
            ours = self._watcher_of(root)
            if ours is not None:
                self._lose([ours])  # it was made, or is watched, since
        return False
