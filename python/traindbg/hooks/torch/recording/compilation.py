"""Whether a training uses torch.compile, and its steps that run uncompiled (`base.compiled`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traindbg import _core
from traindbg.hooks.torch.base.compiled import EagerStep, compiler_in_use
from traindbg.hooks.torch.base.guard import guarded

if TYPE_CHECKING:
    from traindbg.hooks.torch.base.unseen import Unseen
    from traindbg.hooks.torch.base.watched import WatchedModels


class Compilation:
    """One per recording. Compiled code runs uncompiled in steps that need more than it shows."""

    def __init__(self, session: _core.Session, watched: WatchedModels, unseen: Unseen) -> None:
        self.is_in_use = compiler_in_use()
        self.eager = EagerStep(self._is_wanted)
        self._session = session
        self._watched = watched
        self._unseen = unseen

    def step_begins(self) -> None:
        """Makes compiled code run uncompiled in the step that begins, if the step needs it."""
        self.is_in_use = self.is_in_use or compiler_in_use()
        if not self.is_in_use or not self._session.eager(_core.TRAIN):
            self.eager.end()
            return
        try:
            self.eager.begin()
        except (AttributeError, ImportError, RuntimeError) as error:
            self._unseen.say("eager", "what compiled modules return", f"torch.compile: {error}")

    def end(self) -> None:
        """Compiled code runs as it would without us."""
        guarded("compiled", self.eager.end)

    def _is_wanted(self) -> bool:
        """Whether compiled code that is called now belongs to a training step.

        Gradients may be off in one: a checkpointed part (`use_reentrant=True`) runs without, and
        again with them in the backward pass, where it must draw the same random numbers.
        """
        models = (watcher.model for watcher in self._watched.watchers)
        return any(model is not None and model.training for model in models)
