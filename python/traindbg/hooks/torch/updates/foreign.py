"""Whether one of two optimizers steps by gradients that the other one's loss has left.

    critic_loss.backward()
    opt_critic.step()
    opt_critic.zero_grad()              # in place of before the pass
    (-critic(s, actor(s))).backward()   # goes through the critic, and leaves gradients there
    opt_actor.step()

What is left is added to the critic's next gradient. It is known by the order of what happens: a
pass after the critic's step found no gradients there and left some, the other optimizer stepped,
and the pass by which the critic steps found them and reached nothing of the other's. That the loss
goes through the critic on its way to the actor says the graph: a part that two losses train
together, such as a trunk with two heads, has its gradients from both on purpose.

Of an encoder and its head, which a joint loss and one of the head's own train, it does not: there
the two gradients agree, as far as a few elements tell. Kept are these, until the step. Of gradients
on a device it is known only that there are none.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch

from traindbg.hooks.torch.base.device import own_operations, version_of
from traindbg.hooks.torch.base.flow import nodes_of, same_elements
from traindbg.hooks.torch.base.later import may_read
from traindbg.hooks.torch.base.nodes import is_leaf, next_nodes
from traindbg.hooks.torch.base.shards import local_part
from traindbg.hooks.torch.updates.left_out import parameters_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traindbg.hooks.torch.base.parameters import Parameters

_MOST_WALKS = 12  # through graphs
_ELEMENTS = 256
NOTHING_LEFT = 2.0


class _Turn:
    """Of one optimizer, since its last step."""

    __slots__ = ("found", "goes_through", "is_left", "left", "other_stepped", "others")

    def __init__(self) -> None:
        self.is_left = False  # gradients, by a pass that found none
        self.goes_through: bool | None = None  # that pass, on its way to the other's parameters
        self.other_stepped = False  # after that pass
        self.found: bool | None = None  # by the latest pass: such gradients; None: not known
        self.others: tuple[int, int] | None = None  # the other's gradient before that pass
        self.left: torch.Tensor | None = None  # some of what it found


def _state_of(parameter: torch.Tensor | None) -> tuple[int, int] | None:
    """Another one after a pass that reached the parameter."""
    gradient = None if parameter is None else parameter.grad
    return None if gradient is None else (id(gradient), version_of(gradient))


class ForeignGradients:
    """One per recording, one thread."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """What comes is not what follows."""
        self._turns: weakref.WeakKeyDictionary[torch.optim.Optimizer, _Turn] = (
            weakref.WeakKeyDictionary()
        )
        self._walks = 0

    def pass_begins(self, tables: Mapping[torch.optim.Optimizer, Parameters], root: Any) -> None:
        """A backward pass begins."""
        if len(tables) != 2:
            return
        optimizers = list(tables)
        for optimizer, other in (optimizers, optimizers[::-1]):
            turn = self._turns.setdefault(optimizer, _Turn())
            has_any = _has_any(tables[optimizer].smallest)
            turn.others = _state_of(tables[other].smallest)
            if has_any is None:
                turn.found = None
                turn.is_left = False
            elif not has_any:
                turn.found, turn.is_left, turn.other_stepped = False, True, False
                turn.goes_through = self._goes_through(root, tables, optimizer, other)
            else:
                turn.found = turn.is_left and turn.other_stepped
                turn.left = _some_of(tables[optimizer].smallest) if turn.found else None

    def will_step(
        self, optimizer: torch.optim.Optimizer, tables: Mapping[torch.optim.Optimizer, Parameters]
    ) -> float | None:
        """Of its gradients, some of which are of the other one's loss: by how much those agree.

        The cosine between what that loss left and what was added; 2: nothing was left. None: that
        is not known.
        """
        turn = self._turns.pop(optimizer, None)
        if turn is None or len(tables) != 2 or optimizer not in tables:
            return None
        other = next(one for one in tables if one is not optimizer)
        others = self._turns.get(other)
        if others is not None:
            others.other_stepped = True
        if turn.found is False:
            return NOTHING_LEFT
        is_reached = _state_of(tables[other].smallest) != turn.others
        now = _some_of(tables[optimizer].smallest)
        if not turn.goes_through or is_reached or turn.left is None or now is None:
            return None
        with own_operations():
            own = now - turn.left
            size = float(own.norm() * turn.left.norm())
            return float(own @ turn.left) / size if size > 0 else None

    def _goes_through(
        self,
        root: Any,
        tables: Mapping[torch.optim.Optimizer, Parameters],
        optimizer: torch.optim.Optimizer,
        other: torch.optim.Optimizer,
    ) -> bool | None:
        if self._walks >= _MOST_WALKS or not isinstance(root, torch.Tensor):
            return None
        nodes = nodes_of(root)
        self._walks += 1
        if nodes is None:
            return None
        wanted = {id(p): of for of in (optimizer, other) for p in parameters_of(of)}
        users: dict[Any, list[Any]] = {}
        begins: list[Any] = []
        ends: set[Any] = set()
        for node, after in nodes.items():
            for one in after:
                users.setdefault(one, []).append(node)
            owner = wanted.get(id(node.variable)) if is_leaf(node) else None
            if owner is other:
                begins.append(node)
            elif owner is optimizer:
                ends.add(node)
        if not begins or not ends:
            return False
        ends = same_elements(ends, users)
        # Of all that is computed from the other's parameters: whether this one's are used in it.
        above: set[Any] = set()
        while begins:
            node = begins.pop()
            if node not in above:
                above.add(node)
                begins.extend(users.get(node, ()))
        return any(not ends.isdisjoint(next_nodes(node)) for node in above)


def _some_of(parameter: torch.Tensor | None) -> torch.Tensor | None:
    """A copy of a few elements of its gradient, where they can be read."""
    gradient = None if parameter is None else parameter.grad
    if gradient is None or not may_read(gradient) or gradient.layout is not torch.strided:
        return None
    with own_operations():
        return local_part(gradient).detach().reshape(-1)[:_ELEMENTS].to(torch.float32, copy=True)


def _has_any(parameter: torch.Tensor | None) -> bool | None:
    """Whether it has a gradient that is not 0; None where a look would wait."""
    gradient = None if parameter is None else parameter.grad
    if gradient is None:
        return False
    if not may_read(gradient):
        return None
    if gradient.layout is not torch.strided:
        return True
    with own_operations():
        return bool(local_part(gradient).any())
