"""The optimizer that steps last, where several step by one backward pass: it ends the steps.

    loss.backward()
    sparse.step()
    dense.step()

The first one to step drives: facts and learning rates are told of it. But what the others do
belongs to the same pass, so the step ends with the last of them. It is found by its first two
steps: each comes after the one that drives has ended a step, and nothing was computed since. So
of the first two steps its updates, state and rates are missing. Those that take turns (GANs) have a
backward pass each, and those that step at some passes only are none.

It is none any more when the one that drives has stepped several times without it, or after another
pass than it.

Keeps weak references to optimizers.
"""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING

from traindbg.hooks.torch.base.parameters import learning_rates

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch
    from torch.optim import Optimizer

    from traindbg import _core
    from traindbg.hooks.torch.base.watched import WatchedModels


def _owned(optimizer: Optimizer) -> dict[int, torch.Tensor]:
    return {id(p): p for group in optimizer.param_groups for p in group["params"]}


def _is_scheduled(optimizer: Optimizer) -> bool:
    return any("initial_lr" in group for group in optimizer.param_groups)


class LastOfPass:
    """One per recording. `arm` is called when another one, or none any more, ends the steps.

    `steps_expected` stands in `HotPath.foreign_steps` where another optimizer may drive next.
    """

    def __init__(
        self,
        watched: WatchedModels,
        hot: _core.HotPath,
        arm: Callable[[], None],
        steps_expected: int,
    ) -> None:
        self._watched = watched
        self._hot = hot
        self._arm = arm
        self._steps_expected = steps_expected
        self._given_up: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self.forget()

    def forget(self) -> None:
        """Another optimizer drives, or none: what was found does not hold."""
        self.reference: weakref.ref[Optimizer] | None = None
        # Those that have stepped so once; the last of them is the one, if they do so once more.
        self._next: dict[int, weakref.ref[Optimizer]] = {}  # by id
        self._next_since = 0  # steps, when they did
        # When the one that drives was about to step, if that was heard: steps and backward passes.
        self._driven_at = (-1, 0)
        self._is_first = False  # it stepped before the one that drives
        self._takes_turns = False  # with the one that drives
        self._rates: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())  # the driver's, its own
        self._is_told_of_all = False

    def get(self) -> Optimizer | None:
        """None: the one that drives ends the steps."""
        return None if self.reference is None else self.reference()

    @property
    def steps_without_it(self) -> int:
        """After so many steps of others without it, it ends none any more."""
        return len(self._watched.tables) + 1

    def rates(self) -> list[float]:
        """With which its step is an ordinary one."""
        own = self._rates[1]
        # The hot path looks at no others: where those of the driver alone change, none is ordinary.
        return [math.nan] * len(own) if self._is_told_of_all else list(own)

    @property
    def is_undecided(self) -> bool:
        """Whether the steps of all of them have to be heard."""
        return bool(self._next)

    def is_next(self, optimizer: Optimizer) -> bool:
        """Whether `follows` said so of the step that it makes."""
        known = self._next.get(id(optimizer))
        return known is not None and known() is optimizer

    def follows(
        self, optimizer: Optimizer, driver: Optimizer | None, is_new: bool, has_loss: bool
    ) -> bool:
        """An optimizer is about to step that ends no steps up to now.

        `is_new`: for the first time; `has_loss`: losses were computed since another one stepped.
        True: it does so by the backward pass of the step that has ended, and all that could be
        taken of it was taken then.
        """
        hot = self._hot
        is_same = not has_loss and hot.passes == 0 and hot.first_backward and not hot.forward_seen
        if self.is_next(optimizer):
            if is_same and hot.steps <= self._next_since + 1:
                return True
            self._give_up()
            return False
        if not is_new or not is_same or hot.steps == 0 or hot.foreign_steps > 0:
            return False
        if driver is None or driver is optimizer or optimizer in self._given_up:
            return False
        own = _owned(optimizer)
        if not own.keys().isdisjoint(_owned(driver)):
            return False
        if all(parameter.grad is None for parameter in own.values()):
            return False
        if self._next and hot.steps > self._next_since:
            return False
        self._next.pop(id(optimizer), None)  # of one that is gone
        self._next[id(optimizer)] = weakref.ref(optimizer)
        self._next_since = hot.steps
        self._arm()
        return True

    def will_step(self, optimizer: Optimizer, driver: Optimizer | None) -> None:
        """The one that drives, or this one, is about to step."""
        if self.reference is None:
            return
        now = self._hot.steps, self._hot.passes
        if optimizer is not driver:
            self._takes_turns |= self._driven_at[0] == now[0] and self._driven_at != now
        elif self._takes_turns:
            self._give_up()
        elif self._hot.first_backward:
            self._is_first = True
            self._hot.disarm()  # the end of its step is to be heard
        else:
            self._driven_at = now

    def check(self, driver: Optimizer) -> None:
        """It is about to step: notes the rates."""
        own = self.get()
        if own is None:
            return
        rates = learning_rates(driver), learning_rates(own)
        before, self._rates = self._rates, rates
        if rates[0] != before[0] and rates[1] == before[1]:
            self._is_told_of_all = True
        if rates != before:
            self._arm()

    def stepped(self, optimizer: Optimizer, driver: Optimizer | None) -> bool | None:
        """Whether the step ends now. None: this says nothing of that."""
        hot = self._hot
        if driver is not None and self.is_next(optimizer):
            if hot.steps > self._next_since and next(reversed(self._next)) == id(optimizer):
                self._begin(optimizer, driver)
            return False
        if self._next and optimizer is driver and hot.steps > self._next_since:
            self._give_up()  # its next step without them
        own = self.get()
        if own is None or driver is None:
            if self.reference is not None:
                self.forget()
                self._arm()
            return None
        if optimizer is own:
            return True
        if optimizer is not driver:
            return None
        if self._is_first:
            self._give_up()
            return False
        is_expected = hot.foreign_steps >= self._steps_expected
        hot.foreign_steps = 1 if is_expected else hot.foreign_steps + 1
        if hot.foreign_steps >= self.steps_without_it:
            self._give_up()
            return True
        return False

    def _begin(self, optimizer: Optimizer, driver: Optimizer) -> None:
        self.forget()
        self.reference = weakref.ref(optimizer)
        self._rates = learning_rates(driver), learning_rates(optimizer)
        self._is_told_of_all = _is_scheduled(driver) and not _is_scheduled(optimizer)
        table = self._watched.tables.get(driver)
        if table is not None:
            table.is_stale = True  # what the two have was its alone
        self._arm()

    def _give_up(self) -> None:
        for known in (self.get(), *(each() for each in self._next.values())):
            if known is not None:
                self._given_up.add(known)
        self.forget()
        self._arm()
