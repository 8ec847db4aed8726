"""A recording of this process, and the models that are watched in it.

A process has one recording at a time, and in it one watcher per model. The recording listens to
losses, backward passes and optimizer steps (`torch_patches`), and, at steps that need it, to one
forward pass (`torch_forward`). It names tensors and hands them to the native session, which decides
and reduces; see docs/design/life_of_a_step.md. Ordinary steps are handled by the native `HotPath`
and do not come here.

No function here lets an exception of its own out into the training (`torch_guard`).
"""

from __future__ import annotations

import json
import math
import os
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from traindbg import _core, _plan
from traindbg._say import say
from traindbg.errors import InvalidArgument, TraindbgError, TrainingStopped
from traindbg.hooks import torch_patches as patches
from traindbg.hooks.torch_compiled import EagerStep, compiler_in_use
from traindbg.hooks.torch_corrections import Corrections
from traindbg.hooks.torch_data import batches_in_storage, closest_column, missed_labels, sizes
from traindbg.hooks.torch_description import description
from traindbg.hooks.torch_device import Deferred, capturing_graph, own_operations
from traindbg.hooks.torch_forward import (
    EVERYTHING,
    INPUTS,
    NOTHING,
    ForwardObserver,
    Place,
)
from traindbg.hooks.torch_gradients import (
    GRADIENTS_BEFORE,
    GradientObserver,
    first_not_finite,
    is_not_finite,
    scale_of,
    take_scaled,
)
from traindbg.hooks.torch_guard import STRIKES, boundary, failed, failures, guarded
from traindbg.hooks.torch_hazards import HazardObserver
from traindbg.hooks.torch_held import GraphsHeld
from traindbg.hooks.torch_kept import KeptGradients
from traindbg.hooks.torch_loop import LoopObserver, has_dropout
from traindbg.hooks.torch_loss_graph import WrittenOut, compared_shapes, written_out
from traindbg.hooks.torch_losses import LABELS, PREDICTIONS, arguments_of
from traindbg.hooks.torch_micro_batches import MicroBatches
from traindbg.hooks.torch_modes import modes
from traindbg.hooks.torch_names import class_name, is_compiled
from traindbg.hooks.torch_neighbours import Neighbours
from traindbg.hooks.torch_optimizer import STATE, UPDATES, OptimizerObserver
from traindbg.hooks.torch_parameters import (
    Owner,
    Parameters,
    learning_rates,
    number_of,
    optimizer_facts,
    owned_in,
    role_of,
    word_of,
)
from traindbg.hooks.torch_random import RandomStates
from traindbg.hooks.torch_resume import MadeAs, checkpoints, made_as
from traindbg.hooks.torch_rows import Rows
from traindbg.hooks.torch_sequences import SequenceObserver
from traindbg.hooks.torch_shards import (
    local_part,
    rank_of_process,
    shard_facts,
    whole_here,
)
from traindbg.hooks.torch_unseen import Unseen
from traindbg.hooks.torch_unstepped import Unstepped

if TYPE_CHECKING:
    from types import TracebackType

_TRAIN = _core.TRAIN
_EVAL = _core.EVAL
_BIT = _core.ROLE_BITS
_FORWARD_ROLES = _BIT["input"] | _BIT["output"] | _BIT["activation"] | _BIT["attention"]
_ARGUMENTS = PREDICTIONS | LABELS
_PARAMETER_ROLES = _BIT["weight"] | _BIT["bias"]
_OF_FIXED_SHAPE = frozenset(
    {"weight", "bias", "gradient", "gradient_before", "optimizer_state", "weight_update"}
)
_CLOSE_SECONDS = 5.0
# When the optimizer that drives the steps was silent for so many steps of another one, the other
# one drives.
_STEPS_UNTIL_NEW_DRIVER = 100
_STEPS_UNTIL_TAKEN_OVER = 3
# So many steps running that a GradScaler left out are recorded as one: else a training that makes
# no step any more would leave no trace.
_SKIPPED_UNTIL_A_STEP = 10
# From so many backward passes without a step on, gradients are asked whether they are finite.
_PASSES_UNTIL_A_LOOK = 16
_PASSES_WITH_A_LOOK = 24  # from there on, where none overflowed
_STEPS_COMPARED = 5  # at the first ones labels are compared with the model's input
_CLASSIFIERS = frozenset({"cross_entropy", "nll_loss"})
_LOOP = _BIT["loop"]
_PLACES_MAX = 4  # names of places that a fact about the loop may have; those after it have the last
current: Recording | None = None  # of this process


