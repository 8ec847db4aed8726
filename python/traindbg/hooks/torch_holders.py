"""Finds functions where else they are held than by their owner, and puts others in their places.

`from torch.nn.functional import cross_entropy` makes a second place that holds the function, and
`self.criterion = cross_entropy` a third: replacing the attribute of `torch.nn.functional` changes
neither. These two kinds are found: the namespaces of modules that are loaded, and the attributes of
`torch.nn.Module`s. What is inside of something else (a `functools.partial`, a default argument, a
dictionary, a local variable) is not looked for.

Only dictionaries are read and written, never attributes: a module that loads its parts when they
are asked for loads nothing, and no `__setattr__` is called.
"""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    # What to put in the place of a function, by the id of that.
    Instead = Mapping[int, Callable[..., Any]]

# PyTorch's own modules are left as they are. The standard library and these packages hold none of
# its functions, and often are most of what is loaded.
_LARGE = ("matplotlib", "mpmath", "numpy", "pandas", "pyarrow", "scipy", "sklearn", "sympy")
_SKIPPED = frozenset((*sys.stdlib_module_names, *_LARGE, "torch", "traindbg")) - {"__main__"}


def swap_in_modules(instead: Instead) -> int:
    """Replaces functions in the namespaces of all modules that are loaded but PyTorch's own.

    Returns in how many places. With 4,000 modules loaded it takes some milliseconds.
    """
    count = 0
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in _SKIPPED:
            count += _swap(_namespace_of(module), instead)
    return count


def swap_in_model(model: torch.nn.Module, instead: Instead) -> int:
    """Replaces functions that the modules of a model hold as attributes. Returns how many."""
    return _swap_in(model.modules(), instead)


def swap_in_every_model(instead: Instead) -> int:
    """The same in all modules of the process, copies among them. Goes through the whole heap."""
    return _swap_in(_live_modules(), instead)


def _swap_in(modules: Iterable[torch.nn.Module], instead: Instead) -> int:
    return sum(_swap(_namespace_of(module), instead) for module in list(modules))


def _live_modules() -> Iterator[torch.nn.Module]:
    for thing in gc.get_objects():
        # type(), not isinstance(): the latter would wake up lazy proxies of other packages.
        if issubclass(type(thing), torch.nn.Module):
            yield thing


def _namespace_of(thing: Any) -> dict[str, Any] | None:
    """Its `__dict__` as it lies there; None where it has none, or an unusual one."""
    try:
        namespace = object.__getattribute__(thing, "__dict__")
    except Exception:
        return None
    return namespace if type(namespace) is dict else None


def _swap(namespace: dict[str, Any] | None, instead: Instead) -> int:
    # Copies, because other threads may be importing; and few namespaces hold any.
    if namespace is None or instead.keys().isdisjoint(map(id, tuple(namespace.values()))):
        return 0
    count = 0
    for name, value in list(namespace.items()):
        other = instead.get(id(value))
        if other is not None:
            namespace[name] = other
            count += 1
    return count
