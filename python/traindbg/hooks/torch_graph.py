"""What a loss's autograd graph shows: which loss function it is, its leaves, adjacent layers.

Also latent variables, and layers that are used many times. Nodes are only looked at: their names,
their edges and the shapes of what they computed. What they saved is left alone, because reading
that runs the hooks of those who offload it; a mask is read where there are none. No node is kept.
"""

from __future__ import annotations

import itertools
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn

from traindbg.hooks.torch_device import own_operations
from traindbg.hooks.torch_hazards import hazards_in, is_log_of_probability
from traindbg.hooks.torch_loss_pairs import saved_by
from traindbg.hooks.torch_resume import is_fresh
from traindbg.hooks.torch_sigmoid_twice import sigmoid_twice
from traindbg.hooks.torch_softmax_twice import given_to_first_softmax
from traindbg.hooks.torch_through_time import FEWEST_USES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from traindbg.hooks.torch_parameters import Owner

_MOST_NODES = 30_000
_MOST_BACK = 8  # nodes between latent variables and their layers
_MOST_LATENTS = 4
_MOST_STEPS = 64  # along a chain
_MOST_HELD = 1000  # things in a list or dict that are looked at
_MOST_LOOKS = 10_000  # of an attribute, whatever it holds
_FIRST_LABELS = 64
_KEY = "traindbg"
_NOTHING = object()  # there is a nonlinearity

_RECURRENT = ("GRU", "LSTM", "RNN")
_OF_SEQUENCES = "MkldnnRnnLayerBackward"  # positions are its input's first dimension

# Losses that are zero or more, whatever they are given of the right kind.
_NEVER_NEGATIVE = frozenset(
    {
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "cosine_embedding_loss",
        "cross_entropy",
        "hinge_embedding_loss",
        "huber_loss",
        "l1_loss",
        "margin_ranking_loss",
        "mse_loss",
        "multi_margin_loss",
        "multilabel_margin_loss",
        "multilabel_soft_margin_loss",
        "smooth_l1_loss",
        "soft_margin_loss",
        "triplet_margin_loss",
        "triplet_margin_with_distance_loss",
    }
)

_SAME_VALUE = frozenset(
    {
        "AliasBackward0",
        "CloneBackward0",
        "ReshapeAliasBackward0",
        "SqueezeBackward0",
        "SqueezeBackward1",
        "SqueezeBackward2",
        "ToCopyBackward0",
        "UnsafeViewBackward0",
        "UnsqueezeBackward0",
        "ViewBackward0",
    }
)
_SAME_ELEMENTS = _SAME_VALUE | {"PermuteBackward0", "TBackward0", "TransposeBackward0"}
# With a slope of 1 below zero they change nothing: whoever writes LeakyReLU(True) means inplace.
_LEAKY = frozenset({"LeakyReluBackward0", "LeakyReluBackward1"})
_MEANS = frozenset({"MeanBackward0", "MeanBackward1", "SumBackward0", "SumBackward1"})
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
    }
)
_PICKS = frozenset({"GatherBackward0", "IndexBackward0", "SelectBackward0"})
_BY_NUMBER = frozenset({"DivBackward0", "MulBackward0"})
_MOST_OF_MASK = 1 << 16
_LEAF = "AccumulateGrad"


class _Mark(NamedTuple):
    """What is known of a loss function's value; left in the metadata of its node."""

    name: str
    number: int  # of the step's losses
    value: float | None  # None: on a device
    is_mean: bool
    labels: int  # differs for other ones; 0: there are none


class Root(NamedTuple):
    """What backward was called on. Known: one loss function's value, or that times a number."""

    is_known: bool = False
    name: str = ""
    number: int = 0
    sign: int = 0  # of the number; 0: not known
    is_never_negative: bool = False
    is_mean: bool = False
    is_undivided: bool = False  # it is the very value
    labels: int = 0


def _metadata(node: Any) -> dict[str, Any]:
    found = getattr(node, "metadata", None)
    return found if isinstance(found, dict) else {}


