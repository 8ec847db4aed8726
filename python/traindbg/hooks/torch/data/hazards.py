"""Operations that are not finite, or have no finite derivative, at a value that they may be given.

A division by a length that may be 0, the logarithm of a probability that may be 0, a softmax or
the logarithm of a sum of exponentials by hand, which may overflow; and a softmax over one value,
which is 1.

They are looked for in what the first forward passes call and in the graphs of their losses, and are
only told, with where they are: whether anything was not finite is for the rules to see. No value is
read and no tensor is kept.
"""

from __future__ import annotations

import re
import sys
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.nn import functional

from traindbg.hooks.torch.base.device import version_of
from traindbg.hooks.torch.base.nodes import edges_of, next_nodes, saved_by, shape_at
from traindbg.hooks.torch.data.scores import compares_positions

if TYPE_CHECKING:
    from collections.abc import Collection
    from types import FrameType

# The facts.
DIVIDES = "divides_by_measure"  # by a norm, a deviation, a sum: of an empty row it is 0
LOGS = "logs_probability"  # a probability may be 0 in floating point
LOGS_SUM = "logs_sum_of_exponentials"  # of unbounded values, which may be infinite
SINGLE = "softmax_of_one"  # each value by itself: all of them become 1
UNIT = "softmax_of_unit"  # the same of [samples, 1], and nothing is weighed with it

_MOST_LOOKS = 6  # steps
_MOST_TOLD = 8  # places of a fact
_MOST_MARKS = 512  # tensors of a pass whose origin is known
_MOST_STEPS = 16  # along a graph

# What is known of a tensor's origin.
_MEASURE, _PROBABILITY, _EXPONENTIALS, _BOUNDED, _SUM_OF_EXPONENTIALS, _LARGEST = range(6)


def _named(*names: str) -> frozenset[Any]:
    homes = (torch, torch.Tensor, functional, torch.linalg, torch.special)
    return frozenset(getattr(home, name) for name in names for home in homes if hasattr(home, name))


_MEASURES = _named("norm", "vector_norm", "std", "var", "mean", "count_nonzero")
_SUMS = _named("sum", "nansum")
_RUNNING_SUMS = _named("cumsum", "cumsum_")
_EXTREMES = _named("amax", "max", "amin", "min")
_ROOTS = _named("sqrt", "sqrt_")
_POWERS = _named("pow", "pow_", "__pow__")
_SOFTMAXES = _named("softmax")
_PROBABILITIES = _SOFTMAXES | _named("sigmoid", "sigmoid_", "expit")
_EXPONENTIAL = _named("exp", "exp_")
_LOGARITHMS = _named("log", "log_", "log2", "log10")
_DIVISIONS = _named("div", "div_", "true_divide", "divide", "__truediv__", "__itruediv__")
_INVERSES = _named("reciprocal", "rsqrt", "__rtruediv__")
_DIFFERENCES = _named("sub", "sub_", "subtract", "__sub__", "__isub__")
_COMPLEMENTS = _named("rsub", "__rsub__")
_ADDITIONS = _named("add", "add_", "__add__", "__radd__", "__iadd__")
_CLAMPS = _named("clamp", "clamp_", "clamp_min", "clamp_min_", "clip", "clip_")
# Those that pass on what they are given, in another shape or some of it.
_SAME = _named(
    "__getitem__", "clone", "contiguous", "detach", "diag", "diagonal", "double", "expand",
    "expand_as", "flatten", "flip", "float", "gather", "index_select", "permute", "reshape",
    "select", "squeeze", "to", "transpose", "unsqueeze", "view",
)  # fmt: skip
WATCHED: frozenset[Any] = (
    _MEASURES | _SUMS | _RUNNING_SUMS | _EXTREMES | _ROOTS | _POWERS | _PROBABILITIES
    | _EXPONENTIAL | _LOGARITHMS | _ADDITIONS | _DIVISIONS | _INVERSES | _DIFFERENCES
    | _COMPLEMENTS | _CLAMPS | _SAME
)  # fmt: skip


