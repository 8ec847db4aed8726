"""How a gradient fares on its way back through the uses of one weight, as in a recurrent network.

Where a layer is used many times, one after the other, the norms of what comes back to its first
and to its last uses tell whether the gradient vanishes or explodes in between. Hooks on a few nodes
of the graph, for one backward pass; no node and no gradient is kept. A layer that goes through a
whole sequence in one node, as `nn.LSTM` does, tells it by the gradient of its input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.guard import guarded

if TYPE_CHECKING:
    from collections.abc import Iterator

_AT_EACH_END = 2  # uses that are listened to
FEWEST_USES = 8
_MOST_LAYERS = 8


class ThroughTime:
    """Listens in one backward pass."""

    def __init__(
        self, repeated: dict[str, list[Any]], sequences: dict[str, Any] | None = None
    ) -> None:
        """By layers' names: nodes in the order in which they were made, and nodes of sequences."""
        self._handles: list[Any] = []
        self._norms: dict[str, tuple[list[torch.Tensor], list[torch.Tensor], int]] = {}
        for name, nodes in list(repeated.items())[:_MOST_LAYERS]:
            first: list[torch.Tensor] = []
            last: list[torch.Tensor] = []
            self._norms[name] = (first, last, len(nodes))
            for node in nodes[:_AT_EACH_END]:
                self._listen(node, first)
            for node in nodes[-_AT_EACH_END:]:
                self._listen(node, last)

        for name, node in list((sequences or {}).items())[:_MOST_LAYERS]:
            self._listen_to_sequence(name, node)

    def _listen_to_sequence(self, name: str, node: Any) -> None:
        def take(gradient: Any) -> None:
            if not isinstance(gradient, torch.Tensor) or capturing_graph(gradient):
                return  # the input needs none
            if gradient.dim() != 3 or len(gradient) < FEWEST_USES:
                return
            with own_operations():
                first, last = gradient[:_AT_EACH_END], gradient[-_AT_EACH_END:]
                norms = [
                    [torch.linalg.vector_norm(part.detach().float()) for part in end]
                    for end in (first, last)
                ]
                self._norms[name] = (norms[0], norms[1], len(gradient))

        def heard(gradients: Any, _: Any) -> None:
            for gradient in gradients[:1]:
                guarded("loop", take, gradient)

        self._handles.append(node.register_hook(heard))

    def _listen(self, node: Any, norms: list[torch.Tensor]) -> None:
        def take(gradient: Any) -> None:
            if isinstance(gradient, torch.Tensor) and not capturing_graph(gradient):
                with own_operations():
                    norms.append(torch.linalg.vector_norm(gradient.detach().float()))

        def heard(gradients: Any) -> None:
            for gradient in gradients[:1]:
                guarded("loop", take, gradient)

        self._handles.append(node.register_prehook(heard))

    def end(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def ends(self) -> Iterator[tuple[str, list[torch.Tensor], list[torch.Tensor], int]]:
        """Layer, norms of the gradients of its first uses, of those of its last ones, uses."""
        for name, (first, last, uses) in self._norms.items():
            if first and last:
                yield name, first, last, uses
