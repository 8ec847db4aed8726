"""Which optimizers step the watched models, and which of them drives, so that its steps count.

It is the first one to step. Another one takes its place when it has stepped for long without it.
Where others step by the same backward pass, the last of them ends the steps (`steps.last_of_pass`).
"""

from __future__ import annotations

import json
import weakref
from typing import TYPE_CHECKING, Any

from traindbg import _core
from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.base.leaves import Optimized
from traindbg.hooks.torch.base.parameters import (
    Owner,
    Parameters,
    WeakParameters,
    base_rate,
    learning_rates,
    number_of,
    optimizer_facts,
    role_of,
)
from traindbg.hooks.torch.base.sources import sources
from traindbg.hooks.torch.steps.description import description, optimizer_description
from traindbg.hooks.torch.steps.last_of_pass import LastOfPass
from traindbg.hooks.torch.updates.between import WeightsBetween
from traindbg.hooks.torch.updates.resume import MadeAs, checkpoints, made_as
from traindbg.hooks.torch.updates.schedules import schedules

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from traindbg.hooks.torch.base.tensors import Tensors
    from traindbg.hooks.torch.base.watched import WatchedModels
    from traindbg.hooks.torch.recording.loop_facts import Facts
    from traindbg.hooks.torch.steps.by_hand import ByHand

# See `HotPath.arm`.
Beside = tuple["weakref.ref[torch.optim.Optimizer]", int, str, int, dict[int, int]]
_LOOP = _core.ROLE_BITS["loop"]
# When the optimizer that drives the steps was silent for so many steps of another one, the other
# one drives.
_STEPS_UNTIL_NEW_DRIVER = 100
_STEPS_UNTIL_TAKEN_OVER = 3
_FIRST_STEPS = 5  # at which labels are compared with the model's input
_STEPS_OF_A_TRAINING = 30  # fewer are a round of one, as of models that are copied again and again
# So many steps running that a GradScaler left out are recorded as one: else a training that makes
# no step any more would leave no trace.
SKIPPED_UNTIL_A_STEP = 10


