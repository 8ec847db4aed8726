"""When watched models are attached to: at steps that need something of a forward pass.

At all others nothing is attached, but while an evaluation may be under way
(`evaluations.standby`). Where torch.compile or torch.export are at work there is more to it: what
they trace calls no hooks, or must not. What was not seen is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from traindbg import _core
from traindbg.hooks.torch.base.guard import boundary, failures
from traindbg.hooks.torch.recording.forward_sink import FORWARD_ROLES

if TYPE_CHECKING:
    from traindbg.hooks.torch.base.guard import Guard
    from traindbg.hooks.torch.base.micro_batches import MicroBatches
    from traindbg.hooks.torch.base.unseen import Unseen
    from traindbg.hooks.torch.base.watched import WatchedModels
    from traindbg.hooks.torch.recording.compilation import Compilation
    from traindbg.hooks.torch.recording.forward_sink import ForwardSink
    from traindbg.hooks.torch.recording.watcher import Watcher
    from traindbg.hooks.torch.steps.by_hand import ByHand

_TRAIN = _core.TRAIN
_EVAL = _core.EVAL
_ATTENTION = _core.ROLE_BITS["attention"]
_FUNCTIONS = _core.ROLE_BITS["activation"] | _ATTENTION


class Attachment:
    """Has observers of forward passes attach and detach. One per recording."""

    def __init__(
        self,
        guard: Guard,
        session: _core.Session,
        watched: WatchedModels,
        sink: ForwardSink,
        micro: MicroBatches,
        compilation: Compilation,
        unseen: Unseen,
        by_hand: ByHand,
    ) -> None:
        self.guard = guard
        self.evaluates = False  # something of evaluations is asked for
        self._session = session
        self._hot = guard.hot
        self._watched = watched
        self._sink = sink
        self._micro = micro
        self._compilation = compilation
        self._unseen = unseen
        self._by_hand = by_hand
        self._calls_parts = False  # from the first step on

    def prepare(self, watcher: Watcher) -> None:
        """Attaches for the step that begins, or takes off, as it needs."""
        model, observer = watcher.model, watcher._observer
        if model is None or observer is None:
            return
        train = self._hot.due & FORWARD_ROLES
        if self._compilation.is_in_use and watcher._compiled and not self._compilation.eager.is_on:
            observer.disarm()
            if train:
                self._unseen.compiled(model)
            return
        if (
            not train
            and not self.evaluates
            and not self._micro.are_told_apart
            and not self._session.due(_EVAL) & FORWARD_ROLES
            and not self._sink.may_hear_evaluations
        ):
            if observer.armed or observer.observing:
                observer.disarm()
            return
        if not train and self._may_stand_by(model):
            observer.stand_by()
            return
        observer.counts_unseen = self._compilation.is_in_use and observer.unseen is None
        observer.arm(self._compilation.is_in_use)
        may_call_parts = self._hot.steps >= 1 or self._calls_parts
        if watcher.leader is None and may_call_parts and observer.calls_in_training == 0 and train:
            # A step went by in which the training did not call the model itself: look at its parts.
            self._sink.now = _TRAIN
            observer.observe_without_root()

    def _may_stand_by(self, model: torch.nn.Module) -> bool:
        """Whether nothing is asked for but of an evaluation, whose beginning is heard."""
        is_evaluation = not model.training or not torch.is_grad_enabled()
        return not (self._micro.are_told_apart or self._compilation.is_in_use or is_evaluation)

    def check(self, watcher: Watcher) -> None:
        """After a step that wanted a forward pass: says so when one, or a part, was not seen."""
        observer, model = watcher._observer, watcher.model
        if observer is None or not observer.armed or not self._hot.due & FORWARD_ROLES:
            return
        if watcher._has_scripts:
            what = "what modules inside of scripted or traced modules return"
            self._unseen.say("scripts", what, "torch.jit's code calls no hooks")
        if observer.calls == 0 and observer.outputs == 0:
            if (
                self._compilation.is_in_use
                and not self._compilation.eager.is_on
                and model is not None
            ):
                self._unseen.compiled(model)
            elif self._hot.steps >= 1:
                what = f"what the modules of {type(model).__name__} return"
                self._unseen.say("silent", what, "no module of it was called in Python")
            return
        if observer.calls_in_training == 0:
            observer.parts_were_called()
        if self._hot.forward_seen and watcher.leader is None:
            self._session.forward_passed()
        if self._compilation.is_in_use and observer.unseen:
            self._unseen.modules(observer.unseen, observer.seen, self._compilation.eager.is_on)
            observer.unseen = []
        if self._sink.misses_attention and observer.took_functions and self._hot.due & _ATTENTION:
            self._sink.misses_attention = False
            if observer.calls_in_training == 0:
                self._unseen.attention_without_call()
            elif failures.get("attention", 0) == 0:
                self._unseen.attention()
        if not observer.took_functions and self._hot.due & _FUNCTIONS:
            self._unseen.functions()

    @boundary("forward")
    def parts_are_called(self) -> None:
        """A training begins that may call the parts of its model, but never the model itself."""
        self._calls_parts = True
        for watcher in self._watched.every():
            self.prepare(watcher)

    @boundary("forward")
    def compiler_used(self, target: Any) -> None:
        """torch.compile is called for `target`, perhaps in the middle of a step."""
        self._compilation.is_in_use = True
        if isinstance(getattr(target, "__self__", None), torch.optim.Optimizer):
            self._by_hand.is_compiled = True
            if not self._by_hand.is_open:  # its steps were heard before, and end now
                self._unseen.steps()
        parts = list(target.modules()) if isinstance(target, torch.nn.Module) else []
        for watcher in self._watched.every():
            watcher._compiled = watcher._compiled or any(part is watcher.model for part in parts)
        if not self._compilation.eager.is_on:
            self._compilation.step_begins()
        for watcher in self._watched.every():
            self.prepare(watcher)

    @boundary("forward")
    def export_begins(self) -> None:
        """torch.export is called, perhaps in the middle of a step: what it traces has no hooks."""
        for watcher in self._watched.every():
            if watcher._observer is not None:
                watcher._observer.disarm()

    @boundary("forward")
    def export_ends(self) -> None:
        for watcher in self._watched.every():
            self.prepare(watcher)