def line_of_code() -> int:
    """Of the code that calls a function now: the first that is neither PyTorch's nor ours."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if not isinstance(module, str) or module.partition(".")[0] not in ("torch", "traindbg"):
            return frame.f_lineno
        frame = frame.f_back
    return 0


def _is_number(value: Any, number: float) -> bool:
    # A tensor's comparison would wait for a device.
    return isinstance(value, (int, float)) and value == number


def _leaves_zero(least: Any) -> bool:
    """Whether what is cut off below `least` may still be 0; None: it is cut off above."""
    return least is None or (isinstance(least, (int, float)) and least <= 0)


def _is_of_one(args: Any, kwargs: Any, result: Any) -> bool:
    """A softmax over a dimension of size 1, where another one was meant.

    That shows in another dimension beside the batch along which there are several values, as in
    [batch, positions, 1]. One value for each sample may be a choice among one: a mixture of one
    expert. What compares queries with one key is none either.
    """
    dim = args[1] if len(args) > 1 else kwargs.get("dim")
    if not isinstance(dim, int) or type(result) is not torch.Tensor or result.dim() < 3:
        return False
    along = dim % result.dim()
    if along == 0 or result.shape[along] != 1 or result.shape[1:].numel() < 2:
        return False
    node = result.grad_fn
    after = [] if node is None else next_nodes(node)
    return bool(after) and not any(map(compares_positions, after))


def _is_of_unit(args: Any, kwargs: Any, result: Any) -> bool:
    """A softmax over the one value of each sample."""
    dim = args[1] if len(args) > 1 else kwargs.get("dim")
    if not isinstance(dim, int) or type(result) is not torch.Tensor or result.dim() != 2:
        return False
    return dim % 2 == 1 and result.shape[1] == 1 < result.shape[0] and result.grad_fn is not None


class _Mark(NamedTuple):
    """What is known of a tensor until it is changed in place, as by `n += 1e-6`."""

    tensor: weakref.ref[torch.Tensor]
    origin: int
    version: int


class HazardObserver:
    """What the forward passes of one step after the other call. One per recording."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Another training begins."""
        self._looks = 0
        self.clear()

    def clear(self) -> None:
        """Drops what was seen of a step."""
        self.is_open = False
        self._marks: dict[int, _Mark] = {}
        self._found: dict[tuple[str, str], int] = {}
        self._in_graph: list[str] = []
        self._of_several: set[str] = set()  # places with a softmax over more than one value

    def begin(self, is_due: bool) -> None:
        """A forward pass of the training begins; of a step it may be one of several."""
        self._marks.clear()
        self.is_open = is_due and self._looks < _MOST_LOOKS
        if not is_due:
            self.clear()

    def _mark_of(self, value: Any, result: Any = None) -> int | None:
        """`result`: of the operation that was given `value`, which may have changed it in place."""
        known = self._marks.get(id(value))
        if known is None or known.tensor() is not value:
            return None
        changes = 1 if result is value else 0
        return known.origin if version_of(value) == known.version + changes else None

    def _mark(self, result: Any, mark: int | None) -> None:
        if isinstance(result, tuple) and result:
            result = result[0]  # values, beside their places
        if mark is None or not isinstance(result, torch.Tensor):
            return
        if not result.is_floating_point() and mark != _MEASURE:
            return
        if len(self._marks) < _MOST_MARKS:
            self._marks[id(result)] = _Mark(weakref.ref(result), mark, version_of(result))

    def called(self, place: str, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        """One of WATCHED was called and has returned."""
        if not self.is_open or not args:
            return
        mark = self._mark_of(args[0], result)
        other = args[1] if len(args) > 1 else kwargs.get("other")
        if function in _SAME or (function in _ADDITIONS and _is_number(other, 0)):
            self._mark(result, mark)
        elif function in _CLAMPS:
            least = args[1] if len(args) > 1 else kwargs.get("min")
            if mark == _MEASURE and _leaves_zero(least):
                self._mark(result, mark)
        elif function in _DIVISIONS:
            divisor = self._mark_of(other)
            if divisor == _MEASURE:
                self._tell(DIVIDES, place)
            elif divisor == _SUM_OF_EXPONENTIALS:
                self._tell(LOGS, place)
                self._mark(result, _PROBABILITY)
            # A difference of measures, divided by a number, is one.
            elif not isinstance(other, torch.Tensor):
                self._mark(result, mark)
        elif function in _INVERSES:
            if mark == _MEASURE:
                self._tell(DIVIDES, place)
        elif function in _LOGARITHMS:
            if mark == _PROBABILITY:
                self._tell(LOGS, place)
            elif mark == _SUM_OF_EXPONENTIALS:
                self._tell(LOGS_SUM, place)
        elif function in _MEASURES:
            self._mark(result, _MEASURE)
        elif function in _SUMS:
            if mark == _EXPONENTIALS:
                self._mark(result, _SUM_OF_EXPONENTIALS)
            elif mark not in (_PROBABILITY, _BOUNDED):  # theirs are far from 0
                self._mark(result, _MEASURE)
        elif function in _RUNNING_SUMS:
            if mark == _EXPONENTIALS:
                self._mark(result, _SUM_OF_EXPONENTIALS)
        elif function in _EXTREMES:
            self._mark(result, _LARGEST)
        elif function in _ROOTS or (function in _POWERS and _is_number(other, 0.5)):
            self._mark(result, mark)
        elif function in _PROBABILITIES:
            self._mark(result, _PROBABILITY)
            if function in _SOFTMAXES and _is_of_one(args, kwargs, result):
                self._tell(SINGLE, place)
            elif function in _SOFTMAXES and _is_of_unit(args, kwargs, result):
                self._tell(UNIT, place)
            elif function in _SOFTMAXES:
                self._of_several.add(place)
        elif function in _EXPONENTIAL:
            # With the largest taken off before, none overflows.
            self._mark(result, _BOUNDED if mark == _LARGEST else _EXPONENTIALS)
        elif function in _DIFFERENCES:
            if self._mark_of(other) == _LARGEST:  # a range, or what has its largest taken off
                self._mark(result, _MEASURE if mark == _LARGEST else _LARGEST)
        elif function in _COMPLEMENTS and mark == _PROBABILITY:
            self._mark(result, mark)

    def _tell(self, fact: str, place: str) -> None:
        if len(self._found) < _MOST_TOLD:
            self._found.setdefault((fact, place), line_of_code())

    def facts(self) -> list[tuple[str, float, str]]:
        """Name, line of the code and place of each, when the step's backward passes are over.

        Of what graphs alone show neither line nor place is known: 0, and empty.
        """
        self._looks += self.is_open
        found = [
            (fact, float(line), place)
            for (fact, place), line in self._found.items()
            if (fact != SINGLE or place not in self._of_several)
            # By itself it may be a choice among one.
            and (fact != UNIT or UNIT in self._in_graph)
        ]
        placed = {fact for fact, _ in self._found}
        shown = [fact for fact in self._in_graph if fact not in placed and fact != UNIT]
        found += [(fact, 0.0, "") for fact in shown]
        self.clear()
        return found

    def graph_seen(self, found: list[str]) -> None:
        """What `hazards_in` found in the graph of the step's loss."""
        self._in_graph = found


# In graphs.

_PASS_ON = frozenset(
    {
        "AliasBackward0", "AsStridedBackward0", "CloneBackward0", "DiagonalBackward0",
        "ExpandBackward0", "FlipBackward0", "GatherBackward0", "IndexBackward0",
        "IndexSelectBackward0", "PermuteBackward0", "ReshapeAliasBackward0", "SelectBackward0",
        "SliceBackward0",
        "SqueezeBackward0", "SqueezeBackward1", "SqueezeBackward2", "TBackward0",
        "ToCopyBackward0", "TransposeBackward0", "UnbindBackward0", "UnsafeViewBackward0",
        "UnsqueezeBackward0", "ViewBackward0",
    }
)  # fmt: skip
# With a number: a `class Norm(torch.autograd.Function)` of the user's has a node without.
_NORMS = re.compile(r"(LinalgVectorNorm|Norm|Std|Var|Mean|Sum)Backward\d+")
_SUM_NODES = frozenset({"SumBackward0", "SumBackward1"})
_RUNNING_SUM = "CumsumBackward0"
_LOG_NODES = frozenset({"LogBackward0", "Log2Backward0", "Log10Backward0"})
_PROBABILITY_NODES = frozenset({"SigmoidBackward0", "SoftmaxBackward0"})
_CLAMP_NODES = frozenset({"ClampBackward1", "ClampMinBackward0"})  # at numbers
_ADDING = ("AddBackward0", "RsubBackward1", "SubBackward0")
_MULTIPLYING = ("DivBackward0", "MulBackward0")
# Loss functions whose node is not called so. `l1_loss` takes sizes of differences.
_LOSS_NODES = frozenset(
    {"AbsBackward0", "BinaryCrossEntropyBackward0", "BinaryCrossEntropyWithLogitsBackward0"}
)
_NONNEGATIVE_NODES = frozenset({"AbsBackward0", "ReluBackward0"})


def _behind(node: Any) -> Any:
    """The node whose values this one passes on."""
    for _ in range(_MOST_STEPS):
        if node is None or node.name() not in _PASS_ON:
            return node
        node = edges_of(node)[0]
    return None


def _are_exponentials(node: Any) -> bool:
    node = _behind(node)
    if node is None or node.name() != "ExpBackward0":
        return False
    inner = _behind(edges_of(node)[0])
    # Perhaps with the largest taken off, and then none overflows.
    return inner is None or inner.name() != "SubBackward0"


def _is_sum_of_exponentials(node: Any) -> bool:
    node = _behind(node)
    if node is None or (node.name() not in _SUM_NODES and node.name() != _RUNNING_SUM):
        return False
    return _are_exponentials(edges_of(node)[0])


def _is_log_of_exponentials(node: Any) -> bool:
    """The logarithm of a sum of exponentials, or of two such sums or exponentials."""
    node = _behind(edges_of(node)[0])
    if node is not None and node.name() == "AddBackward0":
        added = [edge for edge in edges_of(node) if edge is not None]
        return len(added) == 2 and all(
            _are_exponentials(each) or _is_sum_of_exponentials(each) for each in added
        )
    return _is_sum_of_exponentials(node)


def _is_measure(node: Any) -> bool:
    """A norm, a deviation, a sum, or the root of one: nothing was added to it."""
    node = _behind(node)
    for _ in range(_MOST_STEPS):
        if node is None:
            return False
        name = node.name()
        if name == "SqrtBackward0" or (
            name == "PowBackward0" and getattr(node, "_saved_exponent", None) == 0.5
        ):
            node = _behind(edges_of(node)[0])
            continue
        if name in _CLAMP_NODES and _leaves_zero(getattr(node, "_saved_min", 1)):
            node = _behind(edges_of(node)[0])
            continue
        if _NORMS.fullmatch(name) is None:
            return False
        inner = _behind(edges_of(node)[0])
        return inner is None or inner.name() not in ("ExpBackward0", *_PROBABILITY_NODES)
    return False


def _is_root(node: Any) -> bool:
    """Whose derivative at 0 is infinite."""
    exponent = getattr(node, "_saved_exponent", None) if node.name() == "PowBackward0" else None
    return node.name() == "SqrtBackward0" or (isinstance(exponent, float) and 0 < exponent < 1)


def _is_least_at_zero(node: Any) -> bool:
    """What is cut off at 0, a size or a square: 0 is the lowest of its values, and one of them."""
    node = _behind(node)
    if node is None:
        return False
    name = node.name()
    if name in _CLAMP_NODES:
        return _is_number(getattr(node, "_saved_min", None), 0)
    if name == "PowBackward0":
        return _is_number(getattr(node, "_saved_exponent", None), 2)
    edges = edges_of(node)
    is_square = name == "MulBackward0" and len(edges) == 2 and edges[0] is not None
    return name in _NONNEGATIVE_NODES or (is_square and edges[0] is edges[1])


def _is_probability(node: Any) -> bool:
    for _ in range(_MOST_STEPS):
        node = _behind(node)
        if node is None:
            return False
        name, edges = node.name(), edges_of(node)
        if name in _PROBABILITY_NODES:
            return True
        if name == "DivBackward0":
            return len(edges) > 1 and _is_sum_of_exponentials(edges[1])
        if name.startswith("RsubBackward"):  # 1 - p
            node = edges[0]
        elif name in _SUM_NODES:  # of p times one-hot labels: p of the label
            node = _behind(edges[0])
            if node is None or node.name() != "MulBackward0":
                return False
        elif name == "MulBackward0" and len([edge for edge in edges if edge is not None]) == 1:
            node = next(edge for edge in edges if edge is not None)
        else:
            return False
    return False


def is_log_of_probability(node: Any) -> bool:
    """A node that computes the logarithm of a softmax or sigmoid, or of one of its values."""
    return node.name() in _LOG_NODES and _is_probability(edges_of(node)[0])


def _is_with_number(node: Any) -> bool:
    """Whether a node adds a number or a tensor, or multiplies with a number."""
    name = node.name()
    if name in _ADDING:
        return len(next_nodes(node)) == 1
    other = saved_by(node, "other") if name in _MULTIPLYING else None
    return other is not None and other.dim() == 0


def _is_given_to_loss(softmax: Any, users: dict[Any, list[Any]]) -> bool:
    """Whether what a softmax gives gets to a loss function with no weights behind it."""
    waiting = [(softmax, 0)]
    while waiting:
        here, steps = waiting.pop()
        for node in users.get(here, []) if steps < _MOST_STEPS else []:
            name = node.name()
            if name in _LOSS_NODES or name.endswith("LossBackward0"):
                return True
            is_same = name in _PASS_ON or name in _CLAMP_NODES or name in _LOG_NODES
            if is_same or _is_with_number(node):
                waiting.append((node, steps + 1))
    return False


def _is_unit_given_to_loss(nodes: Collection[Any]) -> bool:
    """Whether a softmax over the one value of each sample is the last before a loss function."""
    units = []
    for node in nodes:
        shape = shape_at(node, 0) if node.name() == "SoftmaxBackward0" else None
        if shape is not None and len(shape) == 2 and shape[1] == 1 < shape[0]:
            units.append(node)
    if not units:
        return False
    users: dict[Any, list[Any]] = {}
    for node in nodes:
        for other in next_nodes(node):
            users.setdefault(other, []).append(node)
    return any(_is_given_to_loss(unit, users) for unit in units)


def hazards_in(nodes: Collection[Any]) -> list[str]:
    """The facts that the nodes of a graph show: DIVIDES, LOGS, LOGS_SUM, UNIT."""
    found: set[str] = set()
    if _is_unit_given_to_loss(nodes):
        found.add(UNIT)
    for node in nodes:
        name = node.name()
        if name in _LOG_NODES:
            if is_log_of_probability(node):
                found.add(LOGS)
            elif _is_log_of_exponentials(node):
                found.add(LOGS_SUM)
        elif name == "DivBackward0":
            edges = edges_of(node)
            if len(edges) > 1 and _is_sum_of_exponentials(edges[1]):
                found.add(LOGS)
            elif len(edges) > 1 and _is_measure(edges[1]):
                found.add(DIVIDES)
        elif name in ("ReciprocalBackward0", "RsqrtBackward0"):
            if _is_measure(edges_of(node)[0]):
                found.add(DIVIDES)
        elif _is_root(node):
            inner = edges_of(node)[0]
            if _is_measure(inner) or _is_least_at_zero(inner):
                found.add(DIVIDES)  # its derivative divides by it
    return sorted(found)
