"""A recording of this process, and the models that are watched in it.

A process has one recording at a time, and in it one watcher per model. The recording listens to
losses, backward passes and optimizer steps (`steps.patches`), and, at steps that need it, to one
forward pass (`recording.forward`). What it hears is named and handed to the native session, which
decides and reduces; see docs/design/life_of_a_step.md. Ordinary steps are handled by the native
`HotPath` and do not come here.

The recording makes its parts, begins and ends with them, and begins and ends steps; each part has a
file and a state of its own. None of them lets an exception of its own out into the training
(`base.guard`).
"""

from __future__ import annotations

import json
from typing import Any

import torch

from traindbg import _core, _plan
from traindbg._say import say
from traindbg.errors import InvalidArgument, TraindbgError, TrainingStopped
from traindbg.hooks.torch.base.ends import Ends, is_failure
from traindbg.hooks.torch.base.guard import (
    STRIKES,
    Guard,
    boundary,
    failures,
    guarded,
    hot_path_is_off,
)
from traindbg.hooks.torch.base.leaves import names_of
from traindbg.hooks.torch.base.micro_batches import MicroBatches
from traindbg.hooks.torch.base.names import is_compiled, unwrap
from traindbg.hooks.torch.base.shards import rank_of_process
from traindbg.hooks.torch.base.sources import sources
from traindbg.hooks.torch.base.tensors import Tensors
from traindbg.hooks.torch.base.unseen import Unseen
from traindbg.hooks.torch.base.watched import WatchedModels
from traindbg.hooks.torch.data.loaders import sizes
from traindbg.hooks.torch.evaluations.phases import Evaluations
from traindbg.hooks.torch.labels.forms import Computation
from traindbg.hooks.torch.labels.loader_labels import LoaderLabels
from traindbg.hooks.torch.labels.tensor_labels import TensorLabels
from traindbg.hooks.torch.losses.unanswered import Unanswered
from traindbg.hooks.torch.recording.attachment import Attachment
from traindbg.hooks.torch.recording.backward import BackwardObserver
from traindbg.hooks.torch.recording.buffers import BUFFERS, BufferObserver
from traindbg.hooks.torch.recording.compilation import Compilation
from traindbg.hooks.torch.recording.forward_sink import FORWARD_ROLES, CompanionSink, ForwardSink
from traindbg.hooks.torch.recording.loop_facts import Facts
from traindbg.hooks.torch.recording.loss_observer import ARGUMENTS, CLASSIFIERS, LossObserver
from traindbg.hooks.torch.recording.user_values import UserValues
from traindbg.hooks.torch.recording.watcher import Watcher
from traindbg.hooks.torch.steps import patches
from traindbg.hooks.torch.steps.by_hand import ByHand
from traindbg.hooks.torch.steps.drivers import SKIPPED_UNTIL_A_STEP, Drivers
from traindbg.hooks.torch.steps.in_backward import StepsInBackward
from traindbg.hooks.torch.steps.threads import Threads
from traindbg.hooks.torch.steps.weights_kept import KeptWeights
from traindbg.hooks.torch.text.rounds import rounds
from traindbg.hooks.torch.updates.corrections import Corrections
from traindbg.hooks.torch.updates.gradients import GRADIENTS_BEFORE, GradientObserver
from traindbg.hooks.torch.updates.optimizer import STATE, UPDATES, OptimizerObserver

_TRAIN = _core.TRAIN
_EVAL = _core.EVAL
_LOOP = _core.ROLE_BITS["loop"]
_BLOCK_OUTPUT = _core.ROLE_BITS["block_output"]
_CLOSE_SECONDS = 5.0
_FLUSH_SECONDS = 1.0
current: Recording | None = None  # of this process


