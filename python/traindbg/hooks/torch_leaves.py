"""Tensors that are trained without a module that holds them, as a module that can be watched.

What a loss's graph ends in tells them, or the optimizers that have them. Their names are those of
the variables, attributes, keys and places of lists that hold them; a local variable of a function
shows no name.
"""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, Any

import torch

from traindbg import _core
from traindbg.hooks.torch_nodes import is_leaf

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MOST_NODES = 30_000


def leaves_of(roots: Any) -> list[torch.Tensor]:
    """What gradients of `roots`, a tensor or some, lead to: those nearest the inputs first."""
    tensors = roots if isinstance(roots, (list, tuple)) else [roots]
    nodes = [root.grad_fn for root in tensors if isinstance(root, torch.Tensor)]
    nodes = [node for node in nodes if node is not None]
    seen = set(nodes)
    leaves: list[torch.Tensor] = []
    while nodes and len(seen) <= _MOST_NODES:
        node = nodes.pop()
        if is_leaf(node):
            leaf = node.variable
            if isinstance(leaf, torch.Tensor) and leaf.is_leaf and leaf.is_floating_point():
                leaves.append(leaf)
            continue
        for after, _ in node.next_functions:
            if after is not None and after not in seen:
                seen.add(after)
                nodes.append(after)
    return leaves[::-1]


def held_as(thing: Any, holders: Sequence[Any]) -> tuple[str, Any]:
    """Under which name one of these holds the thing; the list that does, where it has no name."""
    for holder in holders:
        if type(holder) is dict:
            for key, value in list(holder.items()):
                if value is thing and isinstance(key, str) and key.isidentifier():
                    return key, None
    for holder in holders:
        fields = getattr(holder, "__dict__", None)
        if type(fields) is dict and not isinstance(holder, (torch.Tensor, type)):
            for key, value in list(fields.items()):
                if value is thing:
                    return key, None
    for holder in holders:
        if type(holder) is list or type(holder) is tuple:
            for number, value in enumerate(holder):
                if value is thing:
                    return str(number), holder
    return "", None


_MOST_NAMED = 32


def names_of(leaves: Sequence[Any], otherwise: str = "tensor") -> list[str]:
    """What holds them calls them. Goes through all objects.

    What has no name, as a local variable of a function has none, is called by its number, as
    `tensor0`; where `otherwise` is empty, nothing.
    """
    names: list[str] = []
    lists: dict[int, str] = {}
    others = gc.get_referrers(*leaves[:_MOST_NAMED]) if leaves else []
    others = [holder for holder in others if holder is not leaves]
    for number, leaf in enumerate(leaves):
        if number >= _MOST_NAMED:
            names.append(otherwise and f"{otherwise}{number}")
            continue
        name, holder = held_as(leaf, others)
        if holder is not None:
            name = ""
            for each in others:  # lists: that of a variable or an attribute
                is_list = type(each) is list or type(each) is tuple
                if is_list and any(value is leaf for value in each):
                    if id(each) not in lists:
                        found, outer = held_as(each, gc.get_referrers(each))
                        lists[id(each)] = "" if outer is not None else found
                    if lists[id(each)] and not name:
                        place = next(at for at, value in enumerate(each) if value is leaf)
                        name = f"{lists[id(each)]}.{place}"
            each = None
        del holder
        name = name or (otherwise and f"{otherwise}{number}")
        names.append(name if name not in names or not name else f"{name}#{number}")
    return names


class Leaves(torch.nn.Module):  # type: ignore[misc]
    """Some leaves as if they were the parameters of a module. It keeps none of them alive."""

    def __init__(self, leaves: Sequence[torch.Tensor], names: Sequence[str]) -> None:
        super().__init__()
        self._names = list(names)
        self._leaves = [weakref.ref(leaf) for leaf in leaves]
        self._shapes = [leaf.shape for leaf in leaves]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Those that are alive."""
        for name, known in zip(self._names, self._leaves, strict=True):
            leaf = known()
            if leaf is not None:
                yield name, leaf

    def follow(self, leaves: Sequence[torch.Tensor]) -> bool:
        """Takes those that took the places of the ones before; whether there are any."""
        if [leaf.shape for leaf in leaves] != self._shapes:
            return False
        if all(known() is leaf for known, leaf in zip(self._leaves, leaves, strict=True)):
            return False
        self._leaves = [weakref.ref(leaf) for leaf in leaves]
        return True


class Optimized(Leaves):
    """What optimizers train at the moment, as if it were the parameters of a module.

    A program may give them others in the place of those, as one does that splits and removes what
    it fits. Such a tensor has the name of the one whose place it took. It keeps none alive.
    """

    def __init__(self, optimizers: Sequence[torch.optim.Optimizer]) -> None:
        super().__init__([], [])
        modules: list[torch.nn.Module] = _core.instances_of(torch.nn.Module)
        tables = [vars(module).get("_parameters") for module in modules]
        self.is_beside_models = any(tables)  # that have parameters, which others may train
        self._optimizers = [weakref.ref(optimizer) for optimizer in optimizers]
        self.has_changed()

    def follow(self, leaves: Sequence[torch.Tensor]) -> bool:
        """Nothing: the end of one graph need not be all that they train."""
        return False

    def has_changed(self) -> bool:
        """Whether the optimizers were given other tensors since it was asked for the last time."""
        leaves = self._now()
        is_as_long = len(leaves) == len(self._leaves)
        if is_as_long and all(map(_is, self._leaves, leaves)):
            return False
        if not is_as_long:
            known = {id(leaf): name for name, leaf in self.named_parameters()}
            new = [leaf for leaf in leaves if id(leaf) not in known]
            known.update(zip(map(id, new), self._new_names(new, set(known.values())), strict=True))
            self._names = [known[id(leaf)] for leaf in leaves]
        self._leaves = [weakref.ref(leaf) for leaf in leaves]
        self._shapes = [leaf.shape for leaf in leaves]
        return True

    def _now(self) -> list[torch.Tensor]:
        alive = [optimizer for known in self._optimizers if (optimizer := known()) is not None]
        return list({id(leaf): leaf for each in alive for leaf in optimized_by(each)}.values())

    @staticmethod
    def _new_names(leaves: Sequence[torch.Tensor], taken: set[str]) -> Iterator[str]:
        for name in names_of(leaves):
            free, number = name, 2
            while free in taken:
                free, number = f"{name}#{number}", number + 1
            taken.add(free)
            yield free


def _is(known: weakref.ref[torch.Tensor], leaf: torch.Tensor) -> bool:
    return known() is leaf


def optimized_by(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """The tensors of numbers that it trains."""
    held = (parameter for group in optimizer.param_groups for parameter in group["params"])
    return [parameter for parameter in held if parameter.is_floating_point()]
