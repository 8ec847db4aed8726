"""Tensors that are trained without a module that holds them, as a module that can be watched.

What a loss's graph ends in tells them, or the optimizers that have them. Their names are those of
the variables, attributes, keys and places of lists that hold them; a local variable of a function
shows no name.
"""

from __future__ import annotations

import gc
import re
import threading
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.parameter import is_lazy

from traindbg import _core
from traindbg.hooks.torch.base.nodes import is_leaf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_MOST_NODES = 30_000


def leaves_of(roots: Any, with_complex: bool = False) -> list[torch.Tensor]:
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
            is_wanted = isinstance(leaf, torch.Tensor) and leaf.is_leaf
            if is_wanted and (leaf.is_floating_point() or (with_complex and leaf.is_complex())):
                leaves.append(leaf)
            continue
        for after, _ in node.next_functions:
            if after is not None and after not in seen:
                seen.add(after)
                nodes.append(after)
    return leaves[::-1]


_MOST_NAMED = 32
_MOST_CHANGES = 1024
_MOST_GROWTHS = 32  # of which others are there, and not only in the places of those before
_MOST_HELD = 4096  # by one dict or list that is gone through
_NAME = re.compile(r"(\w+\.)*[^\W\d]\w*")  # also `0.weight`


class _Holders:
    """What some things are called by those that hold them. Goes through all objects, once."""

    def __init__(self, things: Sequence[Any]) -> None:
        self.keys: dict[int, str] = {}  # of a thing, by its id: a variable or a key of a dict
        self.fields: dict[int, str] = {}
        self.lists: dict[int, list[tuple[Any, int]]] = {}  # with the place
        wanted = {id(thing) for thing in things}
        for holder in gc.get_referrers(*things) if wanted else ():
            if holder is things:
                continue
            if type(holder) is dict:
                self._add(self.keys, holder, wanted)
            elif type(holder) is list or type(holder) is tuple:
                for place, value in enumerate(holder if len(holder) <= _MOST_HELD else ()):
                    if id(value) in wanted:
                        self.lists.setdefault(id(value), []).append((holder, place))
            elif not isinstance(holder, (torch.Tensor, type)):
                fields = getattr(holder, "__dict__", None)
                if type(fields) is dict:
                    self._add(self.fields, fields, wanted)

    @staticmethod
    def _add(names: dict[int, str], held: dict[Any, Any], wanted: set[int]) -> None:
        for key, value in list(held.items()) if len(held) <= _MOST_HELD else ():
            if id(value) in wanted and isinstance(key, str) and _NAME.fullmatch(key):
                names.setdefault(id(value), key)

    def name_of(self, thing: Any) -> str:
        return self.keys.get(id(thing), "") or self.fields.get(id(thing), "")


