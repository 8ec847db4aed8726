"""What backward passes begin with and end with: the loss, how it was made, what they found.

Gradients themselves are looked at where an optimizer is about to step.
"""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch

from traindbg import _core
from traindbg.hooks.torch.base.device import own_operations, version_of
from traindbg.hooks.torch.base.guard import boundary, guarded
from traindbg.hooks.torch.base.later import may_read
from traindbg.hooks.torch.base.shards import has_values, whole_here
from traindbg.hooks.torch.base.sources import sources
from traindbg.hooks.torch.losses.compared import WrittenOut, compared_shapes, written_out
from traindbg.hooks.torch.losses.dense_weights import DenseWeights
from traindbg.hooks.torch.losses.weighed import weighed_error
from traindbg.hooks.torch.recording.loss_observer import ARGUMENTS
from traindbg.hooks.torch.steps.drivers import SKIPPED_UNTIL_A_STEP
from traindbg.hooks.torch.updates.gradients import GRADIENTS_BEFORE, first_not_finite, is_not_finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traindbg.hooks.torch.base.guard import Guard
    from traindbg.hooks.torch.base.micro_batches import MicroBatches
    from traindbg.hooks.torch.base.tensors import Tensors
    from traindbg.hooks.torch.base.watched import WatchedModels
    from traindbg.hooks.torch.evaluations.phases import Evaluations
    from traindbg.hooks.torch.recording.loop_facts import Facts
    from traindbg.hooks.torch.recording.loss_observer import LossObserver
    from traindbg.hooks.torch.steps.by_hand import ByHand
    from traindbg.hooks.torch.steps.drivers import Drivers
    from traindbg.hooks.torch.steps.in_backward import StepsInBackward
    from traindbg.hooks.torch.steps.threads import Threads
    from traindbg.hooks.torch.updates.gradients import GradientObserver

_TRAIN = _core.TRAIN
_LOOP = _core.ROLE_BITS["loop"]
_CLASSES = _core.ROLE_BITS["classes"]
# From so many backward passes without a step on, gradients are asked whether they are finite.
_PASSES_UNTIL_A_LOOK = 16
_PASSES_WITH_A_LOOK = 24  # from there on, where none overflowed


class Host(Protocol):
    """Who ends steps (the recording)."""

    def drain(self) -> None: ...
    def end_step(self) -> None: ...

    @property
    def in_backward(self) -> StepsInBackward: ...
    @property
    def threads(self) -> Threads: ...


class _Leftover(NamedTuple):
    """A gradient that was there before the first pass of the step, as the last one found it."""

    parameter: weakref.ref[torch.Tensor]
    gradient: int  # its id
    version: int
    is_told: bool = False  # that the first pass did not add to it


