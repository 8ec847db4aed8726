"""Collections given by object: modules, parameters and buffers as patterns for tensors' names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import torch

from traindbg.errors import InvalidArgument
from traindbg.hooks.torch.base.names import is_leaf, name_of_root, unwrap
from traindbg.hooks.torch.base.parameters import buffers_in, owned_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_OF_PARAMETERS = "weight|bias|gradient|gradient_before|optimizer_state|weight_update|update_ratio"
_OF_BUFFERS = "buffer"
_OF_MODULES = "output|activation|attention"
_INPUT = "input"  # of a part that stands in for the model (`evaluations.stand_in`)
_SPECIAL = re.compile(r"[\^$\\.*+?()\[\]{}|/]")
# What may follow a module's or a parameter's name: a part of it, a number where there are several.
_END = r"(\.|#[0-9]|@[0-9]|$)"


def escaped(text: str) -> str:
    """`text` as an ECMAScript pattern that finds it literally."""
    return _SPECIAL.sub(lambda found: "\\" + found.group(), text)


def _pattern(words: str, path: str) -> str:
    return f"^({words})/{escaped(path)}{_END}"


def _of_block(name: str) -> str:
    """Finds what a module with others inside returns itself: `_pattern` is for what is inside."""
    return f"^output/{escaped(name)}($|[:@#])"


class _Names:
    """Where the modules, parameters and buffers of a model are."""

    def __init__(self, root: torch.nn.Module, prefix: str) -> None:
        self._root = root
        self._prefix = prefix
        self._root_name = prefix.rstrip(".") or "model"
        self._modules = {
            id(module): prefix + path if path else "" for path, module in root.named_modules()
        }
        # Of parameters and buffers: by what their tensors' names begin with, and where they are.
        self._places: dict[int, list[tuple[str, str]]] = {}
        for parameter, owner in owned_in(root, prefix):
            self._places.setdefault(id(parameter), []).append((_OF_PARAMETERS, owner.path))
        for buffer, owner in buffers_in(root, prefix):
            self._places.setdefault(id(buffer), []).append((_OF_BUFFERS, owner.path))

    def of(self, name: str, thing: Any) -> list[str]:
        """Patterns that find all tensors of a module, of a parameter or a buffer."""
        if isinstance(thing, torch.Tensor):
            places = self._places.get(id(thing))
            if places is None:
                raise InvalidArgument(
                    f"collections: '{name}': a tensor of shape {list(thing.shape)} is no parameter "
                    f"and no buffer of the watched {type(self._root).__name__}"
                )
            return [_pattern(words, path) for words, path in places]
        module, _ = unwrap(thing)
        if id(module) not in self._modules:
            raise InvalidArgument(
                f"collections: '{name}': a {type(thing).__name__} that is not in the watched "
                f"{type(self._root).__name__}"
            )
        return self._of_module(module)

    def _of_module(self, module: torch.nn.Module) -> list[str]:
        all_words = f"{_OF_PARAMETERS}|{_OF_BUFFERS}|{_OF_MODULES}|{_INPUT}"
        out: list[str] = []
        covered: list[str] = []
        # A module inside that is elsewhere in the model, too, may have its name from there.
        if module is self._root:
            own = escaped(self._prefix)  # of a second model
            out += [f"^input/{own}[0-9]", _of_block(name_of_root(self._root, self._prefix))]
        elif not is_leaf(module):
            out.append(_of_block(self._modules[id(module)]))
        for part in module.modules():
            path = self._modules.get(id(part))  # scripted ones are never the same object
            if path is None or any(
                path == above or path.startswith(above + ".") for above in covered
            ):
                continue
            if path:
                covered.append(path)
                out.append(_pattern(all_words, path))
            else:  # the whole model; its parts follow
                out.append(_pattern(_OF_MODULES, self._root_name))
        for part in module.modules():
            for tensor in (*part.parameters(recurse=False), *part.buffers(recurse=False)):
                for words, path in self._places.get(id(tensor), ()):
                    if not any(path.startswith(above + ".") for above in covered):
                        out.append(_pattern(words, path))
        return out


def patterns_of(
    root: torch.nn.Module, collections: Mapping[str, Any], prefix: str = ""
) -> dict[str, list[str]]:
    """The regular expressions that `collections` stand for: of each a name, and one or several.

    `prefix` is what the names of the model's modules begin with. A value is a regular expression, a
    module, a parameter, a buffer, or an iterable of these. Raises InvalidArgument for anything
    else, and for what does not belong to the model `root`.
    """
    names = _Names(root, prefix)
    out: dict[str, list[str]] = {}
    for name, value in collections.items():
        things: Iterable[Any] = [value]
        if not isinstance(value, (str, torch.nn.Module, torch.Tensor)):
            try:
                things = list(value)
            except TypeError:
                raise _unknown(name, value) from None
        out[name] = []
        for thing in things:
            if isinstance(thing, str):
                out[name].append(thing)
            elif isinstance(thing, (torch.nn.Module, torch.Tensor)):
                out[name] += names.of(name, thing)
            else:
                raise _unknown(name, thing)
    return out


def _unknown(name: str, thing: Any) -> InvalidArgument:
    return InvalidArgument(
        f"collections: '{name}': expected a regular expression, a module, a parameter or a buffer, "
        f"got {type(thing).__name__}"
    )
