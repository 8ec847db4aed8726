"""What a loss's autograd graph shows: its leaves, adjacent layers, latent variables.

Also layers that are used many times, and operations that can fail. Nodes are only looked at: their
names, their edges and the shapes of what they computed. No node is kept.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from traindbg.hooks.torch.base.nodes import (
    SAME_ELEMENTS,
    SAME_VALUE,
    edges_of,
    is_leaf,
    next_nodes,
    shape_at,
)
from traindbg.hooks.torch.data.hazards import hazards_in
from traindbg.hooks.torch.losses.functions import written_by_user
from traindbg.hooks.torch.losses.latents import Latent, latents_in
from traindbg.hooks.torch.losses.made_weights import by_layer, weight_made
from traindbg.hooks.torch.losses.sigmoid_twice import sigmoid_twice
from traindbg.hooks.torch.losses.softmax_twice import given_to_first_softmax
from traindbg.hooks.torch.losses.through_time import FEWEST_USES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from traindbg.hooks.torch.base.parameters import Owner

_MOST_NODES = 30_000
_MOST_BACK = 8  # nodes between values and the layer that they come from
_MOST_STEPS = 64  # along a chain
_NOTHING = object()  # there is a nonlinearity
# Which edges of a layer lead to its input and to its weight.
_WEIGHTS = {
    "AddmmBackward0": (1, 2),
    "ConvolutionBackward0": (0, 1),
    "LinearBackward0": (0, 1),
    "MmBackward0": (0, 1),
}

_RECURRENT = ("GRU", "LSTM", "RNN")
_OF_SEQUENCES = "MkldnnRnnLayerBackward"  # positions are its input's first dimension


# With a slope of 1 below zero they change nothing: whoever writes LeakyReLU(True) means inplace.
_OF_TABLES = frozenset({"EmbeddingBackward0", "EmbeddingBagBackward0"})
_LEAKY = frozenset({"LeakyReluBackward0", "LeakyReluBackward1"})
# Linear, too, but put between layers for reasons of their own.
_ALSO_LINEAR = frozenset(
    {
        "AdaptiveAvgPool2DBackward0",
        "AdaptiveAvgPool3DBackward0",
        "AvgPool2DBackward0",
        "AvgPool3DBackward0",
        "ConstantPadNdBackward0",
        "CudnnBatchNormBackward0",
        "MeanBackward0",
        "MeanBackward1",
        "MiopenBatchNormBackward0",
        "MkldnnAdaptiveAvgPool2DBackward0",
        "NativeBatchNormBackward0",
        "SumBackward0",
        "SumBackward1",
        "UpsampleBilinear2DBackward0",
        "UpsampleLinear1DBackward0",
        "UpsampleNearest1DBackward0",
        "UpsampleNearest2DBackward0",
    }
)
_JOINING = frozenset({"AddBackward0", "CatBackward0", "StackBackward0"})  # branches


class Graph(NamedTuple):
    """What was seen of a graph."""

    leaves: list[torch.Tensor]  # that require gradients
    affine: int  # layers of watched models that multiply by a weight
    adjacent: list[str]  # those whose output goes into the next one as it is
    linear: str  # the first one, where all are one linear chain that begins with data; else empty
    latents: list[Latent]
    # Layers that are used many times: their nodes, in the order in which they were made. Not to be
    # kept.
    repeated: dict[str, list[Any]]
    # Nodes that go through a whole sequence, forwards only, by the layer's name.
    sequences: dict[str, Any]
    hazards: list[str]  # the facts of `hazards_in`
    # Of what gave the scores whose softmax is taken twice the layer, or empty; None: of none.
    softmax_twice: str | None
    # The same of what is given to a sigmoid before a loss, and the fact that tells which loss.
    sigmoid_twice: tuple[str, str] | None
    written: list[Any]  # nodes of functions of the user's own. Not to be kept.


class _Affine(NamedTuple):
    weight: torch.Tensor  # or the parameter that it is computed from
    input: Any  # a node, or None
    wide: int  # what goes in
    out: int
    making: tuple[Any, ...] = ()  # nodes that compute the weight
    kernel: tuple[int, ...] = ()  # of a convolution


def _leaf_behind(node: Any) -> torch.Tensor | None:
    """The leaf that a node passes on in another form."""
    for _ in range(6):
        if node is None:
            return None
        if is_leaf(node):
            leaf = node.variable
            return leaf if isinstance(leaf, torch.Tensor) else None
        if node.name() not in SAME_ELEMENTS:
            return None
        after = next_nodes(node)
        node = after[0] if len(after) == 1 else None
    return None


def _affine(node: Any, owners: dict[int, Owner]) -> _Affine | None:
    """A node as a layer: it multiplies by a leaf, or by a weight that is made of leaves alone."""
    name = node.name()
    edges = node.next_functions
    at = _WEIGHTS.get(name)
    if at is None or len(edges) <= at[1] or edges[at[1]][0] is None:
        return None
    behind, number = edges[at[1]]
    weight, making = _leaf_behind(behind), []
    shape = shape_at(behind, number) if weight is None else tuple(weight.shape)
    if weight is None and shape is not None:
        made = weight_made(behind, math.prod(shape), owners)
        weight, making = made or (None, [])
    if weight is None or shape is None:
        return None
    given = edges[at[0]][0]
    if name == "ConvolutionBackward0":
        if getattr(node, "_saved_groups", 1) != 1:
            return None
        is_transposed = bool(getattr(node, "_saved_transposed", False))
        out, wide = shape[0], shape[1]
        if is_transposed:
            out, wide = wide, out
        return _Affine(weight, given, int(wide), int(out), tuple(making), tuple(shape[2:]))
    result = shape_at(node, 0)
    if not result or len(shape) != 2:
        return None
    out = result[-1]
    return _Affine(weight, given, weight.numel() // max(out, 1), out, tuple(making))


def _passes_on(node: Any, has_dropout: bool) -> Any:
    """The node whose values this one passes on without a nonlinearity; None: it does not."""
    name = node.name()
    after = next_nodes(node)
    if name in SAME_ELEMENTS or name == "NativeDropoutBackward0" or _is_of_slope_one(node, name):
        return after[0] if len(after) == 1 else None
    if name == "MulBackward0":  # dropout on the CPU
        return after[0] if has_dropout and len(after) == 1 else None
    if name == "AddBackward0":  # a bias
        others = [other for other in after if not is_leaf(other)]
        return others[0] if len(others) == 1 and len(after) == 2 else None
    return None


def _is_of_slope_one(node: Any, name: str) -> bool:
    return name in _LEAKY and getattr(node, "_saved_negative_slope", None) == 1


def _follows(first: _Affine, layer: _Affine, owners: dict[int, Owner]) -> bool:
    """Whether two layers, one of which is given the other, could as well be one."""
    if first.weight is layer.weight:
        return False
    if first.out < min(first.wide, layer.out):
        return False  # a bottleneck: of lower rank than one layer would be
    kind = owners[id(layer.weight)].module_type
    return kind not in _RECURRENT and not kind.endswith("Cell")  # which goes into gates


def _are_a_factored_filter(first: _Affine, layer: _Affine) -> bool:
    """Whether two convolutions go along different dimensions: (3, 1), then (1, 3)."""
    along = list(zip(first.kernel, layer.kernel, strict=False))
    return (
        len(first.kernel) == len(layer.kernel)
        and all(min(sizes) == 1 for sizes in along)
        and max(first.kernel, default=1) > 1
        and max(layer.kernel, default=1) > 1
    )


def _is_of_tables(node: Any) -> bool:
    """Whether a layer's input is data and rows of embeddings side by side, and no more.

    Without data beside them a linear model of embeddings is one of factors.
    """
    waiting, has_data, has_tables = [node], False, False
    for _ in range(_MOST_STEPS):
        if not waiting:
            return has_data and has_tables
        here = waiting.pop()
        name = here.name()
        if name in _OF_TABLES:
            has_tables = True
        elif name == "CatBackward0" or name in SAME_ELEMENTS:
            edges = edges_of(here)
            has_data = has_data or (name == "CatBackward0" and None in edges)
            waiting.extend(edge for edge in edges if edge is not None)
        elif not is_leaf(here):
            return False
    return False


def _is_linear(layers: dict[Any, _Affine]) -> bool:
    """Whether all layers are given layers and the data, joined or averaged, and nothing else."""
    waiting = [layer.input for layer in layers.values()]
    seen = set()
    while waiting:
        node = waiting.pop()
        if node is None or is_leaf(node) or node in layers or node in seen:
            continue
        seen.add(node)
        name = node.name()
        is_same = name in SAME_ELEMENTS or _is_of_slope_one(node, name)
        if not is_same and name not in _ALSO_LINEAR and name not in _JOINING:
            return False
        waiting.extend(next_nodes(node))
    return True


def _is_stream(layers: dict[Any, _Affine], nodes: Iterable[Any], owners: dict[int, Owner]) -> bool:
    """Whether some layer's output is added to its input, which comes from layers, too.

    And none is used twice, as a step through time is.
    """
    if len({id(layer.weight) for layer in layers.values()}) < len(layers):
        return False
    for node in nodes:
        edges = next_nodes(node) if node.name() == "AddBackward0" else []
        for one, other in itertools.permutations(edges, 2):
            layer = layers.get(_passed_on(one))
            if layer is None or layer.input is None or not _is_given(layer, other):
                continue
            if any(_follows(first, layer, owners) for first in _layers_of(other, layers)):
                return True
    return False


def _passed_on(node: Any) -> Any:
    """What a node passes on as it is."""
    for _ in range(_MOST_BACK):
        after = next_nodes(node) if node.name() in SAME_VALUE else []
        if len(after) != 1:
            break
        node = after[0]
    return node


def _is_given(layer: _Affine, node: Any) -> bool:
    """Whether it is what the layer is given, as it is."""
    return _passed_on(layer.input) is _passed_on(node)


def _layers_of(node: Any, layers: dict[Any, _Affine]) -> list[_Affine]:
    """Of a sum: those that are added."""
    found, waiting = [], [node]
    for _ in range(_MOST_STEPS):
        if not waiting:
            break
        here = _passed_on(waiting.pop())
        if here in layers:
            found.append(layers[here])
        elif here.name() == "AddBackward0":
            waiting.extend(next_nodes(here))
    return found


def look_at_graph(
    root: torch.Tensor, owners: dict[int, Owner], has_dropout: bool = False
) -> Graph | None:
    """Goes once through the graph of `root`. None where it is too large, or nothing is shown."""
    start: Any = root.grad_fn
    if start is None or not hasattr(start, "_input_metadata"):
        return None
    consumers: dict[Any, int] = {start: 1}
    waiting = [start]
    leaves: dict[int, torch.Tensor] = {}
    layers: dict[Any, _Affine] = {}
    making: set[Any] = set()  # nodes that compute weights: no layers, whatever they multiply
    while waiting:
        node = waiting.pop()
        if is_leaf(node):
            leaf = node.variable
            if isinstance(leaf, torch.Tensor):
                leaves[id(leaf)] = leaf
            continue
        layer = None if node in making else _affine(node, owners)
        if layer is not None and id(layer.weight) in owners:
            layers[node] = layer
            making.update(layer.making)
        for other in next_nodes(node):
            known = consumers.get(other)
            if known is None:
                if len(consumers) >= _MOST_NODES:
                    return None
                waiting.append(other)
            consumers[other] = (known or 0) + 1
    owners = {key: by_layer(owner) for key, owner in owners.items()}
    adjacent: list[str] = []
    follows = 0  # another one, be it through what is merely linear
    begins: list[str] = []
    for layer in layers.values():
        before, is_strict = _layer_before(layer, layers, consumers, has_dropout)
        if before is None or (before is not _NOTHING and _is_of_tables(before)):
            begins.append(owners[id(layer.weight)].module)
            continue
        first = layers.get(before)
        if first is None or not _follows(first, layer, owners):
            continue
        follows += 1
        if is_strict and not _are_a_factored_filter(first, layer):
            adjacent.append(owners[id(first.weight)].module)
    adjacent.reverse()  # found from the loss backwards
    is_linear = len(layers) > 1 and len(begins) == 1 and follows == len(layers) - 1
    if begins and not is_linear:  # with branches, as of residual blocks
        has_depth = follows > 0 or _is_stream(layers, consumers, owners)
        is_linear = has_depth and _is_linear(layers)
    twice = given_to_first_softmax(consumers)
    squashed = sigmoid_twice(consumers)
    return Graph(
        list(leaves.values()),
        len(layers),
        adjacent,
        begins[0] if is_linear else "",
        latents_in(start, consumers, lambda node: _layer_behind(node, layers, owners)),
        _repeated_in(layers, owners),
        _sequences_in(consumers, owners),
        hazards_in(consumers),
        None if twice is None else _layer_behind(twice, layers, owners),
        None
        if squashed is None
        else (_layer_behind(squashed.given, layers, owners), squashed.fact),
        [node for node in consumers if written_by_user(node)],
    )


def _sequences_in(nodes: Iterable[Any], owners: dict[int, Owner]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for node in nodes:
        if not node.name().startswith(_OF_SEQUENCES):
            continue
        weights = [other.variable for other in next_nodes(node) if is_leaf(other)]
        held = [owners[id(weight)] for weight in weights if id(weight) in owners]
        # Of several layers the first one, at whose input the gradient has come the longest way.
        if any(owner.path.endswith("weight_ih_l0") for owner in held):
            found[held[0].module] = node
    both = {owner.module for owner in owners.values() if owner.path.endswith("_reverse")}
    return {name: node for name, node in found.items() if name not in both}


def _repeated_in(layers: dict[Any, _Affine], owners: dict[int, Owner]) -> dict[str, list[Any]]:
    uses: dict[int, list[Any]] = {}
    for node, layer in layers.items():
        uses.setdefault(id(layer.weight), []).append(node)
    found: dict[str, list[Any]] = {}
    for weight, nodes in uses.items():
        if len(nodes) < FEWEST_USES or not hasattr(nodes[0], "_sequence_nr"):
            continue
        nodes.sort(key=lambda node: int(node._sequence_nr()))
        found.setdefault(owners[weight].module, nodes)
    return found


def _layer_behind(node: Any, layers: dict[Any, _Affine], owners: dict[int, Owner]) -> str:
    """The layer whose output a node passes on, or a part of it."""
    for _ in range(_MOST_BACK):
        if node is None:
            return ""
        if node in layers:
            return owners[id(layers[node].weight)].module
        after = [other for other in next_nodes(node) if not is_leaf(other)]
        if len(after) != 1:
            return ""
        node = after[0]
    return ""


def _layer_before(
    layer: _Affine, layers: dict[Any, _Affine], consumers: dict[Any, int], has_dropout: bool
) -> tuple[Any, bool]:
    """What a layer's input comes from, as far as it is passed on; None: from data.

    And whether it is passed on as it is: not through norms or pooling.
    """
    before, is_strict = layer.input, True
    for _ in range(_MOST_STEPS):
        # Where something else has the value, too, it is no mere step on the way: a residual.
        if before is None or before in layers or consumers.get(before, 0) != 1:
            break
        after = _passes_on(before, has_dropout)
        if after is None:
            edges = [other for other, _ in before.next_functions]
            if before.name() not in _ALSO_LINEAR or not edges:
                break
            after, is_strict = edges[0], False
        before = after
    if before in layers and consumers.get(before, 0) != 1:
        return _NOTHING, False
    return before, is_strict
