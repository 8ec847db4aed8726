"""A model that is being watched, as the user holds it.

What is kept of it beside the model: its observer of forward passes, and the loss module of the
user's that is listened to for it. Nothing here keeps the model alive.
"""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import torch

from traindbg import _core
from traindbg.errors import TraindbgError
from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.base.transforms import transforms
from traindbg.hooks.torch.recording.forward import ForwardObserver
from traindbg.hooks.torch.steps import patches

if TYPE_CHECKING:
    from types import TracebackType

    from traindbg.hooks.torch.base.guard import Guard
    from traindbg.hooks.torch.base.unseen import Unseen
    from traindbg.hooks.torch.recording.forward import Sink


class Host(Protocol):
    """In what it is watched (the recording)."""

    session: _core.Session
    hot: _core.HotPath
    guard: Guard
    unseen: Unseen

    @property
    def sink(self) -> Sink: ...
    @property
    def companion_sink(self) -> Sink: ...
    def record_exception(self, error: BaseException) -> None: ...
    def remove(self, watcher: Watcher) -> None: ...
    def drop(self, watcher: Watcher) -> None: ...


class Watcher:
    """A model that is being watched. A context manager; leaving it detaches.

    Made by `watch`. `run_dir` is where the recording goes; `is_active` is False once detached, or
    when nothing could be recorded from the start.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        prefix: str,
        recording: Host | None,
        leader: Watcher | None = None,
    ) -> None:
        self._model = weakref.ref(model)
        self._recording = recording
        self.prefix = prefix
        self.leader = leader  # of a companion: the watcher of the model that it is trained with
        # The number of the model itself, where companions are; None until it is called, or stepped.
        self.first_layer: int | None = None
        self.run_dir = Path(recording.session.run_directory) if recording else Path()
        self._observer: ForwardObserver | None = None
        self._calls_outside = 0  # of a training pass, up to the last loss without gradients
        self._loss: weakref.ref[torch.nn.Module] | None = None  # a loss module of the user's
        self._loss_hook: torch.utils.hooks.RemovableHandle | None = None  # where it needs one
        self.is_found = False  # by itself, of an optimizer: nobody asked for just this model
        self._compiled = False  # it runs as compiled code, in which hooks do not fire
        scripts = (isinstance(module, torch.jit.ScriptModule) for module in model.modules())
        self._has_scripts = any(scripts)
        if recording is not None:
            root_name = prefix.rstrip(".") or "model"
            path = _core.ForwardPath(recording.session, recording.hot, torch.Tensor, transforms)
            sink = recording.sink if leader is None else recording.companion_sink
            self._observer = ForwardObserver(model, root_name, prefix, sink, path)
            weakref.finalize(model, _forget, weakref.ref(self))

    def comes_after(self, layers: int) -> None:
        """So many layers of companions come before the model."""
        self.first_layer = layers
        if self._observer is not None:
            self._observer.comes_after(layers)

    @property
    def model(self) -> torch.nn.Module | None:
        """The watched model; None when it no longer exists."""
        return self._model()

    @property
    def is_active(self) -> bool:
        """Whether it still records."""
        return self._recording is not None and not self._recording.guard.dead

    def detach(self) -> None:
        """Stops watching and takes off all that was attached. The last one closes the recording."""
        recording, self._recording = self._recording, None
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.disarm()
        self._forget_loss()
        if recording is not None:
            recording.remove(self)

    def _forget_loss(self) -> None:
        loss = None if self._loss is None else self._loss()
        if loss is not None:
            patches.forget_module(loss)
        if self._loss_hook is not None:
            self._loss_hook.remove()
        self._loss = self._loss_hook = None

    def __enter__(self) -> Watcher:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._recording is not None and error is not None:
            guarded("events", self._recording.record_exception, error)
        self.detach()

    def __repr__(self) -> str:
        model = self.model
        what = type(model).__name__ if model is not None else "a model that is gone"
        state = "recording into" if self.is_active else "ended,"
        return f"<traindbg.Watcher of {what}, {state} {self.run_dir}>"

    def _repr_html_(self) -> str | None:
        """In a notebook: the run so far. None, where there is none, makes it take `repr`."""
        from traindbg.run import Run

        try:
            return Run(self.run_dir)._repr_html_()
        except TraindbgError:
            return None


def _forget(watcher: weakref.ref[Watcher]) -> None:
    """The model is gone; the recording goes on for the next one."""
    alive = watcher()
    if alive is not None and alive._recording is not None:
        alive._recording.drop(alive)