class Drivers:
    """One per recording. Owns what is known of the optimizers, beside their parameters' tables.

    `arm` is called whenever an ordinary step looks different from now on.
    """

    def __init__(
        self,
        tensors: Tensors,
        watched: WatchedModels,
        facts: Facts,
        hot: _core.HotPath,
        arm: Callable[[], None],
    ) -> None:
        self._tensors = tensors
        self._session = tensors.session
        self._watched = watched
        self._facts = facts
        self._hot = hot
        self._arm = arm
        self.driver: weakref.ref[torch.optim.Optimizer] | None = None
        self.last = LastOfPass(watched, hot, self._ends_differ, _STEPS_UNTIL_NEW_DRIVER)
        self.by_hand: ByHand | None = None  # who finds steps while there is none
        # Those that step nothing of ours.
        self.strangers: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self.rates: tuple[float, ...] = ()  # of the driver: of all groups
        self._base_rate = 0.0  # that was told last
        self.skipped = 0  # steps that a GradScaler left out since the last one that is recorded
        # Before their first steps: see `Checkpoints.what_was_lost`.
        self._lost: weakref.WeakKeyDictionary[torch.optim.Optimizer, int] = (
            weakref.WeakKeyDictionary()
        )
        self._names: weakref.WeakKeyDictionary[torch.optim.Optimizer, str] = (
            weakref.WeakKeyDictionary()
        )
        # What losses of others are recorded as, by their names: ids by those of the plain losses.
        self._loss_ids: dict[str, dict[int, int]] = {}
        self._beside: list[Beside] | None = None  # None: to be found out
        self._made_as: MadeAs | None = None  # the optimizer that drives
        self._drove: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._made_anew = 0  # how many were made just like the one before, one after the other
        self.between = WeightsBetween()
        self._are_written = False  # the weights, between such optimizers
        self._drives_since = 0  # steps
        self._described: list[dict[str, Any]] = []  # the optimizers, as the run was told of them
        self._trainings = 0  # optimizers that drove the steps, one after the other
        self.began_at = 0  # the step with which the training of the model that is trained began
        self.added_at = 0  # the step before which a model was watched for the last time
        self._model: weakref.ref[torch.nn.Module] | None = None  # of the one that drives

    @property
    def is_unstepped(self) -> bool:
        """Whether no optimizer of a watched model has stepped."""
        return self._hot.steps == 0 and self._trainings == 0 and self.skipped == 0

    def is_at_the_start(self) -> bool:
        """Whether this is one of the first steps of a training, or of a model that is watched."""
        return self._hot.steps - max(self.began_at, self.added_at) < _FIRST_STEPS

    def forget(self) -> None:
        """Models are watched no more: what was known of their optimizers is learnt again."""
        self._watched.tables.clear()
        self.forget_strangers()
        self.driver = None
        self.last.forget()
        self.between.forget()

    def forget_strangers(self) -> None:
        """One of those that step nothing of ours may be another model's, from now on."""
        self.strangers.clear()
        self._beside = None

    def loss_ids(self, whose: str) -> dict[int, int]:
        """Ids of the losses of what has a name by `name_of`, by those of the plain losses."""
        return self._loss_ids.setdefault(whose, {})

    def ends_steps(self) -> tuple[weakref.ref[torch.optim.Optimizer] | None, list[float]]:
        """Whose steps end those of the training, and the learning rates of an ordinary one."""
        if self.last.reference is not None:
            return self.last.reference, self.last.rates()
        return self.driver, list(self.rates)

    def _ends_differ(self) -> None:
        self._beside = None
        self._arm()

    def beside(self) -> list[Beside]:
        """The optimizers that step beside the one that ends the steps, as the hot path knows them.

        Where that is not the one that drives, the losses of the one that drives keep their names.
        """
        if self._beside is None:
            driver = self.driver() if self.driver is not None else None
            last = self.last.get() if self.last.reference is not None else driver
            beside: list[Beside] = []
            for optimizer, table in self._watched.tables.items():
                if optimizer is last:
                    continue
                if optimizer is driver:
                    name, needed = "", self.last.steps_without_it
                else:
                    name, needed = self.name_of(optimizer), self._steps_needed(driver, optimizer)
                ids = self.loss_ids(name)
                beside.append((weakref.ref(optimizer), table.groups, name, needed, ids))
            for optimizer in self.strangers:
                name = self.name_of(optimizer)
                beside.append((weakref.ref(optimizer), -1, name, 0, self.loss_ids(name)))
            self._beside = beside
        return self._beside

    def table(self) -> Parameters | None:
        """What the driver answers for."""
        driver = self.driver() if self.driver is not None else None
        return self._watched.tables.get(driver) if driver is not None else None

    def smallest(self) -> tuple[torch.Tensor, str] | None:
        """The smallest parameter of what is trained, and its name."""
        self.follow_optimized()
        table = self.table()
        if table is not None and table.smallest is not None:
            return table.smallest, table.smallest_name
        return None if self.by_hand is None else self.by_hand.smallest()

    def follow_optimized(self) -> None:
        """Learns what optimizers train by now, where no module holds it; lets go what they did."""
        models = [model for model, _ in self._watched.models()]
        if any(isinstance(model, Optimized) and model.has_changed() for model in models):
            self._watched.parts_changed()
            for optimizer in list(self._watched.tables):
                self.learn(optimizer)

    def trains_by_hand(self) -> None:
        """Steps are found by changed weights from now on."""
        watchers = self._watched.watchers
        self._begin_training(watchers[-1].model if watchers else None, True, self.was_long_enough())
        self._drives_since = self._hot.steps

    def was_long_enough(self) -> bool:
        """Whether the training under way is one of its own, and not one of many short rounds."""
        return self._hot.steps - self._drives_since >= _STEPS_OF_A_TRAINING

    def _begin_training(self, model: torch.nn.Module | None, is_new: bool, is_long: bool) -> None:
        """Another one drives from now on, of `model`; `is_new`: for the first time.

        `is_long`: the one before drove for long enough.
        """
        before = None if self._model is None else self._model()
        self._model = None if model is None else weakref.ref(model)
        self._trainings += 1
        if self._trainings == 1:
            return
        if self.added_at != self._hot.steps:  # else it was forgotten then
            self._facts.forget()
        if model is not before and is_new and is_long and not self._is_back(model):
            self.began_at = self._hot.steps
            self._session.begin_training(self._facts.are_followed)
        elif is_new:
            self._session.begin_training(False)
        if self._facts.are_followed:
            # What was true of the training before is over.
            self._tensors.tell("trainings", self._trainings, always=True)

    def _is_back(self, model: torch.nn.Module | None) -> bool:
        return model is not None and self._watched.is_retired(model)

    def name_of(self, optimizer: torch.optim.Optimizer) -> str:
        """What the losses of an optimizer that does not drive are told apart by: what it steps.

        That is the part of the models that has all its parameters, or else its number.
        """
        table = self._watched.tables.get(optimizer)
        if table is None:
            return "unwatched"
        known = self._names.get(optimizer)
        if known is None:
            known = self._names[optimizer] = self._part_of(optimizer, table)
        return known

    def _part_of(self, optimizer: torch.optim.Optimizer, table: Parameters) -> str:
        owned = {id(p) for group in optimizer.param_groups for p in group["params"]}
        paths = [
            owner.path.split(".")[:-1]
            for parameter, owner in zip(table.values, table.owners, strict=True)
            if id(parameter) in owned
        ]
        common: list[str] = []
        for one, other in zip(min(paths, default=[]), max(paths, default=[]), strict=False):
            if one != other:
                break
            common.append(one)
        return ".".join(common) or f"optimizer_{1 + list(self._watched.tables).index(optimizer)}"

    def describe(self, optimizer: torch.optim.Optimizer | None) -> None:
        """Describes the models, and the optimizers with `optimizer` in front, to the run."""
        if optimizer is not None:
            sources.used("optimizer", optimizer)
        self._described = [optimizer_description(known) for known in self._known(optimizer)]
        self._tell_description()

    def describe_again(self) -> None:
        """The same with the lines that became known since, where there are any.

        The optimizers may be gone by now: what was told of them still holds. Without a model
        there is nothing to be described any more.
        """
        if sources.has_changed and self._watched.models():
            self._tell_description()

    def _tell_description(self) -> None:
        models = self._watched.models()
        self._session.describe(description(self._session.worker, models, self._described))

    def _known(self, first: torch.optim.Optimizer | None) -> list[torch.optim.Optimizer]:
        """The optimizers of the watched models that took a step, `first` in front.

        That there are several tells the rules that the losses may work against each other.
        """
        others = [known for known in self._watched.tables if known is not first]
        return ([] if first is None else [first]) + others

    def expect_other(self) -> None:
        """If another optimizer than the one that drives is the next to step, it drives then."""
        if self._hot.steps > 0:
            self._hot.foreign_steps = _STEPS_UNTIL_NEW_DRIVER

    def learn(self, optimizer: torch.optim.Optimizer) -> Parameters | None:
        """Finds out which parameters of watched models an optimizer answers for; None: none."""
        if optimizer in self.strangers:
            return None
        guarded("schedules", schedules.uses, optimizer)
        owned = {id(p) for group in optimizer.param_groups for p in group["params"]}
        holders = self._watched.holders_of(owned)
        if not holders:
            self.strangers.add(optimizer)
            self._beside = None
            self._arm()
            return None
        if self.between.is_on and optimizer not in self._drove:
            guarded("checkpoints", self._look_between, optimizer)
        driver = self.driver() if self.driver is not None else None
        if driver is not None and self._hot.foreign_steps >= _STEPS_UNTIL_NEW_DRIVER:
            self._watched.tables.pop(driver, None)  # see expect_other
            driver = None
        if driver is None:
            self._set_driver(optimizer)
        others = {
            id(p)
            for other in self._watched.tables
            if other is not optimizer
            for group in other.param_groups
            for p in group["params"]
        }
        if optimizer not in self._watched.tables and optimizer not in self._lost:
            self._lost[optimizer] = guarded("checkpoints", checkpoints.what_was_lost, optimizer)
        guarded("checkpoints", checkpoints.steps, optimizer)
        are_held = not any(isinstance(holder.model, Optimized) for holder in holders)
        table = Parameters() if are_held else WeakParameters()
        table.groups = len(optimizer.param_groups)
        latest: torch.Tensor | None = None
        for parameter, owner in self._watched.owned_by(holders):
            if id(parameter) in others or number_of(parameter) == 0 or parameter is latest:
                continue
            latest = parameter
            self._learn_parameter(table, parameter, owner)
            in_turn = id(parameter) in owned and parameter.requires_grad
            smallest = table.smallest
            if in_turn and (smallest is None or parameter.numel() < smallest.numel()):
                table.is_smallest(parameter, owner.path)
        is_new = optimizer not in self._watched.tables
        self._watched.tables[optimizer] = table
        self._beside = None
        self._arm()
        driver = self.driver() if self.driver is not None else None
        if is_new and driver is not None and driver is not optimizer:
            guarded("description", self.describe, driver)
        return table

    def _learn_parameter(
        self, table: Parameters, parameter: torch.nn.Parameter, owner: Owner
    ) -> None:
        role = role_of(owner.path)
        weight = self._tensors.tensor_id(f"{role}/{owner.path}", role, parameter, owner)
        # Of a distributed one the placement may be another than the parameter's.
        gradient = parameter if parameter.grad is None else parameter.grad
        name = f"gradient/{owner.path}"
        table.add(
            parameter, owner, weight, self._tensors.tensor_id(name, "gradient", gradient, owner)
        )

    def takes_over(
        self, driver: torch.optim.Optimizer | None, optimizer: torch.optim.Optimizer
    ) -> bool:
        """Whether `optimizer`, which has stepped, drives from now on in place of `driver`.

        It does after so many of its steps in a row. One that has all of the driver's parameters
        takes its place: another stage, another epoch. The one before may live on in a cycle with
        its schedule.
        """
        if optimizer not in self._watched.tables:
            return False
        self._hot.foreign_steps += 1
        if driver is not None:
            if self._hot.foreign_steps < self._steps_needed(driver, optimizer):
                return False
            self._watched.tables.pop(driver, None)  # it is done; if not, it is learnt again
            # What it shares with that is its own now.
            if optimizer in self._watched.tables:  # unless the two are equal to each other
                self._watched.tables[optimizer].is_stale = True
        guarded("optimizer", self._set_driver, optimizer)
        return True

    def _steps_needed(
        self, driver: torch.optim.Optimizer | None, optimizer: torch.optim.Optimizer
    ) -> int:
        """After so many steps in a row another optimizer than the driver drives."""
        if driver is None or optimizer in self._drove:  # it comes back: they take turns
            return _STEPS_UNTIL_NEW_DRIVER
        owned = {id(p) for group in optimizer.param_groups for p in group["params"]}
        has_all = all(id(p) in owned for group in driver.param_groups for p in group["params"])
        return _STEPS_UNTIL_TAKEN_OVER if has_all else _STEPS_UNTIL_NEW_DRIVER

    def _set_driver(self, optimizer: torch.optim.Optimizer) -> None:
        self.driver = weakref.ref(optimizer)
        self.last.forget()
        self._beside = None
        if self.by_hand is not None:
            self.by_hand.close()
        was_long = self.was_long_enough()
        made, before = made_as(optimizer), self._made_as
        self._made_as = made
        is_new = optimizer not in self._drove
        self._drove.add(optimizer)
        is_alike = is_new and made is not None and before is not None and made.is_like(before)
        self._are_written = self._are_written and is_alike
        self._made_anew = self._made_anew + 1 if is_alike and not self._are_written else 0
        if self._made_anew > 0 and self._facts.are_followed:
            # Whether the weights went on as well, or began anew, the loss tells.
            self._tensors.tell("optimizer_made_anew", self._made_anew, always=True)
        guarded("checkpoints", self._begin_between, optimizer)
        owned = {id(p) for group in optimizer.param_groups for p in group["params"]}
        holders = self._watched.holders_of(owned)
        leader = next((watcher for watcher in holders if watcher.leader is None), None)
        self._begin_training(None if leader is None else leader.model, is_new, was_long)
        self._hot.foreign_steps = 0
        self.rates = learning_rates(optimizer)
        self._arm()
        guarded("description", self.describe, optimizer)
        guarded("checkpoints", self._tell_lost_state, optimizer)

    def _begin_between(self, optimizer: torch.optim.Optimizer) -> None:
        """The first one that is made anew drives: what is written before the next one is told."""
        if self._made_anew == 1 and self._facts.are_followed:
            parameters = [p for group in optimizer.param_groups for p in group["params"]]
            self.between.begin(parameters, self._hot.steps - self._drives_since)
            self._hot.has_deferred = True  # ends of steps are no ordinary ones
        else:
            self.between.forget()
        self._drives_since = self._hot.steps

    def _look_between(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer is about to make its first step."""
        made = made_as(optimizer)
        if made is not None and self._made_as is not None and made.is_like(self._made_as):
            self._are_written = self.between.end()

    def _lost_of(self, optimizer: torch.optim.Optimizer) -> int:
        """See `Checkpoints.what_was_lost`; asked before the optimizer's first step."""
        lost = self._lost.get(optimizer)
        if lost is None:
            lost = self._lost[optimizer] = checkpoints.what_was_lost(optimizer)
        return lost

    def _tell_lost_state(self, optimizer: torch.optim.Optimizer) -> None:
        """Whether it begins anew where an optimizer was that is not loaded."""
        lost = self._lost_of(optimizer)
        if self._facts.are_followed and (lost or self._trainings == 1):
            self._tensors.tell("optimizer_state_lost", lost, always=True)
        checkpoints.drives(optimizer)

    def check_settings(self, optimizer: torch.optim.Optimizer) -> None:
        """The driver is about to step: tells its learning rate, and what changed."""
        rates = learning_rates(optimizer)
        is_due = rates != self.rates or self._hot.due & _LOOP
        if rates and self._facts.are_followed and is_due:
            # The largest of all groups. Also at steps that are not due: no change is missed.
            self._tensors.tell("learning_rate", max(rates), always=True)
            base = base_rate(optimizer)
            if base != self._base_rate:
                self._base_rate = base
                self._tensors.tell("learning_rate_base", base, always=True)
        if rates != self.rates:
            if self._facts.are_followed:
                guarded("schedules", self._facts.tell_plateau, optimizer)
            self.rates = rates
            self._arm()
            facts = optimizer_facts(optimizer) | {"step": self._hot.steps}
            self._session.event("optimizer", json.dumps(facts))
        if self._lost.get(optimizer) and checkpoints.was_given(optimizer):
            self._lost[optimizer] = 0  # later than its first step
            self._tensors.tell("optimizer_state_lost", 0, always=True)

    def check_last(self, driver: torch.optim.Optimizer | None) -> None:
        """The last one of a pass is about to step: tells of the driver what the hot path missed."""
        if driver is not None:
            self.last.check(driver)
            if learning_rates(driver) != self.rates:
                self.check_settings(driver)

    def take_skipped(self) -> None:
        """A step ends: tells how many were left out before it."""
        skipped, self.skipped = self.skipped, 0
        if skipped:
            self._tensors.tell("skipped_steps", skipped, always=True)
            self._arm()