class Recording:
    """One native session and all that listens for it. Implements `steps.patches.Listener`."""

    def __init__(self, run_dir: str, plan: str) -> None:
        self.session = _core.Session(run_dir, plan, rank_of_process())
        self.hot = _core.HotPath(self.session, torch.Tensor)
        self.guard = Guard(self.session, self.hot, self.close)
        self.watched = WatchedModels()
        self.threads = Threads(self.guard, self.hot, self.watched, self._lose)
        self.hot.due = self.session.due(_TRAIN)
        self.tensors = Tensors(self.session, self.hot)
        self._optimizers = OptimizerObserver(self.tensors)
        self._buffers = BufferObserver(self.tensors, self.watched)
        self._gradients = GradientObserver(self.tensors, self.watched)
        self._micro = MicroBatches()
        self.unseen = Unseen(self.session)
        self._evaluations = Evaluations(self.session, self.hot, self.watched, self.drain)
        of_evaluations = self.session, self.guard, self.watched, self._evaluations, Computation()
        self._facts = Facts(
            self.tensors,
            self.watched,
            self.hot,
            self.unseen,
            LoaderLabels(*of_evaluations),
            TensorLabels(*of_evaluations),
            self._compares_labels,
        )
        self.drivers = Drivers(self.tensors, self.watched, self._facts, self.hot, self._arm)
        self.by_hand = ByHand(self, self.tensors, self.watched, self.drivers, self.unseen, self.hot)
        self.drivers.by_hand = self.by_hand
        self.weights = KeptWeights(self.guard, self.tensors, self.watched, self.drivers)
        self.in_backward = StepsInBackward(self, self.hot, self._arm)
        self.compilation = Compilation(self.session, self.watched, self.unseen)
        self._facts.probes.compilation = self.compilation
        common = (
            self.guard,
            self.tensors,
            self.watched,
            self._evaluations,
            self._facts,
            self.by_hand,
        )
        of_passes = (*common, self._micro, self.compilation, self.unseen)
        self.sink, self.companion_sink = ForwardSink(*of_passes), CompanionSink(*of_passes)
        self.sink.unanswered = Unanswered(self, self.guard, self.tensors, self.watched)
        self.attachment = Attachment(
            self.guard,
            self.session,
            self.watched,
            self.sink,
            self._micro,
            self.compilation,
            self.unseen,
            self.by_hand,
        )
        self._losses = LossObserver(*common, self.drivers, self._micro, self.unseen)
        self._backward = BackwardObserver(
            self, *common, self.drivers, self._micro, self._losses, self._gradients
        )
        self.user_values = UserValues(
            self.guard, self.tensors, self._evaluations, self.unseen, self.by_hand
        )
        # Parts hear for themselves: else a step on a device would make one call more for each.
        self.loss_computed = self._losses.loss_computed
        self.loss_scaled = self._losses.loss_scaled
        self.backward_begins = self._backward.backward_begins
        self.grad_begins = self._backward.grad_begins
        self.grad_ended = self._backward.grad_ended
        self.compiler_used = self.attachment.compiler_used
        self.export_begins = self.attachment.export_begins
        self.export_ends = self.attachment.export_ends
        self.transformed = self.sink.transformed
        self.ends = Ends(self)
        self._exception: dict[str, Any] = {}  # the last one that was recorded
        self._is_stopped = False  # by the supervisor
        self._are_models_told = False
        self._is_heard_late = False  # the step under way, after its losses were computed
        self._reached = (0, True)  # when a loop ended the last time: steps, and between two
        self._corrections = Corrections(self.session, self.hot, self.watched)
        rounds.clear()  # of the parent of this process
        self._follow(plan)

    def _follow(self, plan: str) -> None:
        """Takes from a plan (its JSON) what is not asked of the session step by step."""
        words = json.loads(plan)
        self.attachment.evaluates = _plan.wants_evaluations(plan)
        self.unseen.choice = words.get("compiled", "auto")
        self._micro.are_told_apart = words.get("micro_batches") == "all"
        requirements = words.get("requirements", ())
        asked = {requirement["collection"] for requirement in requirements}
        # Rules say themselves what they could not check.
        users = (each for each in requirements if each.get("for", "user") == "user")
        asked_by_users = {requirement["collection"] for requirement in users}
        self._losses.misses_arguments = not asked_by_users.isdisjoint(("predictions", "labels"))
        self._losses.users_want_arguments = self._losses.misses_arguments
        self._losses.users_want_losses = "losses" in asked_by_users
        self.sink.misses_attention = "attention_maps" in asked
        self.companion_sink.misses_attention = self.sink.misses_attention
        may_want_blocks = bool(words.get("collections")) or "block_outputs" in json.dumps(words)
        for sink in (self.sink, self.companion_sink):
            sink.may_want_blocks = may_want_blocks
            sink.plans += 1
        for watcher in self.watched.every():
            guarded("forward", self._note_blocks, watcher)
        wants_losses = any(
            each["collection"] == "losses" and each.get("mode") in ("eval", "global")
            for each in requirements
        )
        self._facts.loader_labels.follow(wants_losses)
        self._facts.tensor_labels.follow(wants_losses)
        self._facts.are_followed = self.weights.is_followed = "loop" in asked
        self._facts.probes.follow(bool(words.get("probe", False)))
        self._corrections.follow(words.get("corrections", {}))

    def _compares_labels(self) -> bool:
        return self.drivers.is_at_the_start()

    @staticmethod
    def _note_blocks(watcher: Watcher) -> None:
        if watcher._observer is not None:
            watcher._observer.note_blocks()

    def listen(self) -> None:
        """Is told from now on; there is one such recording in a process."""
        patches.state.listen(self, self.hot, self.threads)
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
        self._look_at_this_step()

    def _look_at_this_step(self) -> None:
        """More may be due at the step under way; too late where something of it was missed."""
        if not self.hot.first_backward or self.hot.forward_seen:
            return
        self._gradients.clear()
        self.hot.due = self.session.due(_TRAIN)
        self.by_hand.step_begins()
        self.in_backward.step_begins()
        self._arm()
        guarded("forward", self.compilation.step_begins)
        for watcher in self.watched.every():
            guarded("forward", self.attachment.prepare, watcher)

    # Watchers.

    def add(
        self, model: torch.nn.Module, optimizer: torch.optim.Optimizer | None, compiled: bool
    ) -> Watcher:
        watcher = Watcher(model, self.watched.prefix_of(model), self)
        watcher._compiled = compiled or is_compiled(model)
        self.compilation.is_in_use = self.compilation.is_in_use or watcher._compiled
        self.by_hand.look()  # what trained before may be done
        self.watched.add(watcher)
        guarded("forward", self._note_blocks, watcher)
        self.hot.due |= self.session.due(_TRAIN) & _BLOCK_OUTPUT
        self._facts.unstepped.has_optimizer |= optimizer is not None
        if self.drivers.driver is None or self.drivers.driver() is None:
            self.by_hand.open(optimizer is not None)
        self._facts.forget()
        self.drivers.added_at = self.hot.steps
        self._facts.left_behind.end()
        self.drivers.expect_other()
        guarded("forward", self.compilation.step_begins)
        self.drivers.forget_strangers()
        self._arm()
        if len(self.watched.watchers) == 1:
            guarded("description", self.drivers.describe, optimizer)
        if not self.watched.is_retired(model):  # else it is found when it steps, after its pass
            guarded("forward", self.attachment.prepare, watcher)
        if self.hot.first_backward:
            is_due = bool(self.hot.due & _LOOP) and self.threads.is_alone()
            self._facts.step_begins(is_due)
        return watcher

    def add_companions(self, leader: Watcher, models: list[torch.nn.Module]) -> None:
        """Watches what an optimizer trains beside the model of `leader`."""
        names = guarded("names", names_of, models, "") or [""] * len(models)
        for model, name in zip(models, names, strict=True):
            root, runs_compiled = unwrap(model)
            if any(watcher.model is root for watcher in self.watched.every()):
                continue
            companion = Watcher(root, self.watched.prefix_of_companion(root, name), self, leader)
            companion._compiled = runs_compiled or is_compiled(model)
            self.compilation.is_in_use = self.compilation.is_in_use or companion._compiled
            self.watched.add(companion)
            guarded("forward", self._note_blocks, companion)
        if self.hot.steps == 0:
            leader.first_layer = None  # by the order of their calls
        elif leader.first_layer is None:
            leader.comes_after(0)  # it is described already
        self._facts.forget()
        self._arm()
        for watcher in self.watched.companions_of(leader):
            guarded("forward", self.attachment.prepare, watcher)

    def retire_for(self, model: torch.nn.Module, is_another: bool = False) -> bool:
        """`model` is found, and about to be trained after others; whether they are done with.

        They may be kept, in a list or a variable, and are watched no more. One that is trained
        again all the same, as in two parts of which one began earlier, is watched again by whoever
        finds it, and stays. What rules look at first is due for the training of `model`; that it is
        one is told when it steps (`Drivers`). `is_another`: those before were something else,
        however few their steps.
        """
        is_between = self.hot.steps > 0 and not self.watched.is_retired(model)
        if not is_between or not (is_another or self.drivers.was_long_enough()):
            return False
        self._evaluations.end()
        for watcher in list(self.watched.watchers):
            if watcher.is_found and watcher.model is not None and watcher.model is not model:
                self.watched.retire(watcher)
                guarded("training", self.drop, watcher)
        self.session.begin_training(False)
        rounds.clear()  # its loop may be the same, anew
        if self.hot.first_backward:
            sizes.clear()  # its loaders are others
        self._look_at_this_step()
        return True

    def drop(self, watcher: Watcher) -> None:
        """Forgets a watcher; the recording stays open."""
        self.by_hand.look()
        for companion in self.watched.companions_of(watcher):
            self.drop(companion)
        self.watched.remove(watcher)
        if self.watched.watchers:  # else it closes, or another model comes
            self._facts.forget()
        elif self._facts.are_followed and self.drivers.driver is not None:
            driver = self.drivers.driver()
            if driver is not None:
                self._facts.left_behind.begin(driver)
        watcher._forget_loss()
        if watcher._observer is not None:
            watcher._observer.disarm()
        self.drivers.forget()
        self._arm()

    def remove(self, watcher: Watcher) -> None:
        if set(self.watched.watchers) <= {watcher, *self.watched.companions_of(watcher)}:
            self._tell_of_models()  # which are watched until now
        self.drop(watcher)
        if not self.watched.watchers:
            self.close()

    def _lose(self, watchers: list[Watcher]) -> None:
        """Other threads train these models at the same time: they are watched no more."""
        self.unseen.threads()
        self._facts.clear()
        for watcher in watchers:
            watcher.detach()

    def close(self) -> None:
        """Ends the recording; waits for the writer, but not longer than the deadline."""
        global current
        if self.guard.dead:
            return
        self.by_hand.at_end()
        is_whole = not self._exception and not self._is_stopped
        if is_whole and self.hot.steps > 0:
            guarded("closing", self._facts.tell_rounds)
        self._tell_of_models()
        guarded("description", self.drivers.describe_again)
        if self.drivers.is_unstepped and not self._exception:  # interrupted, it may have one yet
            guarded("closing", self._facts.tell_unstepped)
        guarded("closing", self._facts.tell_idle_schedule, is_whole)
        guarded("closing", self.drain)  # of the last evaluation it says whether it was sampled
        guarded("closing", self._facts.tell_unsaid)
        guarded("closing", self._flush)
        if self.compilation.is_in_use and self.hot.steps == 0:
            guarded("closing", self.unseen.steps)
        self.guard.dead = True
        self.ends.close()
        self.hot.disarm()
        self.by_hand.close()
        self._corrections.close()
        self.compilation.end()
        self._gradients.clear()
        self._optimizers.clear()
        self._facts.clear()
        self.weights.clear()
        self.tensors.deferred.clear()
        self.tensors.later.clear()
        self._losses.scaled = None
        for watcher in self.watched.every():
            watcher.detach()
        if current is self:
            current = None
            patches.state.listen(None, None, None)
            patches.state.corrections = None
            sizes.clear()
            rounds.clear()
            sources.close()
            patches.release()
        guarded("closing", self.session.close, _CLOSE_SECONDS)

    def _tell_of_models(self) -> None:
        """Once, when the last model is watched no more: its weights, and its last evaluation."""
        if self.hot.steps > 0 and not self._are_models_told:
            self._are_models_told = True
            guarded("closing", self.weights.at_end, self._facts.has_evaluated_another())
            guarded("closing", self._evaluations.end)
            is_whole = not self._exception and not self._is_stopped
            if is_whole:
                guarded("closing", self._facts.ask_last_evaluation)
                guarded("closing", self.drain)  # while the models are watched
                self._facts.last_evaluation_told()

    def _flush(self) -> None:
        self.by_hand.look()
        self._evaluations.end()
        self._losses.release(at_end=True)
        self.drain()

    def record_exception(self, error: BaseException, thread: str = "") -> None:
        """An exception that ends the training, or a thread of it of this name."""
        if isinstance(error, SystemExit):
            self.record_exit(error.code, error.__context__)
            rounds.clear()  # it may have left their loop
            return
        if isinstance(error, GeneratorExit):
            return
        facts = {"type": type(error).__name__, "message": str(error)[:1000], "step": self.hot.steps}
        if thread:
            facts["thread"] = thread
        if facts != self._exception:  # who calls may be several: a trainer, a cell, the end
            self._exception = facts
            if not thread:  # whose the losses are is for the training's own to say
                self._losses.release(at_end=True)
            self.session.event("exception", json.dumps(facts))
            who = "a thread of the training" if thread else "the training"
            self.session.keep_flight(f"{who} raised {type(error).__name__}")

    def record_exit(self, code: Any, error: BaseException | None) -> None:
        """The process leaves with this, as given to `sys.exit`, while `error` is dealt with."""
        rounds.exits()
        while isinstance(error, SystemExit):
            error = error.__context__
        if not is_failure(code):
            return
        if error is not None:
            self.record_exception(error)
        else:
            number = code if isinstance(code, int) else 1  # anything else is printed
            self.session.keep_flight(f"the training left with exit code {number}")

    def loop_ended(self, error: BaseException | None = None) -> None:
        """A piece of the program ended in which models may have been trained: a cell, a `fit`.

        What it left open ends, and what it recorded can be read. The next training may have another
        optimizer, although the one that drove the steps is still there: in a variable, or in the
        traceback of an exception.
        """
        self._flush()
        reached = (self.hot.steps, self.hot.first_backward)
        if reached == self._reached:
            return  # it did not train
        self._reached = reached
        if error is not None:
            self.record_exception(error)
        self.session.flush(_FLUSH_SECONDS)
        self.drivers.expect_other()

    # What is heard (Listener); more of it by parts.

    @property
    def is_evaluating(self) -> bool:
        """Whether what the watched model computes now is of an evaluation."""
        return self._evaluations.mode() == _EVAL

    @boundary("gradients before")
    def gradients_will_change(self, parameters: list[Any]) -> None:
        if self.hot.due & GRADIENTS_BEFORE:
            self._gradients.will_change(parameters)

    @boundary("gradients before")
    def gradients_clipped(self, parameters: list[Any], norm: Any, limit: Any) -> None:
        if self.hot.due & GRADIENTS_BEFORE:
            self._gradients.changed(parameters, norm)
        if self.hot.due & _LOOP:
            self._facts.clips.clipped(parameters, limit, self.hot.first_backward)
        self.by_hand.clipped(parameters, norm)

    @boundary("gradients before")
    def gradients_unscale(self, scaler: Any, optimizer: torch.optim.Optimizer) -> None:
        if self.hot.due & GRADIENTS_BEFORE:
            self._gradients.unscales(scaler, optimizer)

    @boundary("gradients before")
    def gradients_unscaled(self, optimizer: torch.optim.Optimizer) -> None:
        if self.hot.due & GRADIENTS_BEFORE:
            self._gradients.unscaled(optimizer)

    @boundary("reductions")
    def reduced(self, tensor: Any) -> None:
        self._facts.reduced(tensor)

    @boundary("parameters")
    def modules_changed(self) -> None:
        self.watched.parts_changed()

    @boundary("parameters")
    def follow_optimized(self) -> None:
        """An optimizer is about to step that trains what no module holds."""
        self.drivers.follow_optimized()

    # Steps.

    @boundary("optimizer")
    def optimizer_will_step(self, optimizer: torch.optim.Optimizer) -> None:
        if type(optimizer).__hash__ is None:
            what = f"what {type(optimizer).__name__} optimizes"
            self.unseen.say(
                "unhashable", what, "the optimizer's class defines __eq__ but no __hash__"
            )
            return
        self.in_backward.will_step()
        guarded("sources", sources.note, "step")
        table = self.watched.tables.get(optimizer)
        is_new = table is None
        if table is None or table.is_stale or table.groups != len(optimizer.param_groups):
            table = self.drivers.learn(optimizer)
        if table is None and self._facts.left_behind.is_on:
            guarded("left behind", self._look_behind, optimizer)
        driver, last = self.drivers.driver, self.drivers.last
        if last.get() is optimizer or (driver is not None and driver() is optimizer):
            last.will_step(optimizer, driver() if driver is not None else None)
            if last.reference is not None:
                self._losses.keep_names(self.drivers.loss_ids(""))
            self._losses.release()
        else:
            has_loss = self._losses.of_another(lambda: self.drivers.name_of(optimizer))
            drives = driver() if driver is not None else None
            if table is not None and last.follows(optimizer, drives, is_new, has_loss):
                if self.hot.due & _LOOP:
                    guarded("loop", self._facts.tell_kept, optimizer, table)
                return
        if table is None or not self.hot.due:
            return
        self._evaluations.end()
        if self.hot.steps == 0:
            guarded("weights kept", self.weights.begins, optimizer)
        if self.hot.due & GRADIENTS_BEFORE:
            guarded("gradients before", self._gradients.will_step, optimizer, table)
        self._optimizers.take_parameters(optimizer, table, self.hot.due)
        if self.hot.due & UPDATES:
            guarded("optimizer state", self._optimizers.will_step, optimizer, table)
        if self.hot.due & _LOOP:
            guarded("loop", self._facts.tell_kept, optimizer, table)
            if driver is not None and driver() is optimizer:
                guarded("loop", self._facts.clips.will_step, optimizer)
        if self.drivers.driver is not None and self.drivers.driver() is optimizer:
            self.drivers.check_settings(optimizer)
            if self._facts.forgotten.is_any:
                guarded("modes", self._facts.tell_forgotten)
            if self.hot.due & _LOOP:
                self._facts.will_step(optimizer)
        elif last.get() is optimizer and driver is not None:
            self.drivers.check_last(driver())

    def _look_behind(self, optimizer: torch.optim.Optimizer) -> None:
        if self._facts.tell_left_behind(optimizer):
            self.drain()
            self.end_step()

    @boundary("optimizer state")
    def _observe_stepped(self, optimizer: torch.optim.Optimizer) -> None:
        table = None if type(optimizer).__hash__ is None else self.watched.tables.get(optimizer)
        if table is not None and not self.drivers.last.is_next(optimizer):
            self._optimizers.stepped(optimizer, table, self.hot.due)

    @boundary("gradients before")
    def _drop_gradients(self, optimizer: torch.optim.Optimizer) -> None:
        if type(optimizer).__hash__ is not None and optimizer in self.watched.tables:
            self._gradients.stepped(optimizer)

    @boundary("micro-batches")
    def step_skipped(self, optimizer: torch.optim.Optimizer) -> None:
        driver = self.drivers.driver() if self.drivers.driver is not None else None
        last = self.drivers.last.get() or driver
        if last is not None and last is not optimizer:
            return
        if last is not driver and self.hot.passes == 0:
            return  # it has stepped, by the pass of the step before
        if last is not driver and self.hot.foreign_steps > 0:  # others have stepped by this pass
            self._end_trained_step()
            return
        self._micro.step_ended()
        if driver is None:
            owned = {id(p) for group in optimizer.param_groups for p in group["params"]}
            if not self.watched.holders_of(owned):
                return  # it steps, and is none of ours
        if not self._facts.are_followed:
            return
        self.drivers.skipped += 1
        self._arm()  # the next step is no ordinary one
        if self.drivers.skipped >= SKIPPED_UNTIL_A_STEP:
            self.drain()
            self.drivers.take_skipped()
            self.end_step()

    def optimizer_stepped(self, optimizer: torch.optim.Optimizer) -> None:
        """Ends the step. Raises TrainingStopped when the supervisor asked for it."""
        if self.hot.due & (STATE | UPDATES):
            self._observe_stepped(optimizer)
        if self.hot.due & GRADIENTS_BEFORE:
            self._drop_gradients(optimizer)
        self._stop_if_asked(self._end_step_of(optimizer))

    @boundary("steps")
    def _end_step_of(self, optimizer: torch.optim.Optimizer) -> int | None:
        known = self.drivers.driver
        if known is None or type(optimizer).__hash__ is None:
            return None
        driver = known()
        ends = self.drivers.last.stepped(optimizer, driver)
        if ends is False:
            return None
        if not ends and driver is not optimizer and not self.drivers.takes_over(driver, optimizer):
            self._micro.turn_ended()
            self._losses.of_another(lambda: self.drivers.name_of(optimizer))  # of its closure
            return None
        if self.in_backward.puts_off():
            self._losses.release()
            return None
        return self._end_trained_step()

    def _end_trained_step(self) -> int:
        """Ends a step in which weights were changed."""
        self._losses.release()
        if self.drivers.between.is_on:
            guarded("checkpoints", self.drivers.between.stepped)
        guarded("description", self.drivers.describe_again)
        if self.hot.due & BUFFERS:
            guarded("buffers", self._buffers.take)
        self.drain()
        self._evaluations.step_ended()
        self.drivers.take_skipped()
        before = self.hot.due
        if before & FORWARD_ROLES:
            for watcher in self.watched.every():
                self.attachment.check(watcher)
        if self._losses.misses_arguments and before & ARGUMENTS and not self.hot.first_backward:
            self._losses.misses_arguments = self._is_heard_late
            if not self._is_heard_late:
                self.unseen.arguments()
        self._is_heard_late = False
        if self._micro.are_told_apart:
            if self._micro.number_of_turn > 1:
                self.tensors.tell("micro_batches", self._micro.number_of_turn, always=True)
            self._micro.step_ended()
        answer: int = self.hot.end_step()
        self._correct_if_asked(answer)
        self._begin_step(before, answer)
        return answer

    def backward_ended(self, retains: bool) -> None:
        """Ends the step, where optimizers stepped in the pass. Raises as above."""
        self._backward.backward_ended(retains)
        self.in_backward.look()

    def step_of_pass(self) -> None:
        """Ends a step that was made inside of a backward pass; see `steps.in_backward`."""
        self._stop_if_asked(guarded("steps", self._end_trained_step))

    def step_by_hand(self) -> int:
        """Ends a step that was found by its changed weights; see `steps.by_hand`."""
        if self.hot.due & _LOOP:
            self._facts.ends_by_hand()
        self.by_hand.take()
        return self._end_trained_step()

    def steps_before(self, losses: list[torch.Tensor], root: torch.Tensor | None) -> None:
        """Steps were made by hand before it was known what trains: these are their losses, if any.

        `root`: that of the step under way, where its pass is heard already.
        """
        self._losses.forget_held()
        if self.by_hand.is_on:
            self.drivers.trains_by_hand()
        if losses:
            self.by_hand.begin_on()
        for value in losses:
            self._losses.take_root(self.hot.count_pass(False), value)
            self.end_step()
        self._is_heard_late = True
        if root is not None:
            self._losses.take_root(self.hot.count_pass(False), root)

    def stop_by_hand(self, answer: int) -> None:
        """Raises TrainingStopped if that was asked for when such a step ended."""
        self._stop_if_asked(answer)

    def step_ended(self, answer: int) -> None:
        """The hot path ended a step after which there is something to do. Raises as above."""
        self._begin_ended_step(answer)
        self._stop_if_asked(answer)

    @boundary("steps")
    def _begin_ended_step(self, answer: int) -> None:
        self._correct_if_asked(answer)
        self._begin_step(0, answer)

    def _arm(self) -> None:
        """Tells the hot path what an ordinary step looks like now, if there is such a thing."""
        driver = self.drivers.driver() if self.drivers.driver is not None else None
        if (
            self.guard.dead
            or self.tensors.on_device_only
            or self._micro.are_told_apart
            or self.in_backward.are_made
            or self.drivers.skipped > 0
            or self.drivers.last.is_undecided
            or not self.watched.watchers
            or driver not in self.watched.tables
            or hot_path_is_off()
        ):
            self.hot.disarm()
            return
        last, rates = self.drivers.ends_steps()
        self.hot.arm(
            [watcher._model for watcher in self.watched.watchers],
            last,
            rates,
            self._losses.ids,
            CLASSIFIERS,
            self._evaluations.names,
            self.drivers.beside(),
        )

    def drain(self) -> None:
        """Brings over what waits on devices."""
        if self.hot.has_deferred:
            self.hot.has_deferred = self.drivers.between.is_on
            guarded("rows", self._facts.ask_rows)
            try:
                self.tensors.later.send()
                self.tensors.deferred.drain()
            except Exception as error:
                # The device has no memory left, say; the step ends all the same.
                self.tensors.later.clear()
                self.guard.failed("devices", error)
            self.tensors.later.deliver()
            guarded("rows", self._facts.tell_rows)

    def end_step(self) -> None:
        """Ends a step that no optimizer made."""
        before = self.hot.due
        self._losses.release(at_end=True)
        self._begin_step(before, self.hot.end_step())

    def _correct_if_asked(self, answer: int) -> None:
        """After an optimizer's step."""
        if answer & _core.CORRECTION_ASKED and self.by_hand.is_on:
            self.session.take_corrections()
            why = "no step of an optimizer is heard, of which it would be"
            self.unseen.say("corrections by hand", "the correction that was asked for", why)
        elif answer & _core.CORRECTION_ASKED:
            guarded("corrections", self._corrections.asked)
            self.listen()

    def _begin_step(self, due_before: int, answer: int) -> None:
        self.by_hand.step_begins()
        self.in_backward.step_begins()
        is_new_plan = bool(answer & _core.PLAN_CHANGED)
        if is_new_plan:
            self._follow(self.session.plan())
            self.hot.due |= self.session.due(_TRAIN) & _BLOCK_OUTPUT  # it was not known of which
            self._gradients.clear()
            self._micro.step_ended()
            self._arm()
        self._backward.overflowed, self._backward.thrown_away = None, 0
        self._losses.unreduced = None
        if not self.hot.due & _LOOP:
            self._facts.kept.clear()
        is_due = bool(self.hot.due & _LOOP) and self.threads.may_look_at_gradients()
        self._facts.step_begins(is_due)
        if failures.get("loop", 0) >= STRIKES:
            self._facts.loop.clear()
        is_off = failures.get("gradients before", 0) >= STRIKES
        if is_off or not self.hot.due & GRADIENTS_BEFORE:
            self._gradients.clear()
        if is_new_plan or (self.hot.due | due_before) & FORWARD_ROLES:
            self.compilation.step_begins()
            for watcher in self.watched.every():
                if watcher._observer is not None and watcher._observer.observing:
                    watcher._observer.disarm()
                self.attachment.prepare(watcher)

    def _stop_if_asked(self, answer: int | None) -> None:
        if answer is not None and answer & _core.STOP_REQUESTED:
            run_dir = self.session.run_directory
            bad_since = self.session.checkpoint_asked()
            if bad_since is not None:
                self._corrections.checkpoint(bad_since)
            self._is_stopped = True
            self.close()
            raise TrainingStopped(run_dir)
