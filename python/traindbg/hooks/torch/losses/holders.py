"""Where a model holds a tensor that is no parameter of it: in a list, dict or object."""

from __future__ import annotations

import itertools
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from traindbg.hooks.torch.base.nodes import is_leaf, next_nodes
from traindbg.hooks.torch.updates.resume import are_fresh

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_BACK = 8  # nodes between a leaf and its view
_MOST_HELD = 1000  # things in a list or dict that are looked at
_MOST_LOOKS = 10_000  # of an attribute, whatever it holds


def _fields(value: Any) -> dict[str, Any] | None:
    """The attributes of an object of a class of the user's own; None: it is something else.

    Asked past what its class has to say about that: proxies would wake up.
    """
    kind = type(value)
    if issubclass(kind, (nn.Module, torch.Tensor, type, torch.optim.Optimizer, ModuleType)):
        return None
    home = kind.__dict__.get("__module__")  # a class may have another idea of it
    if type(home) is not str or home.partition(".")[0] in ("builtins", "functools", "torch"):
        return None
    try:
        fields = object.__getattribute__(value, "__dict__")
    except (AttributeError, TypeError):
        return None
    return fields if type(fields) is dict and len(fields) <= _MOST_HELD else None


def _key(key: Any) -> str:
    """As code would ask for it, of keys that have no say in that."""
    return f"[{key!r}]" if type(key) in (str, int) else f"[a {type(key).__name__}]"


def _held(value: Any, depth: int, seen: set[int]) -> Iterator[tuple[str, Any, bool]]:
    """What lists, dicts and plain objects hold: where (`[0]`, `['key']`, `.name`), and it.

    The last is whether an object is among those that hold it. `seen`: ids of objects; each is
    looked into once.
    """
    items: list[tuple[str, Any]]
    is_object = False
    kind = type(value)  # `isinstance` would ask a proxy for its class
    if issubclass(kind, (list, tuple)):
        items = [(f"[{key}]", item) for key, item in enumerate(value[:_MOST_HELD])]
    elif issubclass(kind, dict) and len(value) <= _MOST_HELD:
        items = [(_key(key), item) for key, item in list(value.items())]
    elif id(value) not in seen and (fields := _fields(value)) is not None:
        seen.add(id(value))
        items = [(f".{key}", item) for key, item in list(fields.items())]
        is_object = True
    else:
        return
    for key, item in items:
        is_deeper = False
        if depth > 0 and not issubclass(type(item), (torch.Tensor, nn.Module)):
            for where, inner, is_in_object in _held(item, depth - 1, seen):
                is_deeper = True
                yield f"{key}{where}", inner, is_object or is_in_object
        if not is_deeper:
            yield key, item, is_object


def _is_made_of(value: Any, leaf: torch.Tensor) -> bool:
    """Whether a tensor is made of a leaf and of nothing else."""
    node = value.grad_fn if issubclass(type(value), torch.Tensor) else None
    for _ in range(_MOST_BACK):
        if node is None:
            return False
        if is_leaf(node):
            return node.variable is leaf
        after = next_nodes(node)
        node = after[0] if len(after) == 1 else None
    return False


def holder_of(leaf: torch.Tensor, model: nn.Module) -> str:
    """Where a module of `model` holds a leaf unknown to PyTorch: in a list or dict, or plainly.

    Also a view of one, as of `nn.Parameter(...).unsqueeze(0)`, and one in an object whose class is
    no module. Empty where none does. A module that was hidden as an attribute is not looked into,
    and one that such an object holds, only if its weights are as an initialiser drew them: a loaded
    network is kept out of the model that way, on purpose.
    """
    seen: set[int] = set()
    for path, module in model.named_modules():
        where = f"{path}." if path else ""
        for name, value in list(vars(module).items()):
            if name in ("_parameters", "_buffers", "_modules") or name.endswith("_hooks"):
                continue
            if value is leaf or _is_made_of(value, leaf):
                return f"{where}{name}"
            for inside, item, is_in_object in itertools.islice(_held(value, 2, seen), _MOST_LOOKS):
                if item is leaf or _is_made_of(item, leaf):
                    return f"{where}{name}{inside}"
                if issubclass(type(item), nn.Module):
                    found = _within(leaf, item, is_in_object)
                    if found:
                        return f"{where}{name}{inside}.{found}"
    return ""


def _within(leaf: torch.Tensor, module: nn.Module, only_drawn: bool) -> str:
    """The name of a parameter of a module; empty: it has no such one.

    `only_drawn`: nor where the weights beside it are not as an initialiser drew them.
    """
    for path, part in module.named_modules():
        own = list(part.named_parameters(recurse=False))
        for name, parameter in own:
            if parameter is leaf:
                fresh = are_fresh([(part, other, p) for other, p in own]) if only_drawn else [True]
                is_drawn = True in fresh and False not in fresh
                return f"{path}.{name}".lstrip(".") if is_drawn else ""
    return ""