def names_of(leaves: Sequence[Any], otherwise: str = "tensor") -> list[str]:
    """What holds them calls them. Goes through all objects, twice.

    What has no name, as a local variable of a function has none, is called by its number, as
    `tensor0`; where `otherwise` is empty, nothing.
    """
    named = leaves[:_MOST_NAMED]
    holders = _Holders(named)
    lists = {id(held): held for leaf in named for held, _ in holders.lists.get(id(leaf), [])}
    of_lists = _Holders(list(lists.values()))
    names: list[str] = []
    for number, leaf in enumerate(leaves):
        name = holders.name_of(leaf) if number < _MOST_NAMED else ""
        if not name:
            places = [
                f"{of_lists.name_of(held)}.{place}"
                for held, place in holders.lists.get(id(leaf), [])
                if of_lists.name_of(held) not in ("", "params")  # an optimizer's group has that
            ]
            name = places[0] if places else otherwise and f"{otherwise}{number}"
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
    it fits. Such a tensor has the name of the one whose place it took. It keeps none alive, and
    looks for others only in the thread that made it. `naming(leaves)` says what new ones are
    called, by numbers if need be.
    """

    def __init__(
        self,
        optimizers: Sequence[torch.optim.Optimizer],
        naming: Callable[[Sequence[torch.Tensor]], list[str]],
    ) -> None:
        super().__init__([], [])
        self._naming = naming
        self._thread = threading.get_ident()
        self._optimizers = [weakref.ref(optimizer) for optimizer in optimizers]
        self._changes = 0
        self._ids: list[list[int]] = []  # of what is in the groups, when it was asked
        self._has_lost = False
        self.has_changed()

    def follow(self, leaves: Sequence[torch.Tensor]) -> bool:
        """Nothing: the end of one graph need not be all that they train."""
        return False

    def add(self, optimizer: torch.optim.Optimizer) -> None:
        """Trains some of it, too, or in the place of one before."""
        alive = [known for known in self._optimizers if known() is not None]
        if all(known() is not optimizer for known in alive):
            alive.append(weakref.ref(optimizer))
        self._optimizers = alive

    def has_changed(self) -> bool:
        """Whether the optimizers were given other tensors since it was asked for the last time."""
        if threading.get_ident() != self._thread:
            return False
        alive = [optimizer for known in self._optimizers if (optimizer := known()) is not None]
        groups = [group["params"] for optimizer in alive for group in optimizer.param_groups]
        ids = [list(map(id, parameters)) for parameters in groups]
        if not alive or (ids == self._ids and not self._has_lost):
            return False  # where all are gone, others may come
        self._ids, self._has_lost = ids, False
        trained = (leaf for optimizer in alive for leaf in optimized_by(optimizer))
        leaves = list({id(leaf): leaf for leaf in trained}.values())
        is_as_long = len(leaves) == len(self._leaves)
        if is_as_long and all(map(_is, self._leaves, leaves)):
            return False
        self._changes += 1
        if not self._is_followed(len(leaves)):
            return False
        if not is_as_long:
            known = {id(leaf): name for name, leaf in self.named_parameters()}
            new = [leaf for leaf in leaves if id(leaf) not in known]
            known.update(zip(map(id, new), self._new_names(new, set(known.values())), strict=True))
            self._names = [known[id(leaf)] for leaf in leaves]
        self._leaves = [weakref.ref(leaf, self._lost) for leaf in leaves]
        self._shapes = [leaf.shape for leaf in leaves]
        return True

    def _lost(self, _: object) -> None:
        """One is gone: another one may have its id."""
        self._has_lost = True

    def _is_followed(self, count: int) -> bool:
        """Each time all are learnt anew: later only where many more or fewer are there."""
        before = len(self._leaves)
        if count == before:
            return self._changes <= _MOST_CHANGES
        return self._changes <= _MOST_GROWTHS or not before <= 2 * count <= 4 * before

    def _new_names(self, leaves: Sequence[torch.Tensor], taken: set[str]) -> Iterator[str]:
        for name in self._naming(leaves):
            free, number = name, 2
            while free in taken:
                free, number = f"{name}#{number}", number + 1
            taken.add(free)
            yield free


class OptimizedInputs(Optimized):
    """The same where there are models with parameters: it may be what these are given.

    An image, say, or a code. Its rows are no units of a layer, and it may be there to raise a loss.
    """


def _is(known: weakref.ref[torch.Tensor], leaf: torch.Tensor) -> bool:
    return known() is leaf


def are_models_beside() -> bool:
    """Whether there is a module with parameters. Goes through all objects."""
    modules: list[torch.nn.Module] = _core.instances_of(torch.nn.Module)
    return any(vars(module).get("_parameters") for module in modules)


def optimized_by(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """The tensors of real or complex numbers that it trains."""
    held = (parameter for group in optimizer.param_groups for parameter in group["params"])
    return [parameter for parameter in held if _is_trainable(parameter)]


def may_be_trained(tensor: torch.Tensor) -> bool:
    """By an optimizer; also what has no shape yet."""
    return is_lazy(tensor) or _is_trainable(tensor)


def _is_trainable(tensor: torch.Tensor) -> bool:
    return (tensor.is_floating_point() or tensor.is_complex()) and not is_lazy(tensor)
