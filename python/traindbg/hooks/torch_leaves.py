"""Tensors that are trained without a module that holds them, as a module that can be watched.

What a loss's graph ends in tells them. Their names are those of the variables, attributes, keys and
places of lists that hold them; a local variable of a function shows no name.
"""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, Any

import torch

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


_MOST_NAMED = 32  # each is looked for among all objects


def names_of(leaves: Sequence[Any], otherwise: str = "tensor") -> list[str]:
    """What holds them calls them. Goes through all objects.

    What has no name, as a local variable of a function has none, is called by its number, as
    `tensor0`; where `otherwise` is empty, nothing.
    """
    names: list[str] = []
    lists: dict[int, str] = {}
    for number, leaf in enumerate(leaves):
        if number >= _MOST_NAMED:
            names.append(otherwise and f"{otherwise}{number}")
            continue
        others = [holder for holder in gc.get_referrers(leaf) if holder is not leaves]
        name, holder = held_as(leaf, others)
        if holder is not None:
            name = ""
            for each in others:  # lists: that of a variable or an attribute
                if type(each) is list or type(each) is tuple:
                    if id(each) not in lists:
                        found, outer = held_as(each, gc.get_referrers(each))
                        lists[id(each)] = "" if outer is not None else found
                    if lists[id(each)] and not name:
                        place = next(at for at, value in enumerate(each) if value is leaf)
                        name = f"{lists[id(each)]}.{place}"
            each = None
        del others, holder
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