def mark_loss(
    value: torch.Tensor, name: str, number: int, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Leaves at the node of a loss function's value which function that was."""
    node = value.grad_fn
    if node is None or not isinstance(getattr(node, "metadata", None), dict):
        return
    target = args[1] if len(args) > 1 else kwargs.get("target")
    labels = _print_of(target) if isinstance(target, torch.Tensor) and _has_memory(target) else 0
    known = _number(value) if value.is_cpu else None
    is_mean = kwargs.get("reduction", "mean") in ("mean", "batchmean") and "sum" not in args[2:]
    node.metadata[_KEY] = _Mark(name, number, known, is_mean, labels)


def _number(tensor: torch.Tensor) -> float:
    with own_operations():
        return float(tensor.detach().item())


def _print_of(target: torch.Tensor) -> int:
    """Of the first labels; on a device, where they lie: reading them would wait."""
    if not target.is_cpu:
        return int(target.data_ptr())
    with own_operations():
        return hash(tuple(target.detach().reshape(-1)[:_FIRST_LABELS].tolist()))


def _has_memory(tensor: torch.Tensor) -> bool:
    return type(tensor) in (torch.Tensor, nn.Parameter) and tensor.layout == torch.strided


def _next(node: Any) -> list[Any]:
    return [other for other, _ in node.next_functions if other is not None]


def _elements(node: Any) -> int:
    """Of what a node computed; -1 where PyTorch does not tell."""
    made = getattr(node, "_input_metadata", None)
    return int(torch.Size(made[0].shape).numel()) if made else -1


def root_of(root: torch.Tensor, is_scaled: bool) -> Root | None:
    """Which loss function's value `root` is, if it is no more than that times a number.

    `is_scaled`: it was multiplied by a GradScaler, which does not count.
    """
    node: Any = root.grad_fn
    if node is None or root.numel() != 1:
        return None
    if is_scaled and node.name() == "MulBackward0" and len(_next(node)) == 1:
        node = _next(node)[0]
    start = node  # behind the scaler, whose factor is above zero
    sign, is_undivided, picks = 1, True, False
    for _ in range(_MOST_STEPS):
        mark = _metadata(node).get(_KEY)
        if isinstance(mark, _Mark):
            if not is_undivided:
                sign = _sign_of(root, mark)
            is_below = mark.value is not None and mark.value < 0
            is_never = mark.name in _NEVER_NEGATIVE and not is_below
            same = is_undivided and sign == 1
            return Root(
                True, mark.name, mark.number, sign, is_never, mark.is_mean, same, mark.labels
            )
        name = node.name()
        after = _next(node)
        if name == "LogSoftmaxBackward0" and picks:
            # Log-probabilities of labels by hand: none is above zero.
            if not is_undivided:
                sign = 0 if not root.is_cpu else (1 if _number(root) < 0 else -1)
            return Root(True, "log_softmax", 0, -sign, True, False, False, 0)
        is_logarithm = name == "LogSigmoidBackward0" or is_log_of_probability(node)
        if is_logarithm or is_log_of_share(node):
            if not is_undivided:
                sign = 0 if not root.is_cpu else (1 if _number(root) < 0 else -1)
            return Root(True, "log_probability", 0, -sign, True, False, False, 0)
        if len(after) != 1:
            return _minus_several(start)
        if name == "MulBackward0" and _elements(node) > 1 and is_log_of_share(after[0]):
            if not _is_mask(node):
                return None
        elif name == "NegBackward0":
            sign = -sign
        elif name in _BY_NUMBER:
            if _elements(node) != 1:
                return None
            is_undivided = False
        elif name in _PICKS:
            picks = True
        elif name == "MaskedSelectBackward0" and is_log_of_share(after[0]):
            pass  # of the events, say
        elif name not in _SAME_VALUE and name not in _MEANS:
            return None
        node = after[0]
    return None


def _minus_several(root: Any) -> Root | None:
    """A sum of values of loss functions that are never negative, each times a negative number."""
    marks: list[_Mark] = []
    waiting: list[tuple[Any, int]] = [(root, 1)]
    for _ in range(_MOST_STEPS):
        if not waiting:
            break
        node, sign = waiting.pop()
        mark = _metadata(node).get(_KEY)
        if isinstance(mark, _Mark):
            if sign > 0 or mark.name not in _NEVER_NEGATIVE:
                return None
            if mark.value is not None and mark.value < 0:  # targets that are no probabilities
                return None
            marks.append(mark)
            continue
        name, after = node.name(), _next(node)
        if name == "NegBackward0":
            sign = -sign
        elif name in _BY_NUMBER:
            number = number_of_factor(node)
            if number is None or len(after) != 1:
                return None
            sign = -sign if number < 0 else sign
        elif name in ("AddBackward0", "SubBackward0") and len(after) == 2:
            times = getattr(node, "_saved_alpha", None)  # a number; nobody's hook is in the way
            if not isinstance(times, (int, float)):
                return None
            is_turned = (times < 0) != (name == "SubBackward0")
            waiting += [(after[0], sign), (after[1], -sign if is_turned else sign)]
            continue
        elif name not in _SAME_VALUE | _MEANS | {"AddBackward0", "StackBackward0"}:
            return None
        waiting += [(other, sign) for other in after]
    if waiting or len(marks) < 2:
        return None
    return Root(True, marks[0].name, marks[0].number, -1, True, False, False, 0)


def number_of_factor(node: Any) -> float | None:
    """By which a node multiplies or divides; None where that is no number, or not known."""
    names = ("other",) if node.name() == "DivBackward0" else ("other", "self")
    kept = [value for name in names if (value := saved_by(node, name)) is not None]
    if len(kept) != 1 or kept[0].numel() != 1 or kept[0].requires_grad:
        return None
    return _number(kept[0]) if kept[0].is_cpu and not kept[0].is_complex() else None


def is_log_of_share(node: Any) -> bool:
    """Whether it is a - log(sum of exp(a) up to there): never above 0.

    So the partial likelihood of Cox and the likelihood of an order are written. `a` is the same
    output of the same node in both.
    """
    if node.name() != "SubBackward0" or getattr(node, "_saved_alpha", 1) != 1:
        return False
    edges = node.next_functions  # with the number of the output that is meant
    if len(edges) != 2 or edges[0][0] is None:
        return False
    behind = edges[1]
    for name in ("LogBackward0", "CumsumBackward0", "ExpBackward0"):
        other = behind[0]
        if other is None:
            return False
        if other.name() == "LogcumsumexpBackward0" and name == "LogBackward0":
            return bool(other.next_functions == (edges[0],))
        if other.name() != name or len(other.next_functions) != 1:
            return False
        behind = other.next_functions[0]
    return bool(behind == edges[0])


def _is_mask(node: Any) -> bool:
    """Whether the other factor of a product, which has no graph of its own, is 0 or 1 everywhere.

    Not known where reading it would run somebody's hooks (`saved_by`).
    """
    others = [
        each for each in (saved_by(node, "self"), saved_by(node, "other")) if each is not None
    ]
    if len(others) != 1 or not others[0].is_cpu or others[0].numel() > _MOST_OF_MASK:
        return False
    with own_operations():
        mask = others[0].detach()
        return mask.dtype == torch.bool or bool(((mask == 0) | (mask == 1)).all())


def _sign_of(root: torch.Tensor, mark: _Mark) -> int:
    if mark.value is None or mark.value == 0 or not root.is_cpu:
        return 0
    factor = _number(root) / mark.value
    return 1 if factor > 0 else -1 if factor < 0 else 0


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
    # The same of what is given to a sigmoid before a loss, and whether that takes a sigmoid, too.
    sigmoid_twice: tuple[str, bool] | None


class Latent(NamedTuple):
    """Latent variables that are drawn as mean + noise * deviation: the layers that give both."""

    mean: str
    scale: str
    form: str  # what the second gives: "log_variance", "log_deviation" or "softplus"


class _Affine(NamedTuple):
    weight: torch.Tensor
    input: Any  # a node, or None
    wide: int  # what goes in
    out: int


def _is_leaf(node: Any) -> bool:
    return bool(node.name().endswith(_LEAF))


def _leaf_behind(node: Any) -> torch.Tensor | None:
    """The leaf that a node passes on in another form."""
    for _ in range(6):
        if node is None:
            return None
        if _is_leaf(node):
            leaf = node.variable
            return leaf if isinstance(leaf, torch.Tensor) else None
        if node.name() not in _SAME_ELEMENTS:
            return None
        after = _next(node)
        node = after[0] if len(after) == 1 else None
    return None


def _affine(node: Any) -> _Affine | None:
    """A node as a layer: it multiplies by a leaf."""
    name = node.name()
    edges = [other for other, _ in node.next_functions]
    if name == "ConvolutionBackward0" and len(edges) > 1:
        weight = _leaf_behind(edges[1])
        if weight is None or getattr(node, "_saved_groups", 1) != 1:
            return None
        is_transposed = bool(getattr(node, "_saved_transposed", False))
        out, wide = weight.shape[0], weight.shape[1]
        if is_transposed:
            out, wide = wide, out
        return _Affine(weight, edges[0], int(wide), int(out))
    at = {"AddmmBackward0": (1, 2), "MmBackward0": (0, 1), "LinearBackward0": (0, 1)}.get(name)
    if at is None or len(edges) <= at[1]:
        return None
    weight = _leaf_behind(edges[at[1]])
    made = getattr(node, "_input_metadata", None)
    if weight is None or not made or weight.dim() != 2:
        return None
    out = int(made[0].shape[-1])
    return _Affine(weight, edges[at[0]], weight.numel() // max(out, 1), out)


def _passes_on(node: Any, has_dropout: bool) -> Any:
    """The node whose values this one passes on without a nonlinearity; None: it does not."""
    name = node.name()
    after = _next(node)
    if name in _SAME_ELEMENTS or name == "NativeDropoutBackward0" or _is_of_slope_one(node, name):
        return after[0] if len(after) == 1 else None
    if name == "MulBackward0":  # dropout on the CPU
        return after[0] if has_dropout and len(after) == 1 else None
    if name == "AddBackward0":  # a bias
        others = [other for other in after if not _is_leaf(other)]
        return others[0] if len(others) == 1 and len(after) == 2 else None
    return None


def _is_of_slope_one(node: Any, name: str) -> bool:
    return name in _LEAKY and getattr(node, "_saved_negative_slope", None) == 1


def _is_linear(layers: dict[Any, _Affine]) -> bool:
    """Whether all layers are given layers and sums of the data, and nothing else."""
    waiting = [layer.input for layer in layers.values()]
    seen = set()
    while waiting:
        node = waiting.pop()
        if node is None or _is_leaf(node) or node in layers or node in seen:
            continue
        seen.add(node)
        name = node.name()
        is_same = name in _SAME_ELEMENTS or _is_of_slope_one(node, name)
        if not is_same and name != "AddBackward0":
            return False
        waiting.extend(_next(node))
    return True


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
    while waiting:
        node = waiting.pop()
        if _is_leaf(node):
            leaf = node.variable
            if isinstance(leaf, torch.Tensor):
                leaves[id(leaf)] = leaf
            continue
        layer = _affine(node)
        if layer is not None and id(layer.weight) in owners:
            layers[node] = layer
        for other in _next(node):
            known = consumers.get(other)
            if known is None:
                if len(consumers) >= _MOST_NODES:
                    return None
                waiting.append(other)
            consumers[other] = (known or 0) + 1
    adjacent: list[str] = []
    follows = 0  # another one, be it through what is merely linear
    begins: list[str] = []
    for layer in layers.values():
        before, is_strict = _layer_before(layer, layers, consumers, has_dropout)
        if before is None:
            begins.append(owners[id(layer.weight)].module)
            continue
        first = layers.get(before)
        if first is None or first.weight is layer.weight:
            continue
        if first.out < min(first.wide, layer.out):
            continue  # a bottleneck: of lower rank than one layer would be
        kind = owners[id(layer.weight)].module_type
        if kind in _RECURRENT or kind.endswith("Cell"):
            continue  # it goes into gates
        follows += 1
        if is_strict:
            adjacent.append(owners[id(first.weight)].module)
    adjacent.reverse()  # found from the loss backwards
    is_linear = len(layers) > 1 and len(begins) == 1 and follows == len(layers) - 1
    if follows > 0 and not is_linear:  # with branches, as of residual blocks
        is_linear = _is_linear(layers)
    twice = given_to_first_softmax(consumers)
    squashed = sigmoid_twice(consumers)
    return Graph(
        list(leaves.values()),
        len(layers),
        adjacent,
        begins[0] if is_linear else "",
        _latents_in(consumers, layers, owners),
        _repeated_in(layers, owners),
        _sequences_in(consumers, owners),
        hazards_in(consumers),
        None if twice is None else _layer_behind(twice, layers, owners),
        None
        if squashed is None
        else (_layer_behind(squashed.given, layers, owners), squashed.is_binary),
    )


def _sequences_in(nodes: Iterable[Any], owners: dict[int, Owner]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for node in nodes:
        if not node.name().startswith(_OF_SEQUENCES):
            continue
        weights = [other.variable for other in _next(node) if _is_leaf(other)]
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


def _deviation_behind(node: Any) -> tuple[Any, str] | None:
    """What a factor of noise was made of, by exp or softplus, and how."""
    is_half = False
    for _ in range(_MOST_BACK):
        name, after = node.name(), _next(node)
        if name == "SoftplusBackward0" and after:
            return after[0], "softplus"
        if name == "ExpBackward0" and after:
            inner = after[0]
            is_half = is_half or inner.name() in _BY_NUMBER
            return inner, "log_variance" if is_half else "log_deviation"
        if name == "SqrtBackward0":
            is_half = True
        elif name not in _SAME_VALUE and name not in {"ExpandBackward0", "AddBackward0"}:
            return None
        if len(after) != 1:
            return None
        node = after[0]
    return None


def _layer_behind(node: Any, layers: dict[Any, _Affine], owners: dict[int, Owner]) -> str:
    """The layer whose output a node passes on, or a part of it."""
    for _ in range(_MOST_BACK):
        if node is None:
            return ""
        if node in layers:
            return owners[id(layers[node].weight)].module
        after = [other for other in _next(node) if not _is_leaf(other)]
        if len(after) != 1:
            return ""
        node = after[0]
    return ""


def _latents_in(
    consumers: dict[Any, int], layers: dict[Any, _Affine], owners: dict[int, Owner]
) -> list[Latent]:
    """Finds mean + noise * deviation, where the mean has a penalty, too: its square, say."""
    found: list[Latent] = []
    users: dict[Any, list[Any]] | None = None
    for node in consumers:
        if node.name() != "AddBackward0":
            continue
        edges = _next(node)
        if len(edges) != 2 or len(found) >= _MOST_LATENTS:
            continue
        for mean, product in (edges, edges[::-1]):
            if product.name() != "MulBackward0" or len(_next(product)) != 1:
                continue
            deviation = _deviation_behind(_next(product)[0])
            if deviation is None:
                continue
            if users is None:
                users = {}
                for user in consumers:
                    for used in _next(user):
                        users.setdefault(used, []).append(user)
            if not any(_is_penalty(user, mean) for user in users.get(mean, ())):
                continue  # the noise of a policy, say
            latent = Latent(
                _layer_behind(mean, layers, owners),
                _layer_behind(deviation[0], layers, owners),
                deviation[1],
            )
            if latent.mean and latent.scale and latent not in found:
                found.append(latent)
    return found


def _is_penalty(user: Any, mean: Any) -> bool:
    """A square of it, or of its difference from a constant."""
    name, edges = user.name(), _next(user)
    if name == "PowBackward0":
        return True
    if name == "MulBackward0":
        return len(edges) == 2 and edges[0] is edges[1] is mean
    return name == "SubBackward0" and len(edges) == 1


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
        if _is_leaf(node):
            return node.variable is leaf
        after = _next(node)
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
                fresh = [is_fresh(part, other, p) for other, p in own] if only_drawn else [True]
                is_drawn = True in fresh and False not in fresh
                return f"{path}.{name}".lstrip(".") if is_drawn else ""
    return ""
