"""What loss functions return and are given, in training and in evaluations.

Whose a loss of the training is shows only when an optimizer steps, so the values wait for that
(`HotPath.hold`). Those of the optimizer that drives have the plain names; those of others, such as
the generator's in a training whose discriminator drives, end with `@` and what that steps. A second
call of a function in one pass, of several heads say, has `#2` behind its name.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from traindbg import _core
from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.guard import boundary, guarded
from traindbg.hooks.torch.base.shards import has_values, whole_here
from traindbg.hooks.torch.base.sources import sources
from traindbg.hooks.torch.data.loaders import OF_TWO, answers_of
from traindbg.hooks.torch.losses.arguments import LABELS, PREDICTIONS, arguments_of, bend_of
from traindbg.hooks.torch.losses.picked import picked
from traindbg.hooks.torch.text.measures import judges_order
from traindbg.hooks.torch.text.program import text_says

if TYPE_CHECKING:
    from collections.abc import Callable

    from traindbg.hooks.torch.base.guard import Guard
    from traindbg.hooks.torch.base.micro_batches import MicroBatches
    from traindbg.hooks.torch.base.tensors import Tensors
    from traindbg.hooks.torch.base.unseen import Unseen
    from traindbg.hooks.torch.base.watched import WatchedModels
    from traindbg.hooks.torch.evaluations.phases import Evaluations
    from traindbg.hooks.torch.evaluations.written import Told
    from traindbg.hooks.torch.recording.loop_facts import Facts
    from traindbg.hooks.torch.steps.by_hand import ByHand
    from traindbg.hooks.torch.steps.drivers import Drivers

ARGUMENTS = PREDICTIONS | LABELS
CLASSIFIERS = frozenset({"cross_entropy", "nll_loss", *OF_TWO})
_TRAIN = _core.TRAIN
_EVAL = _core.EVAL
_LOOP = _core.ROLE_BITS["loop"]
_CLASSES = _core.ROLE_BITS["classes"]
_MOST_WEIGHTS_TOLD = 2  # steps at which the weights of classes are told
_MOST_WEIGHED = 64  # classes
_IGNORES = 4  # the place of `ignore_index` among the arguments of a loss of classes
_NO_CLASS = -100
_MOST_WAITING = 1024
_MOST_OTHERS = 64
_MOST_CALLS = _core.MOST_CALLS  # of one function in one pass; further ones are not looked at


def _repeat(number: int) -> str:
    return "" if number == 1 else f"#{number}"


def _is_mean(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    others = [*args[2:], kwargs.get("weight"), kwargs.get("size_average"), kwargs.get("reduce")]
    return kwargs.get("reduction", "mean") == "mean" and all(each is None for each in others)


def _mark_of(whose: str) -> str:
    return f"@{whose}" if whose else ""


class _Taken(NamedTuple):
    """What was held when an optimizer was about to step that does not drive."""

    whose: str
    passes: int  # backward passes of the step until then
    held: list[tuple[int, float]]
    waiting: list[tuple[str, torch.Tensor]]


class LossObserver:
    """Hears of losses. One per recording; owns what is known of them until backward begins."""

    def __init__(
        self,
        guard: Guard,
        tensors: Tensors,
        watched: WatchedModels,
        evaluations: Evaluations,
        facts: Facts,
        by_hand: ByHand,
        drivers: Drivers,
        micro: MicroBatches,
        unseen: Unseen,
    ) -> None:
        self.guard = guard
        self.ids: dict[str, int] = {}  # by the function's name
        self.misses_arguments = False  # those that the user asked for, up to now
        self._judges_order_told = False
        self._weights_told: dict[str, int] = {}  # times that those of classes were, by function
        self.unreduced: torch.Tensor | None = None  # mean of a loss for each sample; one number
        self._unreduced_count = 0  # of how many values
        self.scaled: tuple[weakref.ref[torch.Tensor], torch.Tensor] | None = None  # and unscaled
        self.users_want_arguments = False  # not rules alone, which look at first calls only
        self.users_want_losses = False
        self._session = tensors.session
        self._hot = guard.hot
        self._tensors = tensors
        self._watched = watched
        self._evaluations = evaluations
        self._facts = facts
        self._by_hand = by_hand
        self._drivers = drivers
        self._micro = micro
        self._unseen = unseen
        self._names: dict[int, str] = {}  # of what is held, by the ids
        self._waiting: list[tuple[str, torch.Tensor]] = []  # held, on devices
        self._others: list[_Taken] = []  # since the optimizer that drives has stepped
        self._trained_with: set[str] = set()  # functions whose values led to gradients
        facts.written.told = self._written_told

    def _take(self, mode: int, name: str, value: torch.Tensor) -> int:
        """Takes a loss; one of the training when it is known whose it is. Returns the id."""
        tensor_id = self._tensors.id_of(name, "loss")
        self._names[tensor_id] = name  # the hot path may be the next to hold it
        if mode != _TRAIN:
            self._tensors.take_scalar(mode, tensor_id, value)
            return tensor_id
        if self._tensors.on_device_only or not self._hot.hold(tensor_id, value):
            if capturing_graph(value):
                self._tensors.take_scalar(mode, tensor_id, value)
            else:
                if len(self._waiting) >= _MOST_WAITING:
                    del self._waiting[0]  # of a loop that never steps
                with own_operations():  # it may change before the optimizer steps
                    self._waiting.append((name, value.detach().clone()))
                self._hot.has_deferred = True  # the end of the step takes them
        return tensor_id

    def forget_held(self) -> None:
        """What is held belongs to no step."""
        self._hot.drop_held()
        self._waiting = []

    def take_root(self, number: int, root: torch.Tensor) -> None:
        """Takes what `backward` is called on, for the `number`th time about one graph."""
        if number == 1 and not self._trained_with:
            guarded("written evaluations", self._facts.written.lowered, root)
        if number <= _MOST_CALLS:
            self._take(_TRAIN, f"loss{_repeat(number)}{self._micro.loss_mark}", root)

    def release(self, at_end: bool = False) -> None:
        """The optimizer that drives is about to step: what is held is its loss.

        So is what another one took just before it, after the same backward pass: both step by that.
        `at_end`: of something else than its step, such as the recording.
        """
        self._bring_others()
        others, self._others = self._others, []
        self._hot.has_others = False
        for each in others:
            is_shared = not at_end and each.passes == self._hot.passes
            self._record(each, "" if is_shared else _mark_of(each.whose))
            if is_shared:  # they are the last ones
                self._hot.take_back_turn()
        self._hot.release()
        if self._waiting:
            self._record(_Taken("", self._hot.passes, [], self._waiting), "")
            self._waiting = []

    def _bring_others(self) -> None:
        """What the hot path gave to others is recorded with what was given to them here."""
        brought = [_Taken(*each, []) for each in self._hot.take_others()]
        self._others[:0] = brought  # the hot path gives nothing while there are any here

    def keep_names(self, ids: dict[int, int]) -> None:
        """Of the losses of the optimizer that drives, where another one ends the steps."""
        ids.update((known, known) for known in self._names)

    def of_another(self, whose: Callable[[], str]) -> bool:
        """An optimizer that does not drive is about to step: what is held is its loss.

        Returns whether anything is.
        """
        self._bring_others()
        self._hot.has_others = bool(self._others)
        held = self._hot.take_held()
        waiting, self._waiting = self._waiting, []
        if not held and not waiting:
            return False
        name = whose()
        self._hot.turn_ends(name)
        self._others.append(_Taken(name, self._hot.passes, held, waiting))
        self._hot.has_others = True
        if len(self._others) > _MOST_OTHERS:
            self._record(self._others[0], _mark_of(self._others[0].whose))
            del self._others[0]
        return True

    def _record(self, taken: _Taken, mark: str) -> None:
        for known, number in taken.held:
            tensor_id = known
            if mark:
                tensor_id = self._tensors.id_of(self._names[known] + mark, "loss")
                self._drivers.loss_ids(taken.whose)[known] = tensor_id
            self._session.observe_scalar(_TRAIN, tensor_id, number)
        for name, value in taken.waiting:
            tensor_id = self._tensors.id_of(name + mark, "loss")
            self._tensors.take_scalar(_TRAIN, tensor_id, value)

    @boundary("losses")
    def loss_computed(
        self, name: str, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        value = whole_here(value)
        if value is None or not has_values(value):
            return
        self._by_hand.look(value)
        mode, mark = self._evaluations.mode(), ""
        if mode == _TRAIN and value.requires_grad:
            self._trained_with.add(name)
            given = args[0] if args else kwargs.get("input")
            is_mean, written = _is_mean(args, kwargs), self._facts.written
            guarded("written evaluations", written.trained_by, name, value, given, is_mean)
        elif mode == _TRAIN and name in self._trained_with:
            mode = _EVAL  # of a validation whose outputs alone were computed without gradients
        if mode == _TRAIN and self._hot.hears_next_loss:
            self._hot.hears_next_loss = False
            self._facts.tensor_labels.trained_after_evaluation(name, args, kwargs)
        if mode == _TRAIN:
            self._micro.loss_computed(name)
            mark = self._micro.loss_mark
            if self._micro.is_beyond:
                self._unseen.micro_batches()
                return
        if mode == _EVAL and name in self._evaluations.names:
            self._evaluations.end()
        if mode == _EVAL and not self._facts.computes:
            self._facts.written.end()
        guarded("sources", sources.note, f"{'loss' if mode == _TRAIN else 'evaluation'}/{name}")
        if mode == _EVAL:
            guarded("description", self._drivers.describe_again)
        if mode == _EVAL and self._facts.are_followed:
            self._facts.evaluated(name)
        elif mode == _TRAIN and self._facts.random.is_due:
            guarded("random", self._facts.look_at_random)
        if mode == _TRAIN and self._drivers.is_unstepped and value.requires_grad:
            guarded("unstepped", self._facts.unstepped.loss_computed, self._watched.models())
        due = self._hot.due if mode == _TRAIN else self._session.due(_EVAL)
        if due & _LOOP:
            guarded("loop", self._facts.loss_computed, mode, name, value, args, kwargs)
            if mode == _TRAIN:
                guarded("bends", self._tell_bend, name, args, kwargs)
        if mode == _EVAL and (value.numel() == 1 or due & ARGUMENTS or not self._is_any_training()):
            self._evaluations.names.add(name)  # else it may choose rows of the training's batch
        if value.numel() != 1:
            self._session.skip()  # reduction="none"
            if mode == _TRAIN and due & _LOOP:
                guarded("loop", self._note_unreduced, value)
        else:
            first = self._tensors.id_of(f"loss/{name}{mark}", "loss")
            number = self._hot.count_call(first) if mode == _TRAIN else 1
            if number > _MOST_CALLS:
                if self.users_want_losses:
                    self._unseen.calls_of_a_loss(name, _MOST_CALLS)
                return
            full, mark = f"loss/{name}{_repeat(number)}{mark}", _repeat(number) + mark
            self.ids[name + mark] = self._take(mode, full, value)
        whose = self._hot.whose_turn() if mode == _TRAIN else ""
        mark += f"@{whose}" if whose else ""
        is_further = mark != (self._micro.loss_mark if mode == _TRAIN else "")
        if mode == _TRAIN and self._is_beside(value) and not self.users_want_arguments:
            return
        is_judged = name in CLASSIFIERS and due & _CLASSES and not is_further
        if is_judged and not self._facts.loop.is_for_a_model():
            if name not in OF_TWO:
                self._take_classes(mode, name, args, kwargs)
            elif mode == _TRAIN:
                guarded("answers", self._take_answers, name, args, kwargs)
        if due & ARGUMENTS and (self.users_want_arguments or not is_further):
            self.misses_arguments = False
            for role, suffix, tensor in arguments_of(name, args, kwargs):
                full = f"{role}/{name}{suffix}{mark}"
                self._tensors.take(mode, self._tensors.id_of(full, role, tensor), tensor)
                if role == "label" and mode == _TRAIN and self._drivers.is_at_the_start():
                    guarded("labels", self._facts.compare_with_input, tensor)

    def _is_beside(self, value: torch.Tensor) -> bool:
        """Whether a loss of a step is one that nothing is trained by, beside one that trains.

        Such as that of a constant, which the model's is compared with: no answer of the model's.
        """
        return bool(self._trained_with) and not value.requires_grad

    @boundary("losses")
    def _written_told(self, told: Told) -> None:
        """Of an evaluation whose loss is written out."""
        known = self._evaluations.names
        is_known = any(not name.startswith("metric/") for name in known)
        if is_known or len(self._watched.watchers) != 1 or self._evaluations.mode() != _EVAL:
            return
        name = told.function or "loss"
        guarded("sources", sources.note, f"evaluation/{name}")
        guarded("description", self._drivers.describe_again)
        if self._facts.are_followed:
            self._facts.evaluated_in_writing(name)
        known.add(name)
        tensor_id = self._tensors.id_of(f"loss/{name}" if told.function else name, "loss")
        self._session.observe_scalar(_EVAL, tensor_id, told.value)

    def take_picked(self, root: torch.Tensor) -> None:
        """The labels of a loss of classes that is written out, where `root` is nothing else."""
        found = picked(root)
        if found is None or self._facts.loop.is_for_a_model():
            return
        if self._hot.due & _CLASSES and found.scores is not None:
            self._take_classes(_TRAIN, "log_softmax", (found.scores, found.labels), {})
        if self._hot.due & ARGUMENTS and self._drivers.is_at_the_start():
            guarded("labels", self._facts.compare_with_input, found.labels)

    @boundary("losses")
    def loss_scaled(self, scaled: Any, loss: Any, scaler: Any) -> None:
        if scaled is loss:
            return  # of a scaler that is not enabled
        scale = getattr(scaler, "_scale", None)
        if self._hot.due & _LOOP and isinstance(scale, torch.Tensor) and not capturing_graph(scale):
            self._tensors.tell("loss_scale", scale)
        if has_values(scaled) and has_values(loss) and loss.numel() == 1:
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
        ignored = args[_IGNORES] if len(args) > _IGNORES else kwargs.get("ignore_index")
        if type(ignored) is int and 0 <= ignored < logits.shape[1] and not capturing_graph(labels):
            with own_operations():  # it is padding, say, and no class
                labels = labels.masked_fill(labels == ignored, _NO_CLASS)
        tensor_id = self._tensors.id_of(f"classes/{name}", "classes")
        self._tensors.take_classes(mode, tensor_id, logits, labels)
        if mode == _TRAIN and self._weights_told.get(name, 0) < _MOST_WEIGHTS_TOLD:
            guarded("weights of classes", self._tell_weights, name, args, kwargs)

    def _tell_weights(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """How much a loss makes each class count, where it does."""
        self._weights_told[name] = self._weights_told.get(name, 0) + 1
        weight = whole_here(args[2] if len(args) > 2 else kwargs.get("weight"))
        if weight is None or weight.dim() != 1 or not 2 <= weight.numel() <= _MOST_WEIGHED:
            return
        with own_operations():
            each = weight.detach().to(torch.float32).unbind()
        for number, one in enumerate(each):
            self._tensors.tell(f"class_weight/{name}/{number}", one, always=True)

    def _take_answers(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = args[0] if args else kwargs.get("input")
        target = args[1] if len(args) > 1 else kwargs.get("target")
        weight = kwargs.get("pos_weight")
        if not isinstance(weight, torch.Tensor) or weight.numel() == 0:
            weight = None
        found = answers_of(name, given, target, weight is not None)
        if found is None:
            return
        for fact, value in found._asdict().items():
            self._tensors.tell(fact, value, always=True)
        if weight is not None:
            with own_operations():
                mean = weight.detach().to(torch.float32).mean()
            self._tensors.tell("answers_weight", mean, always=True)
        if not self._judges_order_told:
            self._judges_order_told = True
            self._tensors.tell("judges_order", float(text_says(judges_order)), always=True)

    def _tell_bend(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        bend = bend_of(name, args, kwargs)
        if bend != 1:
            self._tensors.tell(f"loss_bend/{name}", bend)

    def _is_any_training(self) -> bool:
        """Whether a watched model is in training mode."""
        models = [watcher.model for watcher in self._watched.watchers]
        return any(model is not None and model.training for model in models)

    def _note_unreduced(self, value: torch.Tensor) -> None:
        """Of a loss for each sample, which the loop makes one number of: its mean."""
        is_plain = has_values(value) and value.is_floating_point()
        if is_plain and value.numel() > 0 and not capturing_graph(value):
            with own_operations():
                self.unreduced = value.detach().mean()
                self._unreduced_count = value.numel()

    def tell_unreduced(self, root: torch.Tensor) -> None:
        """Whether the loss is about the mean, or just that or the sum, of what a function gave.

        With a mask, say; with weights it may be something else, such as the objective of a policy.
        """
        mean, self.unreduced = self.unreduced, None
        if mean is None or root.device != mean.device or capturing_graph(root):
            return
        with own_operations():
            is_about = ((root > 0.8 * mean) & (root < 1.25 * mean)).to(torch.float32)
            total = mean * self._unreduced_count
            is_sum = ((root.detach() - total).abs() <= 1e-4 * total.abs()) & (total > 0)
            terms = is_sum.to(torch.float32) * self._unreduced_count
            is_mean = (root.detach() - mean).abs() <= 1e-4 * mean.abs()
            is_of_all = (is_mean | ((root.detach() - total).abs() <= 1e-4 * total.abs())).float()
        self._tensors.tell("loss_is_reduced_later", is_about)
        self._tensors.tell("loss_is_of_all", is_of_all)
        self._tensors.tell("loss_is_summed", terms)
