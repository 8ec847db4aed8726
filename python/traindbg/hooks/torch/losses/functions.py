"""Functions of the user's own whose backward gives the gradient to the wrong one of their inputs.

    class MassDefect(torch.autograd.Function):
        def forward(ctx, profile, mass): ...
        def backward(ctx, upstream): return None, slope   # of the profile, that is

PyTorch takes as many gradients as there were inputs, in their order, and drops without a word what
an input gets that needs none. Those that need one, and get None, are taken as if they had no part
in the loss. Hooks on the nodes of these functions see what backward returned.

A gradient for data alone may be right: of a block whose input is data, beside a number that only
makes it run (a checkpoint), or beside a table that another term trains. Then it has the shape of
that data, and where it is passed on as it is, that of the function's result. The gradient that went
astray is one of an input that got None, and has its shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.function import BackwardCFunction

from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.base.nodes import shape_at
from traindbg.hooks.torch.base.sources import LIBRARYS, sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MOST_NODES = 64  # of a graph; the same function may be called very often
_OF_PYTORCH = ("torch", "traindbg")


def written_by_user(node: Any) -> bool:
    """Whether a node is that of a `torch.autograd.Function` of no package that is installed."""
    if not isinstance(node, BackwardCFunction):
        return False
    kind = getattr(node, "_forward_cls", None)
    if str(getattr(kind, "__module__", "")).partition(".")[0] in _OF_PYTORCH:
        return False
    code = getattr(getattr(kind, "backward", None), "__code__", None)
    return code is None or sources.owner(code.co_filename) != LIBRARYS


def _name_of(node: Any) -> str:
    return str(node.name()).removesuffix("Backward")


class ReturnedGradients:
    """What the functions of one graph return in its backward pass. Holds counts and names alone."""

    def __init__(self, nodes: Iterable[Any]) -> None:
        self._handles: list[Any] = []
        self._astray: dict[str, int] = {}  # by function, of calls
        for node, _ in zip(nodes, range(_MOST_NODES), strict=False):
            self._listen(node)

    def _listen(self, node: Any) -> None:
        name = _name_of(node)
        edges = node.next_functions
        shapes = [None if other is None else shape_at(other, at) for other, at in edges]
        needed = [other is not None for other, _ in edges]
        given_on = getattr(node, "_input_metadata", None) or ()
        results = {shape_at(node, at) for at in range(len(given_on))}

        def look(gradients: Any) -> None:
            if len(gradients) != len(needed) or not any(needed):
                return
            given = [isinstance(gradient, torch.Tensor) for gradient in gradients]
            pairs = list(zip(gradients, given, needed, strict=True))
            is_lost = not any(is_given and is_needed for _, is_given, is_needed in pairs)
            shapes_lost = {
                tuple(gradient.shape)
                for gradient, is_given, is_needed in pairs
                if is_given and not is_needed
            }
            is_lost = is_lost and not (shapes_lost - results).isdisjoint(shapes)
            self._astray[name] = self._astray.get(name, 0) + is_lost

        def heard(gradients: Any, _: Any) -> None:
            guarded("loop", look, gradients)

        self._handles.append(node.register_hook(heard))

    def end(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def astray(self) -> Iterator[tuple[str, int]]:
        """The functions that were heard, and how often one gave its gradient to the wrong input."""
        yield from self._astray.items()