class BackwardObserver:
    """Hears of backward passes. One per recording; owns what it counts of those without a step."""

    def __init__(
        self,
        host: Host,
        guard: Guard,
        tensors: Tensors,
        watched: WatchedModels,
        evaluations: Evaluations,
        facts: Facts,
        by_hand: ByHand,
        drivers: Drivers,
        micro: MicroBatches,
        losses: LossObserver,
        gradients: GradientObserver,
    ) -> None:
        self.guard = guard
        self.overflowed: weakref.ref[torch.Tensor] | None = None  # by the last backward pass
        self.thrown_away = 0  # passes of the step under way whose gradients overflowed, and went
        self._host = host
        self._hot = guard.hot
        self._tensors = tensors
        self._watched = watched
        self._evaluations = evaluations
        self._facts = facts
        self._by_hand = by_hand
        self._is_of_training = False  # what `torch.autograd.grad` computes now
        self._drivers = drivers
        self._micro = micro
        self._losses = losses
        self._gradients = gradients
        self._dense_weights = DenseWeights(tensors)
        self._looks_from = _PASSES_UNTIL_A_LOOK
        self._last_passes = 0  # of the step under way, at the last look
        self._leftover: _Leftover | None = None  # which no pass of the step has added to up to now

    @boundary("backward")
    def backward_begins(self, tensors: Any, retains: bool) -> None:
        if not self._host.threads.is_heard():
            return
        self._host.in_backward.look()
        # Anything else, such as a generator, is the training's alone to go through.
        guarded("sources", sources.note, "backward")
        roots = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        root = whole_here(roots[0]) if roots else None
        self._by_hand.pass_begins(root)
        if self._facts.left_behind.is_on:
            guarded("left behind", self._facts.left_behind.backward_begins, root)
        self._begins(root, retains)

    def _begins(self, root: torch.Tensor | None, retains: bool, *, goes_on: bool = False) -> None:
        self._evaluations.end(by_backward=True)
        if self._hot.due & _LOOP:
            is_scaled = self._losses.scaled is not None and self._losses.scaled[0]() is root
            guarded("loop", self._facts.backward_begins, root, is_scaled)
        # A pass that goes on is a part of the next one, as the inner steps of MAML are.
        if not goes_on:
            self._micro.backward_begins()
        if self._micro.is_beyond:
            root = None
        if root is not None and has_values(root) and root.numel() == 1:
            if self._losses.scaled is not None and self._losses.scaled[0]() is root:
                root = self._losses.scaled[1]
            self._hot.root_loss = self._tensors.id_of("loss", "loss")
            self._losses.take_root(self._hot.count_pass(retains), root)
        if self._hot.due & GRADIENTS_BEFORE:
            self._gradients.backward_begins()
        if self._drivers.is_unstepped:
            guarded("unstepped", self._facts.unstepped.backward_begins, self._watched.models())
        self._hot.passes += 1
        if self._hot.passes >= self._looks_from:
            guarded("loop", self._look_for_thrown_away)
        if self._hot.first_backward:
            self._hot.first_backward = False
            if self._hot.due & _LOOP:
                self._take_leftover()
                if root is not None:
                    guarded("written-out losses", self._take_compared, root)
                    guarded("own tokens", self._facts.tell_own_tokens, root)
                    guarded("weights of classes", self._dense_weights.backward_begins, root)
                if isinstance(root, torch.Tensor) and root.numel() == 1:
                    guarded("loop", self._losses.tell_unreduced, root)
            if self._hot.due & (_LOOP | _CLASSES) and type(root) is torch.Tensor:
                guarded("labels", self._losses.take_picked, root)
        elif self._hot.due & _LOOP:
            guarded("loop", self._look_before_pass)
            self._take_cleared()
        if self._hot.due & _LOOP:
            guarded("loop", self._facts.kept.pass_begins, self._watched.tables)
            guarded("loop", self._facts.foreign.pass_begins, self._watched.tables, root)
            self._facts.turns.pass_begins()
            self._facts.clips.backward_begins()

    @boundary("loop")
    def backward_ended(self, retains: bool) -> None:
        if not self._host.threads.is_heard():
            return
        self._ended(retains)
        self._by_hand.pass_ended()

    @boundary("backward")
    def grad_begins(
        self, outputs: Any, inputs: Sequence[Any], retains: bool, goes_on: bool
    ) -> None:
        """`torch.autograd.grad`; `goes_on`: gradients are wanted of what it returns."""
        roots = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        root = whole_here(roots[0]) if roots else None
        guarded("slopes", self._facts.loop.slopes.grad_begins, outputs, inputs, goes_on)
        guarded("added numbers", self._facts.loop.added_numbers.grad_begins)
        self._is_of_training = self._by_hand.wants(root, inputs)
        if self._is_of_training:
            self._by_hand.pass_begins(root)
            # Where it goes on, the loss is what is minimised in the end.
            self._begins(None if goes_on else root, retains, goes_on=goes_on)

    @boundary("loop")
    def grad_ended(self, inputs: Sequence[Any], gradients: Any, retains: bool) -> None:
        """It returned the gradients."""
        guarded("slopes", self._facts.loop.slopes.grad_ended, gradients)
        guarded("added numbers", self._facts.loop.added_numbers.grad_ended)
        if self._is_of_training:
            self._is_of_training = False
            self._ended(retains)
            found = zip(inputs, gradients, strict=False)
            self._by_hand.pass_ended({id(p): gradient for p, gradient in found})

    def _ended(self, retains: bool) -> None:
        self._facts.loop.backward_ended(retains)
        if self._hot.due & _LOOP:
            guarded("loop", self._facts.kept.pass_ended, self._watched.tables)
            guarded("loop", self._tell_added)
        if self._drivers.is_unstepped:
            guarded("unstepped", self._facts.unstepped.backward_ended)
        looks = self.thrown_away > 0 or self._hot.passes <= self._looks_from + _PASSES_WITH_A_LOOK
        if looks and self._hot.passes >= self._looks_from:
            self.overflowed = first_not_finite(self._watched.models())

    def _look_for_thrown_away(self) -> None:
        """A pass begins, many after the last step: looks whether what the one before left was used.

        A loop that leaves out steps whose gradients are not finite calls no optimizer.
        """
        last, self._last_passes = self._last_passes, self._hot.passes
        if self._hot.passes <= last:  # a step was made after these: they were its micro-batches
            self._looks_from = 2 * last
            return
        known, self.overflowed = self.overflowed, None
        if (
            self._hot.passes > self._looks_from + _PASSES_WITH_A_LOOK
            and known is None
            and self.thrown_away == 0
        ):
            return  # many micro-batches
        self._hot.due |= _LOOP  # to hear of the end of the pass
        parameter = None if known is None else known()
        if parameter is None or is_not_finite(parameter.grad):
            return
        self.thrown_away += 1
        if self.thrown_away < SKIPPED_UNTIL_A_STEP or not self._facts.are_followed:
            return
        self.thrown_away = 0
        self._host.drain()
        self._tensors.tell("steps_left_out", self._hot.passes - 1, always=True)
        self._host.end_step()
        self._hot.passes = 1  # the one that begins
        self._last_passes = 0

    def _tell_weighed(self, loss: Any, returned: Any) -> None:
        """Whether the loss is an error of what a model returned, weighed by data."""
        weighed = weighed_error(loss, returned) if isinstance(loss, torch.Tensor) else None
        if weighed is not None:
            self._tensors.tell("loss_is_weighed_error", weighed.to(torch.float32))

    def _take_compared(self, loss: Any) -> None:
        """Shapes of what a loss that is written out compares; the numbers are the elements."""
        known = compared_shapes(loss) if isinstance(loss, torch.Tensor) else None
        for word, shape in zip(("prediction", "difference"), known or (), strict=False):
            name = f"loop/{word}_compared"
            tensor_id = self._tensors.id_of_shape(name, "loop", shape)
            self._tensors.take_number(tensor_id, math.prod(shape))
        returned = self._facts.loop.returned()
        guarded("weighed errors", self._tell_weighed, loss, returned)
        found = written_out(loss, returned) if isinstance(loss, torch.Tensor) else None
        if found is None or self._tensors.knows(f"loss/{found.function}"):
            return
        self._tell_repeated_target(found)
        self._facts.target_computed(found)
        # On a device the truth value comes with all else that waits there.
        self._tensors.tell("loss_is_written_out", found.is_mean.to(torch.float32))
        self._tensors.tell("loss_is_of_columns", found.is_of_columns.to(torch.float32))
        self._tensors.tell("loss_is_summed", found.terms)
        if self._hot.due & ARGUMENTS:
            for role, tensor in (("prediction", found.prediction), ("label", found.target)):
                name = f"{role}/{found.function}"
                self._tensors.take(_TRAIN, self._tensors.id_of(name, role, tensor), tensor)
            if self._drivers.is_at_the_start():
                guarded("labels", self._facts.compare_with_input, found.target, True)

    def _tell_repeated_target(self, found: WrittenOut) -> None:
        """Whether a target (n,) was compared with a prediction (n, n), each value n times."""
        shape = found.target.shape
        if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 4:
            return
        with own_operations():
            target, error = found.target, 1e-5 * found.target.abs().max()
            is_row = (target - target[0]).abs().amax() <= error
            varies = (target[0] - target[0, 0]).abs().amax() > 1e-3 * target[0].abs().amax()
            others = (found.prediction - found.prediction[0]).abs().amax() > error
            is_repeated = (is_row & varies & others).to(torch.float32)
        self._tensors.tell("target_is_repeated", is_repeated)

    def _take_leftover(self) -> None:
        """Of the first pass of the step: the gradient that it found."""
        self._leftover = None
        found = self._drivers.smallest()
        if found is None:
            return
        smallest, path = found
        gradient = smallest.grad
        if gradient is not None:
            name = "loop/gradient_before_backward"
            tensor_id = self._tensors.id_of(name, "loop", gradient, module=path)
            self._tensors.take(_TRAIN, tensor_id, gradient)
            self._leftover = _Leftover(weakref.ref(smallest), id(gradient), version_of(gradient))

    def _look_before_pass(self) -> None:
        """A further pass begins: the loop may have set the gradient since the one before."""
        found = self._leftover
        parameter = None if found is None else found.parameter()
        gradient = None if parameter is None else parameter.grad
        if found is None or gradient is None:
            self._leftover = None  # cleared in between: nothing is left to add to
        else:
            self._leftover = found._replace(gradient=id(gradient), version=version_of(gradient))

    def _tell_added(self) -> None:
        """A pass has ended: whether it added to the gradient that the first one of the step found.

        It does not where it goes through a copy of the model, and the loop sets the gradient.
        """
        found = self._leftover
        parameter = None if found is None else found.parameter()
        if found is None or parameter is None:
            return
        gradient = parameter.grad
        known = (found.gradient, found.version)
        is_added = gradient is None or (id(gradient), version_of(gradient)) != known
        self._leftover = None if is_added else found._replace(is_told=True)
        if not found.is_told:
            self._tensors.tell("gradient_added_to", float(is_added))
        elif is_added:
            self._tensors.tell("gradient_added_to_later", 1)

    def _take_cleared(self) -> None:
        """Of a further pass of the step: tells that gradients were cleared since the one before."""
        found = self._drivers.smallest()
        if found is None:
            return
        gradient = found[0].grad
        with own_operations():
            # On a device a look at zeros would wait; zero_grad() leaves None unless told not to.
            is_zero = gradient is None or (may_read(gradient) and not bool(gradient.any()))
        if is_zero:
            self._tensors.tell("cleared_between_passes", 1)
