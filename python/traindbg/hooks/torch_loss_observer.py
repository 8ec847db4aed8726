"""What loss functions return and are given, in training and in evaluations."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch

from traindbg import _core
from traindbg.hooks.torch_device import capturing_graph, own_operations
from traindbg.hooks.torch_guard import boundary, guarded
from traindbg.hooks.torch_losses import LABELS, PREDICTIONS, arguments_of
from traindbg.hooks.torch_shards import whole_here

if TYPE_CHECKING:
    from traindbg.hooks.torch_drivers import Drivers
    from traindbg.hooks.torch_evaluations import Evaluations
    from traindbg.hooks.torch_facts import Facts
    from traindbg.hooks.torch_guard import Guard
    from traindbg.hooks.torch_micro_batches import MicroBatches
    from traindbg.hooks.torch_tensors import Tensors
    from traindbg.hooks.torch_unseen import Unseen
    from traindbg.hooks.torch_watched import WatchedModels

ARGUMENTS = PREDICTIONS | LABELS
CLASSIFIERS = frozenset({"cross_entropy", "nll_loss"})
_TRAIN = _core.TRAIN
_EVAL = _core.EVAL
_LOOP = _core.ROLE_BITS["loop"]
_CLASSES = _core.ROLE_BITS["classes"]
_STEPS_COMPARED = 5  # at the first ones labels are compared with the model's input


class LossObserver:
    """Hears of losses. One per recording; owns what is known of them until backward begins."""

    def __init__(
        self,
        guard: Guard,
        tensors: Tensors,
        watched: WatchedModels,
        evaluations: Evaluations,
        facts: Facts,
        drivers: Drivers,
        micro: MicroBatches,
        unseen: Unseen,
    ) -> None:
        self.guard = guard
        self.ids: dict[str, int] = {}  # by the function's name
        self.misses_arguments = False  # those that the user asked for, up to now
        self.unreduced: torch.Tensor | None = None  # mean of a loss for each sample; one number
        self.scaled: tuple[weakref.ref[torch.Tensor], torch.Tensor] | None = None  # and unscaled
        self._session = tensors.session
        self._hot = guard.hot
        self._tensors = tensors
        self._watched = watched
        self._evaluations = evaluations
        self._facts = facts
        self._drivers = drivers
        self._micro = micro
        self._unseen = unseen

    @boundary("losses")
    def loss_computed(
        self, name: str, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        # Other subclasses are no values: fake tensors of a compiler, functional ones.
        value = whole_here(value)
        if type(value) is not torch.Tensor:
            return
        mode, mark = self._evaluations.mode(), ""
        if mode == _TRAIN:
            self._micro.loss_computed(name)
            mark = self._micro.mark
            if self._micro.is_beyond:
                self._unseen.micro_batches()
                return
        if mode == _EVAL and name in self._evaluations.names:
            self._evaluations.end()
        if mode == _EVAL and self._facts.are_followed:
            self._facts.random.evaluated()
        elif mode == _TRAIN and self._facts.random.is_due:
            guarded("random", self._facts.look_at_random)
        if mode == _TRAIN and self._drivers.is_unstepped and value.requires_grad:
            guarded("unstepped", self._facts.unstepped.loss_computed, self._watched.models())
        due = self._hot.due if mode == _TRAIN else self._session.due(_EVAL)
        if due & _LOOP:
            guarded("loop", self._facts.loss_computed, mode, name, value, args, kwargs)
        if mode == _EVAL and (value.numel() == 1 or due & ARGUMENTS):
            self._evaluations.names.add(name)
        if value.numel() != 1:
            self._session.skip()  # reduction="none"
            if mode == _TRAIN and due & _LOOP:
                guarded("loop", self._note_unreduced, value)
        else:
            tensor_id = self._tensors.id_of(f"loss/{name}{mark}", "loss")
            self.ids[name + mark] = tensor_id
            self._tensors.take_scalar(mode, tensor_id, value)
        if name in CLASSIFIERS and due & _CLASSES:
            self._take_classes(mode, name, args, kwargs)
        if due & ARGUMENTS:
            self.misses_arguments = False
            for role, suffix, tensor in arguments_of(name, args, kwargs):
                full = f"{role}/{name}{suffix}{mark}"
                self._tensors.take(mode, self._tensors.id_of(full, role, tensor), tensor)
                if role == "label" and mode == _TRAIN and self._hot.steps < _STEPS_COMPARED:
                    guarded("labels", self._facts.compare_with_input, tensor)

    @boundary("losses")
    def loss_scaled(self, scaled: Any, loss: Any) -> None:
        if scaled is loss:
            return  # of a scaler that is not enabled
        if type(scaled) is torch.Tensor and type(loss) is torch.Tensor and loss.numel() == 1:
            with own_operations():  # without what it was computed of; it may be gone by then
                alone = loss.detach()
                alone = alone if capturing_graph(loss) else alone.clone()
            self.scaled = (weakref.ref(scaled), alone)
            self._hot.has_scaler = True

    def _take_classes(
        self, mode: int, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        logits = args[0] if args else kwargs.get("input")
        labels = args[1] if len(args) > 1 else kwargs.get("target")
        logits, labels = whole_here(logits), whole_here(labels)
        if (
            logits is None
            or labels is None
            or logits.dim() != 2
            or labels.dim() != 1
            or labels.is_floating_point()
        ):
            return
        tensor_id = self._tensors.id_of(f"classes/{name}", "classes")
        self._tensors.take_classes(mode, tensor_id, logits, labels)

    def _note_unreduced(self, value: torch.Tensor) -> None:
        """Of a loss for each sample, which the loop makes one number of: its mean."""
        is_plain = type(value) is torch.Tensor and value.is_floating_point()
        if is_plain and value.numel() > 0 and not capturing_graph(value):
            with own_operations():
                self.unreduced = value.detach().mean()

    def tell_unreduced(self, root: torch.Tensor) -> None:
        """Whether the loss is about the mean of what a loss function gave for each sample.

        With a mask, say; with weights it may be something else, such as the objective of a policy.
        """
        mean, self.unreduced = self.unreduced, None
        if mean is None or root.device != mean.device or capturing_graph(root):
            return
        with own_operations():
            is_about = ((root > 0.8 * mean) & (root < 1.25 * mean)).to(torch.float32)
        self._tensors.tell("loss_is_reduced_later", is_about)