def _array_of(value: Any) -> np.ndarray[Any, Any] | None:
    """A number or an array of NumPy's as an array; None for anything else."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return np.asarray(value)
    return None


class Watcher:
    """A model that is being watched. A context manager; leaving it detaches.

    Made by `watch`. `run_dir` is where the recording goes; `is_active` is False once detached, or
    when nothing could be recorded from the start.
    """

    def __init__(self, model: torch.nn.Module, prefix: str, recording: Recording | None) -> None:
        self._model = weakref.ref(model)
        self._recording = recording
        self.prefix = prefix
        self.run_dir = Path(recording.session.run_directory) if recording else Path()
        self._observer: ForwardObserver | None = None
        self._calls_outside = 0  # of a training pass, up to the last loss without gradients
        self._loss: weakref.ref[torch.nn.Module] | None = None  # a loss module of the user's
        self._loss_hook: torch.utils.hooks.RemovableHandle | None = None  # where it needs one
        self._compiled = False  # it runs as compiled code, in which hooks do not fire
        scripts = (isinstance(module, torch.jit.ScriptModule) for module in model.modules())
        self._has_scripts = any(scripts)
        if recording is not None:
            root_name = prefix.rstrip(".") or "model"
            path = _core.ForwardPath(
                recording.session, recording.hot, torch.Tensor, patches.transforms
            )
            self._observer = ForwardObserver(model, root_name, prefix, recording, path)
            weakref.finalize(model, _forget, weakref.ref(self))

    @property
    def model(self) -> torch.nn.Module | None:
        """The watched model; None when it no longer exists."""
        return self._model()

    @property
    def is_active(self) -> bool:
        """Whether it still records."""
        return self._recording is not None and not self._recording.dead

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


class Recording:
    """One native session and all that listens for it. Implements the listeners' protocols."""

    def __init__(self, run_dir: str, plan: str) -> None:
        self.session = _core.Session(run_dir, plan, rank_of_process())
        self.watchers: list[Watcher] = []
        self.dead = False
        self.hot = _core.HotPath(self.session, torch.Tensor, torch.is_grad_enabled)
        self.hot.due = self.session.due(_TRAIN)
        self.deferred = Deferred(self.session)
        self.on_device_only = os.environ.get("TRAINDBG_DEVICE_PATH") == "1"
        self._ids: dict[str, int] = {}
        self._shapes: dict[str, torch.Size] = {}  # by the names of parameters and gradients
        self._loss_ids: dict[str, int] = {}  # by the function's name
        self._tables: weakref.WeakKeyDictionary[torch.optim.Optimizer, Parameters] = (
            weakref.WeakKeyDictionary()
        )
        self._strangers: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        # Before their first steps: see `Checkpoints.what_was_lost`.
        self._lost: weakref.WeakKeyDictionary[torch.optim.Optimizer, int] = (
            weakref.WeakKeyDictionary()
        )
        self._driver: weakref.ref[torch.optim.Optimizer] | None = None
        self._optimizers = OptimizerObserver(self)
        self._gradients = GradientObserver(self)
        self._loop = LoopObserver(self)
        self._kept = KeptGradients()
        self._unreduced: torch.Tensor | None = None  # mean of a loss for each sample; one number
        self._rows = Rows()
        self._neighbours = Neighbours()
        self._random = RandomStates()
        self._is_forgotten = False  # by an evaluation that set others to its mode
        self._sequences = SequenceObserver()
        self._hazards = HazardObserver()
        self._held = GraphsHeld()
        self._places: dict[str, dict[str, int]] = {}  # of facts about the loop: ids by place
        self._backward_in_eval = False  # the step under way had one
        self._trains_in_eval = False  # the step before was made in evaluation mode
        self._owners: dict[int, Owner] | None = None  # made when it is asked for
        self._made_as: MadeAs | None = None  # the optimizer that drives
        self._drove: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._made_anew = 0  # how many were made just like the one before, one after the other
        self._trainings = 0  # optimizers that drove the steps, one after the other
        self._lr: tuple[float, ...] = ()
        self._skipped = 0  # steps that a GradScaler left out since the last one that is recorded
        self._overflowed: weakref.ref[torch.Tensor] | None = None  # by the last backward pass
        self._looks_from = _PASSES_UNTIL_A_LOOK
        self._last_passes = 0  # of the step under way, at the last look
        self._thrown_away = 0  # passes of the step under way whose gradients overflowed, and went
        self._eval_names: set[str] = set()
        self._scaled: tuple[weakref.ref[torch.Tensor], torch.Tensor] | None = None  # and unscaled
        self._calls_parts = False  # from the first step on
        self._exception: dict[str, Any] = {}  # the last one that was recorded
        self._reached = (0, True)  # when a loop ended the last time: steps, and between two
        self._compiler = compiler_in_use()
        self._unseen = Unseen(self.session)
        self._unstepped = Unstepped()
        self._micro = MicroBatches()
        self._input: weakref.ref[torch.Tensor] | None = None  # of the step under way
        self._last_input: weakref.ref[torch.Tensor] | None = None  # when it was looked at last
        self._looked_at = 0  # the micro-batch whose forward pass was looked at last
        self._eager = EagerStep(self._wants_eager)
        self._corrections = Corrections(self)
        self._follow(plan)

    def _follow(self, plan: str) -> None:
        """Takes from a plan (its JSON) what is not asked of the session step by step."""
        words = json.loads(plan)
        self._evaluates = _plan.wants_evaluations(plan)
        self._unseen.choice = words.get("compiled", "auto")
        self._micro.are_told_apart = words.get("micro_batches") == "all"
        requirements = words.get("requirements", ())
        asked = {requirement["collection"] for requirement in requirements}
        # Rules say themselves what they could not check.
        users = (each for each in requirements if each.get("for", "user") == "user")
        asked_by_users = {requirement["collection"] for requirement in users}
        self._misses_arguments = not asked_by_users.isdisjoint(("predictions", "labels"))
        self._misses_attention = "attention_maps" in asked
        self._follows_loop = "loop" in asked
        self._corrections.follow(words.get("corrections", {}))

    def listen(self) -> None:
        """Is told from now on; there is one such recording in a process."""
        patches.state.listener, patches.state.hot = self, self.hot
        patches.state.corrections = self._corrections if self._corrections.is_wanted else None

    def ask_for(self, plan: str) -> None:
        """Captures from now on also what a plan (its JSON) asks for beyond the one that holds."""
        before = self.session.plan()
        if json.loads(plan) == json.loads(before):
            return
        try:
            self.session.ask_for(plan)
        except InvalidArgument:
            raise
        except TraindbgError as error:
            say(f"what is captured stays as it is: {error}", is_error=True)
            return
        self._follow(self.session.plan())
        if self.hot.first_backward and not self.hot.forward_seen:  # nothing of the step was missed
            self._gradients.clear()
            self.hot.due = self.session.due(_TRAIN)
            self._arm()
            guarded("forward", self._begin_eager)
            for watcher in self.watchers:
                guarded("forward", self._prepare, watcher)

    # Watchers.

    def prefix_of(self, model: torch.nn.Module) -> str:
        """What the names of a model's modules begin with, that of one to come included."""
        for watcher in self.watchers:
            if watcher.model is model:
                return watcher.prefix
        taken = {watcher.prefix for watcher in self.watchers}
        prefix, number = "", 1
        while prefix in taken:
            prefix = class_name(model) + (f"#{number}" if number > 1 else "") + "."
            number += 1
        return prefix

    def add(
        self, model: torch.nn.Module, optimizer: torch.optim.Optimizer | None, compiled: bool
    ) -> Watcher:
        watcher = Watcher(model, self.prefix_of(model), self)
        watcher._compiled = compiled or is_compiled(model)
        self._compiler = self._compiler or watcher._compiled
        self.watchers.append(watcher)
        self._unstepped.has_optimizer |= optimizer is not None
        self._owners = None
        self._rows.forget()
        self._neighbours.forget()
        self._random.forget()
        self.expect_other_driver()
        guarded("forward", self._begin_eager)
        self._strangers.clear()  # one of them may be this model's
        self._arm()
        if len(self.watchers) == 1:
            guarded("description", self._describe, model, optimizer)
        guarded("forward", self._prepare, watcher)
        if self.hot.first_backward:
            guarded("loop", self._loop.begin, bool(self.hot.due & _LOOP))
        return watcher

    def drop(self, watcher: Watcher) -> None:
        """Forgets a watcher; the recording stays open."""
        if watcher in self.watchers:
            self.watchers.remove(watcher)
        self._owners = None
        if self.watchers:  # else it closes, or another model comes
            self._rows.forget()
            self._neighbours.forget()
            self._random.forget()
        watcher._forget_loss()
        if watcher._observer is not None:
            watcher._observer.disarm()
        self._tables.clear()
        self._strangers.clear()
        self._driver = None
        self._arm()

    def remove(self, watcher: Watcher) -> None:
        self.drop(watcher)
        if not self.watchers:
            self.close()

    def close(self) -> None:
        """Ends the recording; waits for the writer, but not longer than the deadline."""
        global current
        if self.dead:
            return
        guarded("closing", self._tell_unstepped)
        guarded("closing", self._flush)
        if self._compiler and self.hot.steps == 0:
            guarded("closing", self._unseen.steps)
        self.dead = True
        self.hot.disarm()
        self._corrections.close()
        self.end_eager()
        self._gradients.clear()
        self._optimizers.clear()
        self._loop.clear()
        self._kept.clear()
        self._rows.forget()
        self._neighbours.forget()
        self._random.forget()
        self._sequences.clear()
        self._hazards.clear()
        self._held.clear()
        self.deferred.clear()
        self._scaled = None
        for watcher in list(self.watchers):
            watcher.detach()
        if current is self:
            current = None
            patches.state.listener = patches.state.hot = patches.state.corrections = None
            sizes.clear()
            patches.release()
        guarded("closing", self.session.close, _CLOSE_SECONDS)

    def _flush(self) -> None:
        self._end_evaluation()
        self._drain()

    @property
    def _is_unstepped(self) -> bool:
        """Whether no optimizer of a watched model has stepped."""
        return self.hot.steps == 0 and self._trainings == 0 and self._skipped == 0

    def _tell_unstepped(self) -> None:
        """At the end: that there never was an optimizer step. An interrupted training may have."""
        found = self._unstepped.found() if self._is_unstepped and not self._exception else None
        if found is not None and self._follows_loop:
            name, count = found
            self.take_number(self._id(f"loop/{name}", "loop", always=True), count)

    def failed(self, feature: str, error: Exception) -> None:
        failed(feature, error)
        if failures[feature] >= STRIKES:
            self.hot.disarm()
            if feature == "steps":
                self.close()  # steps that do not end would take everything for ever
        if failures[feature] == 1 and not self.dead:
            text = f"{type(error).__name__}: {error}"[:500]
            self.session.event("hook_error", json.dumps({"part": feature, "error": text}))

    # Facts.

    def _describe(
        self, model: torch.nn.Module | None, optimizer: torch.optim.Optimizer | None
    ) -> None:
        known = self._known(optimizer)
        self.session.describe(description(self.session.worker, model, known))

    def _known(self, first: torch.optim.Optimizer | None) -> list[torch.optim.Optimizer]:
        """The optimizers of the watched models that took a step, `first` in front.

        That there are several tells the rules that the losses may work against each other.
        """
        others = [known for known in self._tables if known is not first]
        return ([] if first is None else [first]) + others

    def record_exception(self, error: BaseException) -> None:
        if isinstance(error, (SystemExit, GeneratorExit)):
            return
        facts = {"type": type(error).__name__, "message": str(error)[:1000], "step": self.hot.steps}
        if facts != self._exception:  # who calls may be several: a trainer, a cell, the end
            self._exception = facts
            self.session.event("exception", json.dumps(facts))
            self.session.keep_flight(f"the training raised {type(error).__name__}")

    def loop_ended(self, error: BaseException | None = None) -> None:
        """A piece of the program ended in which models may have been trained: a cell, a `fit`.

        What it left open ends. The next training may have another optimizer, although the one that
        drove the steps is still there: in a variable, or in the traceback of an exception.
        """
        self._flush()
        reached = (self.hot.steps, self.hot.first_backward)
        if reached == self._reached:
            return  # it did not train
        self._reached = reached
        if error is not None:
            self.record_exception(error)
        self.expect_other_driver()

    def expect_other_driver(self) -> None:
        """If another optimizer than the one that drives is the next to step, it drives then."""
        if self.hot.steps > 0:
            self.hot.foreign_steps = _STEPS_UNTIL_NEW_DRIVER

    def _explain(self, key: str, what: str, why: str) -> None:
        """Says once, to the user and in the run, that something is not captured."""
        self._unseen.say(key, what, why)

    # Tensors.

    def _id(
        self,
        name: str,
        role: str,
        tensor: torch.Tensor | None = None,
        *,
        activation: str = "none",
        module: str = "",
        module_type: str = "",
        layer: int = -1,
        always: bool = False,
    ) -> int:
        if role in _OF_FIXED_SHAPE and tensor is not None:
            name = self._name_for_shape(name, role, tensor.shape)
        known = self._ids.get(name)
        if known is None:
            known = self._ids[name] = self.session.register_tensor(
                name,
                role,
                activation=activation,
                module=module,
                module_type=module_type,
                layer=layer,
                dtype="" if tensor is None else word_of(tensor.dtype),
                shape=[] if tensor is None else list(local_part(tensor).shape),
                **({} if tensor is None else shard_facts(tensor)),
                always=always,
            )
        return known

    def _name_for_shape(self, name: str, role: str, shape: torch.Size) -> str:
        """`name`, or `name#2` and so on where tensors of other shapes had the names before.

        So the values of a module that was replaced are not mixed with those of its successor.
        """
        number, wanted = 1, name
        while self._shapes.setdefault(wanted, shape) != shape:
            number += 1
            wanted = f"{name}#{number}"
        if number > 1 and wanted not in self._ids and role in ("weight", "bias"):
            facts = {"tensor": wanted, "instead_of": name, "step": self.hot.steps}
            self.session.event("tensor_replaced", json.dumps(facts | {"shape": list(shape)}))
        return wanted

    def _take(self, mode: int, tensor_id: int, tensor: torch.Tensor) -> None:
        if self.on_device_only or not self.session.observe(mode, tensor_id, tensor):
            self.deferred.add_tensor(mode, tensor_id, tensor)
            self.hot.has_deferred = True

    def _take_scalar(self, mode: int, tensor_id: int, tensor: torch.Tensor) -> None:
        if self.on_device_only or not self.session.observe_scalar_tensor(mode, tensor_id, tensor):
            self.deferred.add_scalar(mode, tensor_id, tensor)
            self.hot.has_deferred = True

    def _drain(self) -> None:
        """Brings over what waits on devices."""
        if self.hot.has_deferred:
            self.hot.has_deferred = False
            try:
                self.deferred.drain()
            except (
                Exception
            ) as error:  # the device has no memory left, say; the step ends all the same
                self.failed("devices", error)
            guarded("rows", self._tell_rows)

    def _tell_rows(self) -> None:
        """Of evaluated batches, how many of their rows the training had."""
        for known in self._rows.read():
            for name, value in known._asdict().items():
                self.fact(name, value, evaluation=True)
        labelled = self._rows.read_labelled() if self.hot.due & _BIT["loop"] else None
        if labelled is not None:
            for name, value in labelled._asdict().items():
                self.fact(name, value)

    def _tell_forgotten(self) -> None:
        """The model was called in training mode in an evaluation, which others were set to."""
        self._is_forgotten = False
        if self._loop.tell_modules_in_training():
            self.take_number(self._id("loop/others_in_eval", "loop", always=True), 1.0)

    def _tell_unscored(self) -> None:
        """Of batches without gradients for which no loss was computed."""
        unscored, in_training = self._rows.read_unscored()
        if in_training is not None and not self._loop.tell_modules_in_training():
            in_training = None  # nothing acts in another way there
        told = [found._asdict() for found in (unscored, in_training) if found is not None]
        if told:
            told.append(self._rows.standing()._asdict())
        for facts in told:
            for name, value in facts.items():
                if not name.startswith("rows_evaluated"):
                    self.fact(name, value)

    def _place_id(self, name: str, role: str, place: Place, kind: str, tensor: torch.Tensor) -> int:
        known = place.ids.get(name)
        if known is None:
            known = place.ids[name] = self._id(
                name,
                role,
                tensor,
                activation=kind,
                module=place.name,
                module_type=place.module_type,
                layer=place.layer,
            )
        return known

    # A forward pass (Sink).

    def _forward_mode(self, root: torch.nn.Module | None) -> int:
        """TRAIN or EVAL where something of a forward pass is due now, else 0."""
        if root is None or self.dead or torch.jit.is_tracing():
            return 0
        if patches.is_transforming():
            self.transformed()
            return 0
        if self._is_training(root):
            return _TRAIN if self.hot.due & _FORWARD_ROLES else 0
        if len(self.watchers) == 1 and any(
            not name.startswith("metric/") for name in self._eval_names
        ):
            self._end_evaluation()  # its loss was computed: this is the next batch
        return _EVAL if self.session.due(_EVAL) & _FORWARD_ROLES else 0

    @boundary("forward")
    def _wants_forward(self, root: torch.nn.Module) -> int:
        if self._micro.are_told_apart and self._is_training(root):
            self._micro.forward_begins()
        mode = self._forward_mode(root)
        if mode == _TRAIN and self.hot.forward_seen:
            if self._micro.is_beyond:
                self._unseen.micro_batches()
                return NOTHING
            if len(self.watchers) == 1 and self._looked_at == self._micro.number:
                return NOTHING  # a second pass in one micro-batch: the first one is kept
        self._now = mode
        if mode == 0:
            return NOTHING
        if mode == _TRAIN:
            self.hot.forward_seen = True
            self._looked_at = self._micro.number
            self._sequences.begin(bool(self.hot.due & _LOOP))
            self._hazards.begin(bool(self.hot.due & _LOOP))
        due = self.hot.due if mode == _TRAIN else self.session.due(_EVAL)
        return INPUTS if due & _FORWARD_ROLES == _BIT["input"] else EVERYTHING

    def wants_forward(self, root: torch.nn.Module) -> int:
        return self._wants_forward(root) or NOTHING

    def plain_mode(self) -> int:
        return 0 if self.on_device_only or self._mark() else self._now

    @boundary("forward")
    def part_begins(self) -> None:
        self._now = _TRAIN
        self._micro.forward_begins()

    def wants_functions(self) -> bool:
        due = self.hot.due if self._now == _TRAIN else self.session.due(_EVAL)
        if due & (_BIT["activation"] | _BIT["attention"]):
            return True
        return self.wants_mixers() or self.wants_hazards()

    def takes_functions(self) -> bool:
        # An evaluation runs compiled, also where a step of the training does not.
        return not self._compiler or (self._eager.is_in_force and self._now == _TRAIN)

    _now = 0

    def _mark(self) -> str:
        """What the names of a forward pass's tensors end with."""
        return self._micro.mark if self._now == _TRAIN else ""

    @boundary("inputs")
    def model_input(self, place: Place, number: int, tensor: torch.Tensor) -> None:
        where = "" if place.name == "model" else f"{place.name}."
        name = f"input/{where}{number}{self._mark()}"
        self._take(self._now, self._place_id(name, "input", place, "none", tensor), tensor)
        if self._follows_loop:
            guarded("rows", self._look_at_rows, number, tensor)
        if self._now == _TRAIN and self.hot.due & _BIT["loop"] and len(self.watchers) == 1:
            guarded("neighbours", self._neighbours.given, number, tensor)
        if number == 0 and self._now == _TRAIN and self.hot.due & _BIT["loop"]:
            held = batches_in_storage(tensor)
            self.take_number(self._id("loop/batches_in_storage", "loop"), held)
            self.take_number(self._id("loop/batches_in_loader", "loop"), sizes.batches)
            if sizes.stream_workers > 1:
                number_of = self._id("loop/stream_workers", "loop")
                self.take_number(number_of, sizes.stream_workers)
            if self._last_input is not None:
                is_kept = self._last_input() is tensor  # the very same, made once
                self.take_number(self._id("loop/input_is_kept", "loop"), float(is_kept))
            self._input = self._last_input = weakref.ref(tensor)

    def _look_at_rows(self, number: int, tensor: torch.Tensor) -> None:
        if self._now == _TRAIN:
            self._sequences.input_given(tensor)
        if number > 0 or len(self.watchers) != 1:
            if self._now == _TRAIN:
                self._rows.further_input(tensor)
            return
        if self._now == _TRAIN:
            batches = max(batches_in_storage(tensor), float(sizes.batches))
            self._rows.trained(tensor, batches)
            self.hot.has_deferred = self.hot.has_deferred or self._rows.wait
        else:
            trained = [model for model, _ in self.models() if model.training]
            is_evaluation = not trained
            if trained and not self._is_forgotten and not torch.is_grad_enabled():
                self._is_forgotten = modes.others_evaluate(trained[0])
            self._rows.given(tensor, is_evaluation, self.hot.steps)

    @boundary("outputs")
    def module_output(self, place: Place, suffix: str, tensor: torch.Tensor) -> None:
        if patches.is_transforming():
            self.transformed()
            return
        if self._now == _TRAIN and self._micro.is_beyond:
            self._unseen.micro_batches()
            return
        role, mark = "output" if place.kind == "none" else "activation", self._mark()
        name = f"{role}/{place.name}{suffix}{mark}"
        tensor_id = self._place_id(name, role, place, place.kind, tensor)
        if not suffix and not mark:
            place.taken_as = tensor_id
        self._take(self._now, tensor_id, tensor)

    @boundary("activations")
    def function_output(
        self, place: Place, function: str, kind: str, number: int, tensor: torch.Tensor
    ) -> None:
        if patches.is_transforming():
            self.transformed()
            return
        repeat = f"#{number}" if number > 1 else ""
        name = f"activation/{place.name}.{function}{repeat}{self._mark()}"
        self._take(self._now, self._place_id(name, "activation", place, kind, tensor), tensor)

    def wants_attention(self) -> bool:
        due = self.hot.due if self._now == _TRAIN else self.session.due(_EVAL)
        return bool(due & _BIT["attention"]) and not patches.is_transforming()

    @boundary("attention")
    def attention(self, place: Place, number: int, tensor: torch.Tensor) -> None:
        self._misses_attention = False
        repeat = f"#{number}" if number > 1 else ""
        name = f"attention/{place.name}{repeat}{self._mark()}"
        self._take(self._now, self._place_id(name, "attention", place, "none", tensor), tensor)

    @boundary("attention")
    def attention_not_made(self, place: Place, reason: str) -> None:
        self._misses_attention = False
        self.session.skip()
        self._explain("attention", f"the attention map of {place.name}, and maybe others", reason)

    def wants_mixers(self) -> bool:
        return self._now == _TRAIN and self._sequences.is_open and not patches.is_transforming()

    @boundary("sequences")
    def mixer_called(
        self, place: Place, function: Any, args: Any, kwargs: Any, result: Any
    ) -> None:
        self._sequences.called(place.name, function, args, kwargs, result)

    def wants_hazards(self) -> bool:
        return self._now == _TRAIN and self._hazards.is_open and not patches.is_transforming()

    @boundary("hazards")
    def hazard_called(
        self, place: Place, function: Any, args: Any, kwargs: Any, result: Any
    ) -> None:
        name = "" if place.name == "model" else place.name
        self._hazards.called(name, function, args, kwargs, result)

    @boundary("forward")
    def forward_raised(self) -> None:
        self.end_eager()

    def _wants_eager(self) -> bool:
        """Whether compiled code that is called now belongs to a training step.

        Gradients may be off in one: a checkpointed part (`use_reentrant=True`) runs without, and
        again with them in the backward pass, where it must draw the same random numbers.
        """
        models = (watcher.model for watcher in self.watchers)
        return any(model is not None and model.training for model in models)

    def _begin_eager(self) -> None:
        """Makes compiled code run uncompiled in the step that begins, if the step needs it."""
        self._compiler = self._compiler or compiler_in_use()
        if not self._compiler or not self.session.eager(_TRAIN):
            self._eager.end()
            return
        try:
            self._eager.begin()
        except (AttributeError, ImportError, RuntimeError) as error:
            self._explain("eager", "what compiled modules return", f"torch.compile: {error}")

    def end_eager(self) -> None:
        """Compiled code runs as it would without us."""
        guarded("compiled", self._eager.end)

    def _prepare(self, watcher: Watcher) -> None:
        """Attaches for the step that begins, or takes off, as it needs."""
        model, observer = watcher.model, watcher._observer
        if model is None or observer is None:
            return
        train = self.hot.due & _FORWARD_ROLES
        if self._compiler and watcher._compiled and not self._eager.is_on:
            observer.disarm()
            if train:
                self._unseen.compiled(model)
            return
        if (
            not train
            and not self._evaluates
            and not self._micro.are_told_apart
            and not self.session.due(_EVAL) & _FORWARD_ROLES
        ):
            if observer.armed or observer.observing:
                observer.disarm()
            return
        observer.counts_unseen = self._compiler and observer.unseen is None
        observer.arm(self._compiler)
        may_call_parts = self.hot.steps >= 1 or self._calls_parts
        if may_call_parts and observer.calls_in_training == 0 and train:
            # A step went by in which the training did not call the model itself: look at its parts.
            self._now = _TRAIN
            observer.observe_without_root()

    @boundary("forward")
    def parts_are_called(self) -> None:
        """A training begins that may call the parts of its model, but never the model itself."""
        self._calls_parts = True
        for watcher in self.watchers:
            self._prepare(watcher)

    def _check_forward(self, watcher: Watcher) -> None:
        """After a step that wanted a forward pass: says so when one, or a part, was not seen."""
        observer, model = watcher._observer, watcher.model
        if observer is None or not observer.armed or not self.hot.due & _FORWARD_ROLES:
            return
        if watcher._has_scripts:
            what = "what modules inside of scripted or traced modules return"
            self._explain("scripts", what, "torch.jit's code calls no hooks")
        if observer.calls == 0 and observer.outputs == 0:
            if self._compiler and not self._eager.is_on and model is not None:
                self._unseen.compiled(model)
            elif self.hot.steps >= 1:
                what = f"what the modules of {type(model).__name__} return"
                self._explain("silent", what, "no module of it was called in Python")
            return
        if self.hot.forward_seen:
            self.session.forward_passed()
        if self._compiler and observer.unseen:
            self._unseen.modules(observer.unseen, observer.seen, self._eager.is_on)
            observer.unseen = []
        if self._misses_attention and observer.took_functions and self.hot.due & _BIT["attention"]:
            self._misses_attention = False
            if observer.calls_in_training == 0:
                self._unseen.attention_without_call()
            elif failures.get("attention", 0) == 0:
                self._unseen.attention()
        if not observer.took_functions and self.hot.due & (_BIT["activation"] | _BIT["attention"]):
            self._unseen.functions()

    @boundary("forward")
    def compiler_used(self, target: Any) -> None:
        """torch.compile is called for `target`, perhaps in the middle of a step."""
        self._compiler = True
        if isinstance(getattr(target, "__self__", None), torch.optim.Optimizer):
            self._unseen.steps()
        parts = list(target.modules()) if isinstance(target, torch.nn.Module) else []
        for watcher in self.watchers:
            watcher._compiled = watcher._compiled or any(part is watcher.model for part in parts)
        if not self._eager.is_on:
            self._begin_eager()
        for watcher in self.watchers:
            self._prepare(watcher)

    @boundary("forward")
    def export_begins(self) -> None:
        """torch.export is called, perhaps in the middle of a step: what it traces has no hooks."""
        for watcher in self.watchers:
            if watcher._observer is not None:
                watcher._observer.disarm()

    @boundary("forward")
    def export_ends(self) -> None:
        for watcher in self.watchers:
            self._prepare(watcher)

    @boundary("forward")
    def transformed(self) -> None:
        """A forward pass or a loss is computed inside of torch.func."""
        self.session.skip()
        self._unseen.transformed()

    @boundary("parameters")
    def modules_changed(self) -> None:
        """Some module got another part: a watched model may have other parameters now."""
        self._owners = None
        for table in self._tables.values():
            table.is_stale = True

    # Losses (Listener).

    @property
    def is_evaluating(self) -> bool:
        """Whether what the watched model computes now is of an evaluation."""
        return self._mode() == _EVAL

    def _mode(self) -> int:
        # One of several is enough: a teacher stays in evaluation mode while its student is trained.
        models = [watcher.model for watcher in self.watchers if watcher.model is not None]
        return _TRAIN if not models or any(map(self._is_training, models)) else _EVAL

    def _is_training(self, model: torch.nn.Module) -> bool:
        # Some train a model in evaluation mode, by mistake or not: it is a training all the same.
        return (model.training or self._trains_in_eval) and torch.is_grad_enabled()

    def _end_evaluation(self) -> None:
        if self._eval_names:
            self._eval_names.clear()
            self._drain()
            self.session.end_eval_step()

    @boundary("losses")
    def loss_computed(
        self, name: str, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        # Other subclasses are no values: fake tensors of a compiler, functional ones.
        value = whole_here(value)
        if type(value) is not torch.Tensor:
            return
        mode, mark = self._mode(), ""
        if mode == _TRAIN:
            self._micro.loss_computed(name)
            mark = self._micro.mark
            if self._micro.is_beyond:
                self._unseen.micro_batches()
                return
        if mode == _EVAL and name in self._eval_names:
            self._end_evaluation()
        if mode == _EVAL and self._follows_loop:
            self._random.evaluated()
        elif mode == _TRAIN and self._random.is_due:
            guarded("random", self._look_at_random)
        if mode == _TRAIN and self._is_unstepped and value.requires_grad:
            guarded("loop", self._unstepped.loss_computed, self.models())
        due = self.hot.due if mode == _TRAIN else self.session.due(_EVAL)
        if due & _LOOP:
            guarded("loop", self._loop_hears_of_loss, mode, name, value, args, kwargs)
        if mode == _EVAL and (value.numel() == 1 or due & _ARGUMENTS):
            self._eval_names.add(name)
        if value.numel() != 1:
            self.session.skip()  # reduction="none"
            if mode == _TRAIN and due & _LOOP:
                guarded("loop", self._note_unreduced, value)
        else:
            tensor_id = self._loss_ids[name + mark] = self._id(f"loss/{name}{mark}", "loss")
            self._take_scalar(mode, tensor_id, value)
        if name in _CLASSIFIERS and due & _BIT["classes"]:
            self._take_classes(mode, name, args, kwargs)
        if due & _ARGUMENTS:
            self._misses_arguments = False
            for role, suffix, tensor in arguments_of(name, args, kwargs):
                full = f"{role}/{name}{suffix}{mark}"
                self._take(mode, self._id(full, role, tensor), tensor)
                if role == "label" and mode == _TRAIN and self.hot.steps < _STEPS_COMPARED:
                    guarded("losses", self._compare_with_input, tensor)

    def _note_unreduced(self, value: torch.Tensor) -> None:
        """Of a loss for each sample, which the loop makes one number of: its mean."""
        is_plain = type(value) is torch.Tensor and value.is_floating_point()
        if is_plain and value.numel() > 0 and not capturing_graph(value):
            with own_operations():
                self._unreduced = value.detach().mean()

    def _tell_unreduced(self, root: torch.Tensor) -> None:
        """Whether the loss is about the mean of what a loss function gave for each sample.

        With a mask, say; with weights it may be something else, such as the objective of a policy.
        """
        mean, self._unreduced = self._unreduced, None
        if mean is None or root.device != mean.device or capturing_graph(root):
            return
        with own_operations():
            is_about = ((root > 0.8 * mean) & (root < 1.25 * mean)).to(torch.float32)
        self.take_number(self._id("loop/loss_is_reduced_later", "loop"), is_about)

    def _compare_with_input(self, label: torch.Tensor) -> None:
        """Whether a column of the model's input says what the label is."""
        given, self._input = self._input, None
        tensor = None if given is None else given()
        if type(tensor) is not torch.Tensor or type(label) is not torch.Tensor:
            return
        if not self.hot.due & _BIT["loop"]:
            return
        with own_operations():
            found = closest_column(tensor, label)
        if found is not None:
            words = ("correlation", "column", "is_at_the_end")
            for word, value in zip(words, found, strict=True):
                self.take_number(self._id(f"loop/label_in_input_{word}", "loop"), value)

    def _loop_hears_of_loss(
        self, mode: int, name: str, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        if mode == _TRAIN:
            self._loop.loss_computed(name, value, args, kwargs)
            guarded("graphs", self._held.loss_computed, self.hot.steps, value)
            guarded("sequences", self._sequences.loss_computed, args, kwargs)
            labels = args[1] if len(args) > 1 else kwargs.get("target")
            guarded("rows", self._rows.labelled, labels)
            guarded("neighbours", self._ask_neighbours, name, labels)
        elif not torch.is_grad_enabled() and self._may_be_of_a_watched_model():
            self._loop.evaluated(args, kwargs)
            self._rows.evaluated()
            self.hot.has_deferred = self.hot.has_deferred or self._rows.wait
        elif torch.is_grad_enabled():
            guarded("graphs", self._held.loss_computed, self.hot.steps, value)
        if mode == _TRAIN or not torch.is_grad_enabled():
            guarded("losses", self._take_missed, mode, name, args, kwargs)

    def _look_at_random(self) -> None:
        count = self._random.trained()
        if count is not None:
            self.take_number(self._id("loop/random_numbers_set_back", "loop", always=True), count)

    def _ask_neighbours(self, name: str, labels: Any) -> None:
        told = self._neighbours.labelled(name, labels)
        if told is not None:
            for fact, value in told._asdict().items():
                self.take_number(self._id(f"loop/{fact}", "loop"), value)

    def _take_missed(
        self, mode: int, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """How many labels are not what is predicted, where nothing random is done to the model."""
        given = args[0] if args else kwargs.get("input")
        labels = args[1] if len(args) > 1 else kwargs.get("target")
        if isinstance(labels, torch.Tensor) and capturing_graph(labels):
            return
        if any(has_dropout(model) for model, _ in self.models()):
            return
        found = missed_labels(name, given, labels)
        if found is None:
            return
        number, missed, mean = found
        self.fact("labels_counted", number, evaluation=mode == _EVAL)
        self._take_scalar(mode, self._id("loop/labels_missed", "loop"), missed)
        self._take_scalar(mode, self._id("loop/labels_mean", "loop"), mean)

    def _may_be_of_a_watched_model(self) -> bool:
        """Of a loss without gradients: another's, if each watched model would be seen and none was.

        Such as the mean of the weights (SWA, EMA), or a teacher.
        """
        may_be = False
        for watcher in self.watchers:
            observer = watcher._observer
            if observer is None:
                continue
            outside = observer.calls - observer.calls_in_training
            is_blind = not observer.armed or observer.calls_in_training == 0
            may_be = may_be or is_blind or outside != watcher._calls_outside
            watcher._calls_outside = outside
        return may_be

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
        tensor_id = self._id(f"classes/{name}", "classes")
        if self.on_device_only or not self.session.observe_classes(mode, tensor_id, logits, labels):
            self.deferred.add_classes(mode, tensor_id, logits, labels)
            self.hot.has_deferred = True

    @boundary("losses")
    def loss_scaled(self, scaled: Any, loss: Any) -> None:
        if scaled is loss:
            return  # of a scaler that is not enabled
        if type(scaled) is torch.Tensor and type(loss) is torch.Tensor and loss.numel() == 1:
            with own_operations():  # without what it was computed of; it may be gone by then
                alone = loss.detach()
                alone = alone if capturing_graph(loss) else alone.clone()
            self._scaled = (weakref.ref(scaled), alone)
            self.hot.has_scaler = True

    @boundary("backward")
    def backward_begins(self, tensors: Any) -> None:
        if self._eval_names and not self._trains_in_eval:
            self._backward_in_eval = self.hot.watches_mode = True
        self._end_evaluation()
        # Anything else, such as a generator, is the training's alone to go through.
        roots = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        root = whole_here(roots[0]) if roots else None
        if self.hot.due & _LOOP:
            guarded("loop", self._loop_hears_of_backward, root)
        self._micro.backward_begins()
        if self._micro.is_beyond:
            root = None
        if root is not None and type(root) is torch.Tensor and root.numel() == 1:
            if self._scaled is not None and self._scaled[0]() is root:
                root = self._scaled[1]
            self.hot.root_loss = self._id("loss", "loss")
            mark = self._micro.mark
            loss = self._id(f"loss{mark}", "loss") if mark else self.hot.root_loss
            self._take_scalar(_TRAIN, loss, root)
        if self.hot.due & GRADIENTS_BEFORE:
            self._gradients.backward_begins()
        if self._is_unstepped:
            guarded("loop", self._unstepped.backward_begins, self.models())
        self.hot.passes += 1
        if self.hot.passes >= self._looks_from:
            guarded("loop", self._look_for_thrown_away)
        if self.hot.first_backward:
            self.hot.first_backward = False
            if self.hot.due & _BIT["loop"]:
                self._take_leftover()
                if root is not None:
                    guarded("losses", self._take_compared, root)
                if isinstance(root, torch.Tensor) and root.numel() == 1:
                    guarded("loop", self._tell_unreduced, root)
        elif self.hot.due & _BIT["loop"]:
            self._take_cleared()
        if self.hot.due & _BIT["loop"]:
            guarded("loop", self._kept.pass_begins, self._tables)

    def _loop_hears_of_backward(self, root: Any) -> None:
        is_scaled = self._scaled is not None and self._scaled[0]() is root
        self._loop.backward_begins(root, is_scaled)
        guarded("graphs", self._held.backward_begins, self.hot.steps, root)
        if type(root) is torch.Tensor and self._loop.wants_graph(self.hot.steps):
            graph = self._loop.look_at(root)
            self._hazards.graph_seen(graph.hazards if graph is not None else [])

    @boundary("loop")
    def backward_ended(self, retains: bool) -> None:
        self._loop.backward_ended(retains)
        looks = self._thrown_away > 0 or self.hot.passes <= self._looks_from + _PASSES_WITH_A_LOOK
        if looks and self.hot.passes >= self._looks_from:
            self._overflowed = first_not_finite(self.models())

    def _look_for_thrown_away(self) -> None:
        """A pass begins, many after the last step: looks whether what the one before left was used.

        A loop that leaves out steps whose gradients are not finite calls no optimizer.
        """
        last, self._last_passes = self._last_passes, self.hot.passes
        if self.hot.passes <= last:  # a step was made after these: they were its micro-batches
            self._looks_from = 2 * last
            return
        known, self._overflowed = self._overflowed, None
        if (
            self.hot.passes > self._looks_from + _PASSES_WITH_A_LOOK
            and known is None
            and self._thrown_away == 0
        ):
            return  # many micro-batches
        self.hot.due |= _LOOP  # to hear of the end of the pass
        parameter = None if known is None else known()
        if parameter is None or is_not_finite(parameter.grad):
            return
        self._thrown_away += 1
        if self._thrown_away < _SKIPPED_UNTIL_A_STEP or not self._follows_loop:
            return
        self._thrown_away = 0
        self._drain()
        left_out = self._id("loop/steps_left_out", "loop", always=True)
        self.take_number(left_out, self.hot.passes - 1)
        before = self.hot.due
        self._begin_step(before, self.hot.end_step())
        self.hot.passes = 1  # the one that begins
        self._last_passes = 0

    @boundary("gradients before")
    def gradients_will_change(self, parameters: list[Any]) -> None:
        self._gradients.will_change(parameters)

    @boundary("gradients before")
    def gradients_clipped(self, parameters: list[Any], norm: Any) -> None:
        self._gradients.changed(parameters, norm)

    @boundary("gradients before")
    def gradients_unscale(self, scaler: Any, optimizer: torch.optim.Optimizer) -> None:
        self._gradients.unscales(scaler, optimizer)

    @boundary("gradients before")
    def gradients_unscaled(self, optimizer: torch.optim.Optimizer) -> None:
        self._gradients.unscaled(optimizer)

    def _take_compared(self, loss: Any) -> None:
        """Shapes of what a loss that is written out compares; the numbers are the elements."""
        known = compared_shapes(loss) if isinstance(loss, torch.Tensor) else None
        for word, shape in zip(("prediction", "difference"), known or (), strict=False):
            name = f"loop/{word}_compared"
            if name not in self._ids:
                self._ids[name] = self.session.register_tensor(name, "loop", shape=list(shape))
            self.take_number(self._ids[name], math.prod(shape))
        returned = self._loop.returned()
        found = written_out(loss, returned) if isinstance(loss, torch.Tensor) else None
        if found is None or f"loss/{found.function}" in self._ids:
            return
        self._tell_repeated_target(found)
        # On a device the truth value comes with all else that waits there.
        written_id = self._id("loop/loss_is_written_out", "loop")
        self.take_number(written_id, found.is_mean.to(torch.float32))
        if self.hot.due & _ARGUMENTS:
            for role, tensor in (("prediction", found.prediction), ("label", found.target)):
                name = f"{role}/{found.function}"
                self._take(_TRAIN, self._id(name, role, tensor), tensor)

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
        self.take_number(self._id("loop/target_is_repeated", "loop"), is_repeated)

    def _take_leftover(self) -> None:
        driver = self._driver() if self._driver is not None else None
        table = self._tables.get(driver) if driver is not None else None
        if table is None or table.smallest is None:
            return
        gradient = table.smallest.grad
        if gradient is not None:
            name = "loop/gradient_before_backward"
            tensor_id = self._id(name, "loop", gradient, module=table.smallest_name)
            self._take(_TRAIN, tensor_id, gradient)

    def _take_cleared(self) -> None:
        """Of a further pass of the step: tells that gradients were cleared since the one before."""
        driver = self._driver() if self._driver is not None else None
        table = self._tables.get(driver) if driver is not None else None
        if table is None or table.smallest is None:
            return
        gradient = table.smallest.grad
        with own_operations():
            # On a device a look at zeros would wait; zero_grad() leaves None unless told not to.
            is_zero = gradient is None or (gradient.is_cpu and not bool(gradient.any()))
        if is_zero:
            self.take_number(self._id("loop/cleared_between_passes", "loop"), 1)

    # Optimizer steps (Listener).

    @boundary("optimizer")
    def optimizer_will_step(self, optimizer: torch.optim.Optimizer) -> None:
        if type(optimizer).__hash__ is None:
            what = f"what {type(optimizer).__name__} optimizes"
            self._explain(
                "unhashable", what, "the optimizer's class defines __eq__ but no __hash__"
            )
            return
        table = self._tables.get(optimizer)
        if table is None or table.is_stale or table.groups != len(optimizer.param_groups):
            if optimizer in self._strangers:
                return
            table = self._learn(optimizer)
            if table is None:
                return
        if not self.hot.due:
            return
        self._end_evaluation()
        if self.hot.due & GRADIENTS_BEFORE:
            guarded("gradients before", self._gradients.will_step, optimizer, table)
        self._observe_parameters(optimizer, table)
        if self.hot.due & UPDATES:
            guarded("optimizer state", self._optimizers.will_step, optimizer, table)
        if self.hot.due & _LOOP:
            guarded("loop", self._tell_kept, optimizer, table)
        if self._driver is not None and self._driver() is optimizer:
            self._check_settings(optimizer)
            if self._is_forgotten:
                guarded("modes", self._tell_forgotten)
            if self.hot.due & _LOOP:
                guarded("loop", self._loop.will_step, optimizer, self.hot.steps)
                guarded("sequences", self._tell_sequences)
                guarded("hazards", self._tell_hazards)
                guarded("graphs", self._tell_held)
                guarded("rows", self._tell_unscored)

    def _tell_kept(self, optimizer: torch.optim.Optimizer, table: Parameters) -> None:
        """Of one of several optimizers: whether its last step's gradients are still there."""
        kept = self._kept.will_step(optimizer, table)
        if len(self._tables) < 2:
            return
        if kept is not None:
            self.fact("gradients_kept", float(kept), table.smallest_name)
        if self._kept.shares_pass(optimizer):
            self.fact("optimizers_share_pass", 1)

    def _tell_sequences(self) -> None:
        """What positions of sequences see in the step under way."""
        for name, value, place in self._sequences.facts():
            self.fact(name, value, place)

    def _tell_hazards(self) -> None:
        """Which operations of the step under way may make what is not finite."""
        for name, line, place in self._hazards.facts():
            self.fact(name, line, place)

    def _tell_held(self) -> None:
        """How many of the graphs of losses that were marked are still there."""
        for is_used, held, marked in self._held.held(self.hot.steps):
            place = "" if is_used else "without_backward"
            self.fact("graphs_held", held, place)
            self.fact("graphs_marked", marked, place)

    def _learn(self, optimizer: torch.optim.Optimizer) -> Parameters | None:
        """Finds out which parameters of watched models an optimizer answers for."""
        owned = {id(p) for group in optimizer.param_groups for p in group["params"]}
        watcher = self._watcher_of(owned)
        if watcher is None:
            self._strangers.add(optimizer)
            return None
        driver = self._driver() if self._driver is not None else None
        if driver is not None and self.hot.foreign_steps >= _STEPS_UNTIL_NEW_DRIVER:
            self._tables.pop(driver, None)  # see expect_other_driver
            driver = None
        if driver is None:
            self._set_driver(optimizer)
        others = {
            id(p)
            for other in self._tables
            if other is not optimizer
            for group in other.param_groups
            for p in group["params"]
        }
        if optimizer not in self._tables and optimizer not in self._lost:
            self._lost[optimizer] = guarded("checkpoints", checkpoints.what_was_lost, optimizer)
        table = Parameters()
        table.groups = len(optimizer.param_groups)
        model = watcher.model
        assert model is not None
        for parameter, owner in owned_in(model, watcher.prefix):
            if id(parameter) in others or number_of(parameter) == 0:
                continue
            if any(parameter is known for known in table.values[-1:]):
                continue
            self._learn_parameter(table, parameter, owner)
            in_turn = id(parameter) in owned and parameter.requires_grad
            smallest = table.smallest
            if in_turn and (smallest is None or parameter.numel() < smallest.numel()):
                table.smallest = parameter
                table.smallest_name = owner.path
        is_new = optimizer not in self._tables
        self._tables[optimizer] = table
        self._arm()
        driver = self._driver() if self._driver is not None else None
        if is_new and driver is not None and driver is not optimizer:
            guarded("description", self._describe, self._first_model(), driver)
        return table

    def _learn_parameter(
        self, table: Parameters, parameter: torch.nn.Parameter, owner: Owner
    ) -> None:
        role = role_of(owner.path)
        table.values.append(parameter)
        table.owners.append(owner)
        table.weight_ids.append(self.tensor_id(f"{role}/{owner.path}", role, parameter, owner))
        # Of a distributed one the placement may be another than the parameter's.
        gradient = parameter if parameter.grad is None else parameter.grad
        table.gradient_ids.append(
            self.tensor_id(f"gradient/{owner.path}", "gradient", gradient, owner)
        )

    def owners(self) -> dict[int, Owner]:
        """Of all parameters of watched models, by their ids; of several names, the first one."""
        if self._owners is None:
            self._owners = {}
            for watcher in self.watchers:
                model = watcher.model
                for parameter, owner in owned_in(model, watcher.prefix) if model else ():
                    self._owners.setdefault(id(parameter), owner)
        return self._owners

    def _watcher_of(self, owned: set[int]) -> Watcher | None:
        for watcher in self.watchers:
            model = watcher.model
            if model is not None and any(
                id(parameter) in owned for parameter in model.parameters()
            ):
                return watcher
        return None

    def _set_driver(self, optimizer: torch.optim.Optimizer) -> None:
        self._driver = weakref.ref(optimizer)
        self._trainings += 1
        made, before = made_as(optimizer), self._made_as
        self._made_as = made
        is_new = optimizer not in self._drove
        self._drove.add(optimizer)
        is_alike = is_new and made is not None and before is not None and made.is_like(before)
        self._made_anew = self._made_anew + 1 if is_alike else 0
        if is_alike and self._follows_loop:
            # Whether the weights went on as well, or began anew, the loss tells.
            number_id = self._id("loop/optimizer_made_anew", "loop", always=True)
            self.take_number(number_id, self._made_anew)
        if self._trainings > 1:
            self._rows.forget()
            self._neighbours.forget()
            self._random.forget()
        if self._trainings > 1 and self._follows_loop:
            # Another training begins in the same process: what was true of the last one is over.
            number_id = self._id("loop/trainings", "loop", always=True)
            self.take_number(number_id, self._trainings)
        self.hot.foreign_steps = 0
        self._lr = learning_rates(optimizer)
        self._arm()
        guarded("description", self._describe, self._first_model(), optimizer)
        guarded("checkpoints", self._tell_lost_state, optimizer)

    def _lost_of(self, optimizer: torch.optim.Optimizer) -> int:
        """See `Checkpoints.what_was_lost`; asked before the optimizer's first step."""
        lost = self._lost.get(optimizer)
        if lost is None:
            lost = self._lost[optimizer] = checkpoints.what_was_lost(optimizer)
        return lost

    def _tell_lost_state(self, optimizer: torch.optim.Optimizer) -> None:
        """Whether it begins anew where an optimizer was that is not loaded."""
        lost = self._lost_of(optimizer)
        if self._follows_loop and (lost or self._trainings == 1):
            number_id = self._id("loop/optimizer_state_lost", "loop", always=True)
            self.take_number(number_id, lost)
        checkpoints.drives(optimizer)

    def _arm(self) -> None:
        """Tells the hot path what an ordinary step looks like now, if there is such a thing."""
        driver = self._driver() if self._driver is not None else None
        if (
            self.dead
            or self.on_device_only
            or self._micro.are_told_apart
            or self._skipped > 0
            or len(self.watchers) != 1
            or driver not in self._tables
            or any(number >= STRIKES for number in failures.values())
        ):
            self.hot.disarm()
            return
        self.hot.arm(
            self.watchers[0]._model,
            self._driver,
            list(self._lr),
            self._loss_ids,
            _CLASSIFIERS,
            self._eval_names,
        )

    def _first_model(self) -> torch.nn.Module | None:
        return self.watchers[0].model if self.watchers else None

    def _observe_parameters(self, optimizer: torch.optim.Optimizer, table: Parameters) -> None:
        tensors: list[torch.Tensor | None] = []
        ids: list[int] = []
        if self.hot.due & _PARAMETER_ROLES:
            tensors += table.values
            ids += table.weight_ids
        if self.hot.due & _BIT["gradient"]:
            gradients = [parameter.grad for parameter in table.values]
            scale = scale_of(optimizer)
            if scale is not None:
                take_scaled(self, table.gradient_ids, gradients, scale)
            else:
                tensors += gradients
                ids += table.gradient_ids
        if tensors:
            self.take_batch(ids, tensors)

    def _check_settings(self, optimizer: torch.optim.Optimizer) -> None:
        rates = learning_rates(optimizer)
        if rates and self._follows_loop and (rates != self._lr or self.hot.due & _BIT["loop"]):
            # The largest of all groups. Also at steps that are not due: no change is missed.
            self.take_number(self._id("loop/learning_rate", "loop", always=True), max(rates))
        if rates != self._lr:
            self._lr = rates
            self._arm()
            facts = optimizer_facts(optimizer) | {"step": self.hot.steps}
            self.session.event("optimizer", json.dumps(facts))
        if self._lost.get(optimizer) and checkpoints.was_given(optimizer):
            self._lost[optimizer] = 0  # later than its first step
            number_id = self._id("loop/optimizer_state_lost", "loop", always=True)
            self.take_number(number_id, 0)

    # What an optimizer did (Taker).

    def tensor_id(
        self, name: str, role: str, tensor: torch.Tensor | None, owner: Owner | None
    ) -> int:
        if tensor is None and name in self._ids:
            return self._ids[name]
        facts = {} if owner is None else owner._asdict()
        facts.pop("path", None)
        return self._id(name, role, tensor, **facts)

    def take_batch(
        self, ids: list[int], tensors: list[torch.Tensor] | list[torch.Tensor | None]
    ) -> None:
        """Takes tensors of the step under way; None is one that is not there."""
        if self.on_device_only:
            elsewhere = list(range(len(tensors)))
        else:
            elsewhere = self.session.observe_batch(_TRAIN, ids, tensors)
        for index in elsewhere:
            tensor = tensors[index]
            if tensor is not None:
                self.deferred.add_tensor(_TRAIN, ids[index], tensor)
                self.hot.has_deferred = True

    def take_number(self, tensor_id: int, value: float | torch.Tensor) -> None:
        if not isinstance(value, torch.Tensor):
            self.session.observe_scalar(_TRAIN, tensor_id, float(value))
        elif value.numel() == 1:
            self._take_scalar(_TRAIN, tensor_id, value)

    def take_update(
        self, update_id: int, ratio_id: int, before: torch.Tensor, after: torch.Tensor
    ) -> None:
        """Of a parameter on a device."""
        self.deferred.add_update(_TRAIN, update_id, ratio_id, before, after)
        self.hot.has_deferred = True

    @boundary("optimizer state")
    def _observe_stepped(self, optimizer: torch.optim.Optimizer) -> None:
        table = None if type(optimizer).__hash__ is None else self._tables.get(optimizer)
        if table is not None:
            self._optimizers.stepped(optimizer, table, self.hot.due)

    @boundary("gradients before")
    def _drop_gradients(self, optimizer: torch.optim.Optimizer) -> None:
        if type(optimizer).__hash__ is not None and optimizer in self._tables:
            self._gradients.stepped(optimizer)

    @boundary("micro-batches")
    def step_skipped(self, optimizer: torch.optim.Optimizer) -> None:
        driver = self._driver() if self._driver is not None else None
        if driver is not None and driver is not optimizer:
            return
        self._micro.step_ended()
        if driver is None:
            owned = {id(p) for group in optimizer.param_groups for p in group["params"]}
            if self._watcher_of(owned) is None:
                return  # it steps, and is none of ours
        if not self._follows_loop:
            return
        self._skipped += 1
        self._arm()  # the next step is no ordinary one
        if self._skipped >= _SKIPPED_UNTIL_A_STEP:
            self._drain()
            self._take_skipped()
            before = self.hot.due
            self._begin_step(before, self.hot.end_step())

    def _take_skipped(self) -> None:
        skipped, self._skipped = self._skipped, 0
        if skipped:
            self.take_number(self._id("loop/skipped_steps", "loop", always=True), skipped)
            self._arm()

    def optimizer_stepped(self, optimizer: torch.optim.Optimizer) -> None:
        """Ends the step. Raises TrainingStopped when the supervisor asked for it."""
        if self.hot.due & (STATE | UPDATES):
            self._observe_stepped(optimizer)
        if self.hot.due & GRADIENTS_BEFORE:
            self._drop_gradients(optimizer)
        self._stop_if_asked(self._end_step_of(optimizer))

    def _steps_until_new_driver(
        self, driver: torch.optim.Optimizer, optimizer: torch.optim.Optimizer
    ) -> int:
        """After how many steps of `optimizer` in a row it drives in place of `driver`.

        One that has all of the driver's parameters takes its place: another stage, another epoch.
        The one before may live on in a cycle with its schedule.
        """
        if optimizer in self._drove:
            return _STEPS_UNTIL_NEW_DRIVER  # it comes back: they take turns
        owned = {id(p) for group in optimizer.param_groups for p in group["params"]}
        takes_over = all(id(p) in owned for group in driver.param_groups for p in group["params"])
        return _STEPS_UNTIL_TAKEN_OVER if takes_over else _STEPS_UNTIL_NEW_DRIVER

    @boundary("steps")
    def _end_step_of(self, optimizer: torch.optim.Optimizer) -> int | None:
        if self._driver is None or type(optimizer).__hash__ is None:
            return None
        driver = self._driver()
        if driver is not optimizer:
            if optimizer not in self._tables:
                return None
            self.hot.foreign_steps += 1
            if driver is not None:
                if self.hot.foreign_steps < self._steps_until_new_driver(driver, optimizer):
                    return None
                self._tables.pop(driver, None)  # it is done; if not, it is learnt again
                self._tables[optimizer].is_stale = True  # what it shares with that is its own now
            guarded("optimizer", self._set_driver, optimizer)
        self._drain()
        self._note_mode()
        self._take_skipped()
        before = self.hot.due
        if before & _FORWARD_ROLES:
            for watcher in self.watchers:
                self._check_forward(watcher)
        if self._misses_arguments and before & _ARGUMENTS and not self.hot.first_backward:
            self._misses_arguments = False
            self._unseen.arguments()
        if self._micro.are_told_apart:
            if self._micro.number > 1:
                number_id = self._id("loop/micro_batches", "loop", always=True)
                self.take_number(number_id, self._micro.number)
            self._micro.step_ended()
        answer: int = self.hot.end_step()
        self._correct_if_asked(answer)
        self._begin_step(before, answer)
        return answer

    def _note_mode(self) -> None:
        """After a step: whether it was made in evaluation mode."""
        if not self.hot.watches_mode:
            return
        in_eval = (self._backward_in_eval or self._trains_in_eval) and not any(
            watcher.model.training for watcher in self.watchers if watcher.model is not None
        )
        self._trains_in_eval = self.hot.watches_mode = in_eval
        self._backward_in_eval = False

    def step_ended(self, answer: int) -> None:
        """The hot path ended a step after which there is something to do. Raises as above."""
        self._begin_ended_step(answer)
        self._stop_if_asked(answer)

    @boundary("steps")
    def _begin_ended_step(self, answer: int) -> None:
        self._correct_if_asked(answer)
        self._begin_step(0, answer)

    def _correct_if_asked(self, answer: int) -> None:
        """After an optimizer's step."""
        if answer & _core.CORRECTION_ASKED:
            guarded("corrections", self._corrections.asked)
            self.listen()

    def _begin_step(self, due_before: int, answer: int) -> None:
        is_new_plan = bool(answer & _core.PLAN_CHANGED)
        if is_new_plan:
            self._follow(self.session.plan())
            self._gradients.clear()
            self._micro.step_ended()
            self._arm()
        self._overflowed, self._thrown_away = None, 0
        self._unreduced = None
        if not self.hot.due & _LOOP:
            self._kept.clear()
        guarded("loop", self._loop.begin, bool(self.hot.due & _LOOP))
        if failures.get("loop", 0) >= STRIKES:
            self._loop.clear()
        is_off = failures.get("gradients before", 0) >= STRIKES
        if is_off or not self.hot.due & GRADIENTS_BEFORE:
            self._gradients.clear()
        if is_new_plan or (self.hot.due | due_before) & _FORWARD_ROLES:
            self._begin_eager()
            for watcher in self.watchers:
                if watcher._observer is not None and watcher._observer.observing:
                    watcher._observer.disarm()
                self._prepare(watcher)

    def _stop_if_asked(self, answer: int | None) -> None:
        if answer is not None and answer & _core.STOP_REQUESTED:
            run_dir = self.session.run_directory
            if self.session.checkpoint_asked():
                self._corrections.checkpoint()
            self.close()
            raise TrainingStopped(run_dir)

    # Facts about the loop (Teller).

    def fact(self, name: str, value: float, place: str = "", evaluation: bool = False) -> None:
        """A number of the step under way; `place`: of which module or parameter, say."""
        ids = self._places.setdefault(name, {})
        known = ids.get(place)
        if known is None:
            if place and len(ids) > _PLACES_MAX:
                known = ids[next(reversed(ids))]
            else:
                full = f"loop/{name}/{place}" if place else f"loop/{name}"
                known = ids[place] = self._id(full, "loop", module=place)
        self.session.observe_scalar(_EVAL if evaluation else _TRAIN, known, float(value))

    def models(self) -> list[tuple[torch.nn.Module, str]]:
        """The watched models that are alive, with what the names of their modules begin with."""
        alive = ((watcher.model, watcher.prefix) for watcher in self.watchers)
        return [(model, prefix) for model, prefix in alive if model is not None]

    def optimizers(self) -> list[torch.optim.Optimizer]:
        """Those that stepped parameters of watched models."""
        return list(self._tables)

    # The user's numbers.

    @boundary("metrics")
    def metric(self, name: str, value: float, evaluation: bool | None = None) -> None:
        """`evaluation`: whether it is of one; None: as it is at the moment."""
        tensor_id = self._id(f"metric/{name}", "metric")
        mode = self._mode() if evaluation is None else (_EVAL if evaluation else _TRAIN)
        if mode == _EVAL:
            self._eval_names.add(f"metric/{name}")
        self.session.observe_scalar(mode, tensor_id, float(value))

    @boundary("saved tensors")
    def save(self, name: str, value: Any) -> None:
        if not isinstance(value, torch.Tensor):
            value = _array_of(value)
        if not isinstance(name, str) or value is None or _core.readable(value) == "no":
            self.session.skip()
            self._explain(
                "saved",
                f"custom/{name}"[:200],
                "what was given to traindbg.save is no dense tensor, no array and no number; "
                "there may be more of them",
            )
            return
        mode = self._mode()
        tensor_id = self._ids.get(f"custom/{name}")
        if tensor_id is None:
            tensor_id = self._id(f"custom/{name}", "other", value, always=True)
        if mode == _EVAL:
            self._eval_names.add(f"custom/{name}")
        if isinstance(value, torch.Tensor):
            self._take(mode, tensor_id, value)
        else:
            self.session.observe(mode, tensor_id, value)
