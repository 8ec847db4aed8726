"""What is taken of a forward pass that is looked at: inputs, outputs, activations, attention maps.

Whether one is looked at is asked at its beginning; what is called in it then comes here
(`recording.forward`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from traindbg import _core
from traindbg.hooks.torch.base.guard import boundary, guarded
from traindbg.hooks.torch.base.micro_batches import in_backward
from traindbg.hooks.torch.base.transforms import is_transforming
from traindbg.hooks.torch.data.hazards import WATCHED as HAZARDS
from traindbg.hooks.torch.data.states import CELLS
from traindbg.hooks.torch.evaluations.unended import Attention, Unended
from traindbg.hooks.torch.evaluations.unsaid import WATCHED as UNSAID
from traindbg.hooks.torch.probes.mixing import WATCHED as MIXING
from traindbg.hooks.torch.recording.forward import EVERYTHING, INPUTS, NOTHING, RETURN, Place

if TYPE_CHECKING:
    from traindbg.hooks.torch.base.guard import Guard
    from traindbg.hooks.torch.base.micro_batches import MicroBatches
    from traindbg.hooks.torch.base.tensors import Tensors
    from traindbg.hooks.torch.base.unseen import Unseen
    from traindbg.hooks.torch.base.watched import WatchedModels
    from traindbg.hooks.torch.evaluations.phases import Evaluations
    from traindbg.hooks.torch.losses.unanswered import Unanswered
    from traindbg.hooks.torch.recording.compilation import Compilation
    from traindbg.hooks.torch.recording.loop_facts import Facts
    from traindbg.hooks.torch.steps.by_hand import ByHand

_TRAIN = _core.TRAIN
_EVAL = _core.EVAL
_BIT = _core.ROLE_BITS
_INPUT = _BIT["input"]
_ATTENTION = _BIT["attention"]
_FUNCTIONS = _BIT["activation"] | _ATTENTION
_RISKY = HAZARDS | UNSAID | CELLS
_RISKY_AND_MIXING = _RISKY | MIXING
_RETURNED = _BIT["output"] | _BIT["activation"] | _BIT["block_output"]
_MOST_CALLS = 8  # of a module in one pass, whose outputs are taken
FORWARD_ROLES = _INPUT | _BIT["output"] | _BIT["block_output"] | _FUNCTIONS


class ForwardSink:
    """Takes what forward passes of all watched models hand over. One per recording."""

    def __init__(
        self,
        guard: Guard,
        tensors: Tensors,
        watched: WatchedModels,
        evaluations: Evaluations,
        facts: Facts,
        by_hand: ByHand,
        micro: MicroBatches,
        compilation: Compilation,
        unseen: Unseen,
    ) -> None:
        self.guard = guard
        self.has_enough = False  # of the passes of an evaluation that does not end
        self.now = 0  # the mode of the pass that is looked at; 0: nothing of it is due
        self.misses_attention = False  # maps that are asked for, up to now
        self.plans = 0  # that held, up to now
        self.may_want_blocks = False  # the one that holds may name some
        self.unanswered: Unanswered | None = None  # told of calls in training; set by the recording
        self._session = tensors.session
        self._hot = guard.hot
        self._tensors = tensors
        self._watched = watched
        self._evaluations = evaluations
        self._facts = facts
        self._by_hand = by_hand
        self._micro = micro
        self._compilation = compilation
        self._unseen = unseen
        self._looked_at = 0  # the micro-batch whose forward pass was looked at last
        self._takes_calls = False  # of the pass: also what modules return that are called again
        self._unended = Unended()
        # Where parts of a model are called, and not itself: the step and micro-batch of the last.
        self._parts_of: tuple[int, int] | None = None

    @property
    def may_hear_evaluations(self) -> bool:
        """Whether some may have a loss computed, whatever is due of them."""
        facts = self._facts
        if facts.hears_written:
            return True
        return facts.loader_labels.may_listen or facts.tensor_labels.listens

    def _forward_mode(self, root: torch.nn.Module | None) -> int:
        """TRAIN or EVAL where something of a forward pass is due now, else 0."""
        if root is None or self.guard.dead or torch.jit.is_tracing():
            return 0
        if is_transforming():
            self.transformed()
            return 0
        if self._is_of_training(root):
            return _TRAIN if self._hot.due & FORWARD_ROLES else 0
        self._next_batch()
        return _EVAL if self._session.due(_EVAL) & FORWARD_ROLES else 0

    def _is_of_training(self, root: torch.nn.Module) -> bool:
        return self._evaluations.is_training(root)

    def _next_batch(self) -> None:
        """In an evaluation the model is called: if its loss was computed, for the next batch."""
        if len(self._watched.watchers) == 1 and any(
            not name.startswith("metric/") for name in self._evaluations.names
        ):
            self._evaluations.end()

    @boundary("forward")
    def _wants_forward(self, root: torch.nn.Module) -> int:
        self._by_hand.look()
        self._watched.called(root)
        if self._micro.are_told_apart and self._evaluations.is_training(root):
            self._micro.forward_begins()
        mode = self._forward_mode(root)
        attention = self._attention() if mode == _EVAL else Attention.ALL
        self.has_enough = attention is Attention.NONE
        if attention is not Attention.ALL:
            self.now = 0
            return NOTHING if self.has_enough else self._wants_return(root)
        if mode == _TRAIN and self.unanswered is not None:
            guarded("losses left out", self.unanswered.forward_begins, root)
        if mode == _TRAIN and self._is_looked_at():
            return NOTHING
        self.now = mode
        if mode == 0:
            return self._wants_return(root)
        if mode == _EVAL and self._facts.evaluation_begins(root):
            return EVERYTHING
        if mode == _TRAIN:
            self._hot.forward_seen = True
            self._looked_at = self._micro.number
            self._facts.forward_begins(root)
        due = self._hot.due if mode == _TRAIN else self._session.due(_EVAL)
        # Of the first steps it is asked which functions are called, such as dropout.
        is_heard = mode == _TRAIN and self._facts.hazards.is_open
        return INPUTS if due & FORWARD_ROLES == _INPUT and not is_heard else EVERYTHING

    def _attention(self) -> Attention:
        """To a pass of an evaluation. Who asks for what a forward pass shows gets it of all."""
        if self._session.asked(_EVAL) & FORWARD_ROLES:
            return Attention.ALL
        return self._unended.attention(self._evaluations.ended, self._hot.steps)

    def _is_looked_at(self) -> bool:
        """Whether one more pass of a step of the training is not: too many, or a second one."""
        if not self._hot.forward_seen:
            return False
        if self._micro.is_beyond:
            self._unseen.micro_batches()
            return True
        is_again = len(self._watched.watchers) == 1 and self._looked_at == self._micro.number
        if is_again:  # in one micro-batch: the first one is kept
            self._facts.called_again()
        return is_again

    def _wants_return(self, root: torch.nn.Module) -> int:
        """Of a pass of which nothing is due: an evaluation may have a loss all the same."""
        facts = self._facts
        is_heard = facts.loader_labels.listens or facts.tensor_labels.listens
        is_heard = is_heard or facts.hears_written
        is_heard = is_heard and not self._is_of_training(root)
        if not is_heard or torch.jit.is_tracing() or is_transforming():
            return NOTHING
        self.now = _EVAL
        return RETURN

    @boundary("outputs")
    def _wants_block(self, name: str) -> bool:
        return self.may_want_blocks and self._session.note_block(f"output/{name}")

    def wants_block(self, name: str) -> bool:
        return self._wants_block(name) is True

    def wants_forward(self, root: torch.nn.Module) -> int:
        return self._wants_forward(root) or NOTHING

    def plain_mode(self) -> int:
        return 0 if self._tensors.on_device_only or self._mark() else self.now

    def takes_calls(self) -> bool:
        self._takes_calls = bool(self._session.asked(self.now) & _RETURNED)
        return self._takes_calls

    @boundary("forward")
    def part_begins(self) -> bool:
        self.now = _TRAIN
        self._micro.forward_begins()
        return self._begins_pass()

    def _begins_pass(self) -> bool:
        """Whether a part of a model that is not called itself is the first one of a pass."""
        under_way = (self._hot.steps, self._micro.number)
        begins = self._parts_of != under_way
        self._parts_of = under_way
        self.takes_calls()  # an evaluation may have come in between
        return begins

    @boundary("forward")
    def _stand_in_begins(self, root: torch.nn.Module) -> bool:
        self._watched.called(root)
        if self._forward_mode(root) == 0 or self._is_looked_at():
            return False
        self._hot.forward_seen = True
        self._looked_at = self._micro.number
        return True

    def stand_in_begins(self, root: torch.nn.Module) -> bool:
        return self._stand_in_begins(root) is True

    def wants_functions(self) -> bool:
        due = self._hot.due if self.now == _TRAIN else self._session.due(_EVAL)
        if due & _FUNCTIONS:
            return True
        return self.wants_mixers() or self.wants_hazards()

    def takes_functions(self) -> bool:
        # An evaluation runs compiled, also where a step of the training does not.
        return not self._compilation.is_in_use or (
            self._compilation.eager.is_in_force and self.now == _TRAIN
        )

    def _mark(self) -> str:
        """What the names of a forward pass's tensors end with."""
        return self._micro.mark if self.now == _TRAIN else ""

    @boundary("inputs")
    def model_input(
        self, place: Place, number: int, tensor: torch.Tensor, are_labels: bool = False
    ) -> None:
        """`place`: the model, or a part that stands in for it, which is not called itself.

        `are_labels`: it is given them for the loss that it computes, and no rule takes them for
        what it predicts from.
        """
        where = "" if place.name == "model" else f"{place.name}."
        name = f"input/{where}{number}{self._mark()}"
        tensor_id = self._tensors.place_id(name, "input", place, "none", tensor)
        self._tensors.take(self.now, tensor_id, tensor)
        if not are_labels:
            self._facts.input_given(self.now, number, tensor)

    def model_called(
        self, root: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        if self.now == _TRAIN and self._facts.probes.is_open:
            guarded("probes", self._facts.probes.called, root, args, kwargs)

    @boundary("loader labels")
    def model_returned(self, given: tuple[Any, dict[str, Any]], output: Any) -> None:
        if is_transforming() or torch.jit.is_tracing():
            return
        if self.now == _TRAIN:
            self._facts.loader_labels.trains(given, output)
            self._facts.tensor_labels.trains(output)
            self._facts.model_returned(output)
            guarded("written evaluations", self._facts.written.model_trains, output)
            return
        if self._facts.loader_labels.listens:
            self._facts.loader_labels.evaluates(given, output)
        else:
            self._facts.tensor_labels.evaluates(given, output)
        self._note_evaluated(output)

    def _note_evaluated(self, output: Any) -> None:
        models = [watcher.model for watcher in self._watched.watchers]
        if not any(model is not None and model.training for model in models):
            written = self._facts.written
            guarded("written evaluations", written.model_returned, output, self._hot.steps)

    @boundary("outputs")
    def module_output(
        self, place: Place, suffix: str, tensor: torch.Tensor, number: int = 1
    ) -> None:
        if is_transforming():
            self.transformed()
            return
        if self.now == _TRAIN and self._micro.is_beyond:
            self._unseen.micro_batches()
            return
        kind = place.kind
        if place.is_leaf:
            role = "output" if kind == "none" else "activation"
            name = f"{role}/{place.name}{suffix}"
        else:  # `.0` would be a module in it
            role, kind = "block_output", "none"
            name = f"output/{place.returns_as}" + (f":{suffix[1:]}" if suffix else "")
        is_again = number > 1 and self._takes_calls
        if is_again and not self._takes_call(name, number):
            return
        mark = (f"#{number}" if is_again else "") + self._mark()
        name += mark
        tensor_id = self._tensors.place_id(name, role, place, kind, tensor)
        if not mark:
            place.output_ids[suffix] = tensor_id
            if not suffix:
                place.taken_as = tensor_id
        self._tensors.take(self.now, tensor_id, tensor)

    def _takes_call(self, name: str, number: int) -> bool:
        """Whether what a module returns is taken that was called before in the pass."""
        if in_backward():  # a checkpointed part is computed again
            return False
        if number > _MOST_CALLS:
            self._session.skip()
            self._unseen.calls(name, _MOST_CALLS)
            return False
        return True

    @boundary("activations")
    def function_output(
        self, place: Place, function: str, kind: str, number: int, tensor: torch.Tensor
    ) -> None:
        if is_transforming():
            self.transformed()
            return
        repeat, mark = f"#{number}" if number > 1 else "", self._mark()
        name = f"activation/{place.name}.{function}{repeat}{mark}"
        tensor_id = self._tensors.place_id(name, "activation", place, kind, tensor)
        if not mark:
            place.function_ids[function, number] = tensor_id
        self._tensors.take(self.now, tensor_id, tensor)

    def wants_attention(self) -> bool:
        due = self._hot.due if self.now == _TRAIN else self._session.due(_EVAL)
        return bool(due & _ATTENTION) and not is_transforming()

    @boundary("attention")
    def attention(self, place: Place, number: int, tensor: torch.Tensor) -> None:
        self.misses_attention = False
        repeat = f"#{number}" if number > 1 else ""
        name = f"attention/{place.name}{repeat}{self._mark()}"
        tensor_id = self._tensors.place_id(name, "attention", place, "none", tensor)
        self._tensors.take(self.now, tensor_id, tensor)

    @boundary("attention")
    def attention_not_made(self, place: Place, reason: str) -> None:
        self.misses_attention = False
        self._session.skip()
        self._unseen.say(
            "attention", f"the attention map of {place.name}, and maybe others", reason
        )

    def wants_mixers(self) -> bool:
        is_open = self.now == _TRAIN and self._facts.sequences.is_open
        return is_open and not is_transforming()

    @boundary("sequences")
    def mixer_called(
        self, place: Place, function: Any, args: Any, kwargs: Any, result: Any
    ) -> None:
        self._facts.sequences.called(place.name, function, args, kwargs, result)

    def wants_hazards(self) -> bool:
        facts = self._facts
        is_open = facts.hazards.is_open or facts.cells.is_open
        if self.now != _TRAIN:
            is_open = facts.unsaid.is_open
        return is_open and not is_transforming()

    def risky_functions(self) -> frozenset[Any]:
        """Of which `hazard_called` is told."""
        if self.now != _TRAIN:
            return UNSAID
        return _RISKY_AND_MIXING if self._facts.mixing.is_open else _RISKY

    @boundary("hazards")
    def hazard_called(
        self, place: Place, function: Any, args: Any, kwargs: Any, result: Any
    ) -> None:
        name = "" if place.name == "model" else place.name
        if self.now == _TRAIN:
            if function in CELLS:
                if not is_transforming():
                    guarded("states", self._facts.cells.called, name, function, args, result)
            else:
                self._facts.hazards.called(name, function, args, kwargs, result)
            if self._facts.mixing.is_open and function in MIXING:
                guarded("mixing", self._facts.mixing.called, name, function, args, kwargs, result)
            self._facts.dropout_called(function, args, kwargs)
        else:
            guarded("unsaid", self._facts.unsaid.called, name, function, args, kwargs)

    @boundary("forward")
    def forward_raised(self) -> None:
        self._compilation.end()

    @boundary("forward")
    def transformed(self) -> None:
        """A forward pass or a loss is computed inside of torch.func."""
        self._session.skip()
        self._unseen.transformed()

    def failed(self, feature: str, error: Exception) -> None:
        self.guard.failed(feature, error)


class CompanionSink(ForwardSink):
    """Takes what companions return, once in a pass of the training. One per recording.

    Begin and end of passes and evaluations, and inputs, are their leaders'.
    """

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._passes: dict[int, tuple[int, int]] = {}  # by ids: when each was looked at last

    @boundary("forward")
    def _wants_forward(self, root: torch.nn.Module) -> int:
        self._watched.called(root)
        mode = self._forward_mode(root)
        if mode == _TRAIN:
            if self._micro.are_told_apart:
                self._micro.forward_begins()
            under_way = (self._hot.steps, self._micro.number)
            if self._micro.is_beyond or self._passes.get(id(root)) == under_way:
                return NOTHING
            self._passes[id(root)] = under_way
        if mode == 0:
            return NOTHING
        if mode == _EVAL:
            guarded("modes", self._facts.companion_called, root)
        self.now = mode
        due = self._hot.due if mode == _TRAIN else self._session.due(_EVAL)
        if due & FORWARD_ROLES != _INPUT:
            return EVERYTHING
        return INPUTS if mode == _EVAL else NOTHING

    def _is_of_training(self, root: torch.nn.Module) -> bool:
        return self._evaluations.mode() == _TRAIN or super()._is_of_training(root)

    def _next_batch(self) -> None:
        """A head may be called when the loss of another one was computed."""

    def part_begins(self) -> bool:
        self.now = _TRAIN
        return self._begins_pass()

    def model_input(
        self, place: Place, number: int, tensor: torch.Tensor, are_labels: bool = False
    ) -> None:
        """What they are given, others may have computed: that is not known here."""
        if self.now == _EVAL and number == 0:
            guarded("modes", self._facts.forgotten.part_given, tensor)

    def model_called(
        self, root: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Probes are of leaders."""

    def model_returned(self, given: tuple[Any, dict[str, Any]], output: Any) -> None:
        """Nor do they return what a loss is computed of."""

    def wants_functions(self) -> bool:
        """Those that are called within a pass of a leader are heard of there."""
        observers = (watcher._observer for watcher in self._watched.watchers)
        return super().wants_functions() and not any(
            observer is not None and observer.hears_functions for observer in observers
        )

    def wants_mixers(self) -> bool:
        """Sequences are followed through leaders."""
        return False
