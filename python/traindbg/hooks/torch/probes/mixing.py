"""Where a model's forward pass works over the samples of a batch as over positions or features.

The dimension along which a batch's samples lie is followed from the model's first input through
what the first forward passes call. Told of are a recurrent layer or an attention that goes from
sample to sample, a softmax that sums to one over them, and a `view` or `reshape` that puts them
elsewhere (where a transpose is meant): it makes each new sample of pieces of several. That also of
samples that are taken apart in between, as clips into a batch of frames.

Which dimension of the input that is, the loss says: it must be given one label for each. That these
are samples, which know nothing of each other, and no steps of one thing, is known where a
`DataLoader` draws batches of this size at random, or rows that came together come apart later on
(`samples_dealt`). But for these rows no value is read, and no tensor is kept.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.nn import functional

from traindbg import _core
from traindbg.hooks.torch.base.device import capturing_graph
from traindbg.hooks.torch.data.hazards import line_of_code
from traindbg.hooks.torch.data.loaders import sizes
from traindbg.hooks.torch.probes.samples import Dealt

if TYPE_CHECKING:
    from collections.abc import Callable

# The facts. The first one is how many samples were followed; the others name the layer, and are the
# line of its code.
FOLLOWED = "samples_followed"  # 0: the loss was given another number of labels
DEALT = "samples_dealt"  # 1: they are dealt anew into batches
SOFTMAX = "softmax_over_samples"
VIEW = "samples_cut_anew"  # by a view or reshape
CUT = "samples_cut_before"  # the same in front of the model; the line is that of its call
RECURRENT = "recurrent_over_samples"
ATTENTION = "attention_over_samples"

_MOST_MARKS = 1024  # tensors of a pass whose samples are known
_MOST_TOLD = 8  # places
_FEWEST = 2  # samples of a batch
_MOST_LOOKS = 6  # steps
_FEWEST_LOOKS = 2  # of which one must show something


def _named(*names: str) -> frozenset[Any]:
    homes = (torch, torch.Tensor, functional)
    return frozenset(getattr(home, name) for name in names for home in homes if hasattr(home, name))


_SOFTMAXES = _named("softmax", "log_softmax")
_VIEWS = _named("view", "reshape", "unflatten", "flatten", "_unsafe_view")
_TRANSPOSES = _named("transpose", "swapaxes", "swapdims", "transpose_")
_PERMUTES = _named("permute")
_MOVES = _named("movedim", "moveaxis")
_SPLITS = _named("chunk", "split", "tensor_split")
_NARROWS = _named("narrow")
_EXPANDS = _named("expand")
_CONVOLUTIONS = _named("conv1d", "conv2d")
_TURNED = frozenset({torch.t, torch.Tensor.t, torch.Tensor.T.__get__, torch.Tensor.mT.__get__})
_UNSQUEEZES = _named("unsqueeze")
_SQUEEZES = _named("squeeze")
_ITEMS = frozenset({torch.Tensor.__getitem__})
_SELECTS = _named("select")
_REDUCTIONS = _named("mean", "sum", "amax", "amin", "max", "min", "logsumexp", "std", "var")
_JOINS = _named("cat", "concat", "concatenate")
_STACKS = _named("stack")
_RECURRENTS = frozenset(
    getattr(torch, name) for name in ("gru", "lstm", "rnn_relu", "rnn_tanh") if hasattr(torch, name)
)
# Which its module gives [positions, samples, width].
_multi_head: Any = functional.multi_head_attention_forward
_EMBEDDINGS = _named("embedding")
_PRODUCTS = _named("linear", "matmul", "__matmul__", "bmm")  # of the first with the second
# What leaves the samples where they are: sizes before and after say whether they can be there.
_SAME = _named(
    "abs", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "__add__", "add", "add_",
    "avg_pool1d", "avg_pool2d", "batch_norm", "celu", "clamp", "clone", "contiguous",
    "detach", "div", "div_", "double", "dropout", "dropout_", "elu", "exp", "float",
    "gelu", "group_norm", "gru_cell", "half", "hardtanh", "__iadd__", "__imul__",
    "interpolate", "__isub__", "layer_norm", "leaky_relu", "log", "lstm_cell", "masked_fill",
    "max_pool1d", "max_pool2d", "__mul__", "mul", "mul_", "neg", "normalize", "pad", "__pow__",
    "pow", "__radd__", "relu", "relu_", "rms_norm", "__rmul__", "rnn_relu_cell",
    "rnn_tanh_cell", "__rsub__", "rsub", "selu", "sigmoid", "silu", "softplus", "sqrt",
    "square", "__sub__", "sub", "sub_", "tanh", "to", "__truediv__", "type_as", "where",
)  # fmt: skip

Axis = int | None


def _dim(args: Any, kwargs: Any, number: int, word: str = "dim") -> Any:
    return args[number] if len(args) > number else kwargs.get(word)


def _permuted(value: torch.Tensor, axis: int, args: Any, kwargs: Any, result: Any) -> Axis:
    is_each = len(args) > 2 or (len(args) == 2 and isinstance(args[1], int))
    given = args[1:] if is_each else _dim(args, kwargs, 1, "dims")
    order: list[int] = [int(each) % value.dim() for each in given]
    return order.index(axis)


def _transposed(value: torch.Tensor, axis: int, args: Any, kwargs: Any, result: Any) -> Axis:
    first = args[1] if len(args) > 1 else kwargs.get("dim0", kwargs.get("axis0"))
    second = args[2] if len(args) > 2 else kwargs.get("dim1", kwargs.get("axis1"))
    one, two = int(first) % value.dim(), int(second) % value.dim()
    return two if axis == one else one if axis == two else axis


def _turned(value: torch.Tensor, axis: int, args: Any, kwargs: Any, result: Any) -> Axis:
    return 1 - axis if value.dim() == 2 else None


def _moved(value: torch.Tensor, axis: int, args: Any, kwargs: Any, result: Any) -> Axis:
    source, to = _dim(args, kwargs, 1, "source"), _dim(args, kwargs, 2, "destination")
    if not isinstance(source, int) or not isinstance(to, int):
        return None
    number: int = value.dim()
    if axis == source % number:
        return to % number
    without = axis - 1 if axis > source % number else axis
    return without + 1 if without >= to % number else without


def _unsqueezed(value: torch.Tensor, axis: int, args: Any, kwargs: Any, result: Any) -> Axis:
    dim = int(_dim(args, kwargs, 1)) % (value.dim() + 1)
    return axis + (1 if dim <= axis else 0)


def _squeezed(value: torch.Tensor, axis: int, args: Any, kwargs: Any, result: Any) -> Axis:
    dim = _dim(args, kwargs, 1)
    if isinstance(dim, int):
        gone = [dim % value.dim()] if value.shape[dim] == 1 else []
    elif dim is None:
        gone = [each for each, size in enumerate(value.shape) if size == 1]
    else:
        gone = [int(each) % value.dim() for each in dim if value.shape[each] == 1]
    return axis - len([each for each in gone if each < axis])


def _item(value: torch.Tensor, axis: int, args: Any, kwargs: Any, result: Any) -> Axis:
    """`x[-1]`, `x[:, -1]`, `x[..., 0]`; not by tensors or lists."""
    key = args[1] if isinstance(args[1], tuple) else (args[1],)
    if not all(each is None or each is ... or type(each) in (int, slice) for each in key):
        return None
    given = sum(type(each) in (int, slice) for each in key)
    dim, returned = 0, 0  # before, and in what is returned
    for each in (*key, *([] if any(each is ... for each in key) else [...])):
        taken = value.dim() - given if each is ... else 0 if each is None else 1
        if dim <= axis < dim + taken:
            is_whole = each is ... or each == slice(None)
            return returned + axis - dim if is_whole else None
        dim += taken
        returned += 0 if type(each) is int else taken if each is not None else 1
    return None


def _selected(value: torch.Tensor, axis: int, args: Any, kwargs: Any, result: Any) -> Axis:
    dim = int(_dim(args, kwargs, 1)) % value.dim()
    return None if dim == axis else axis - (1 if dim < axis else 0)


def _reduced(value: torch.Tensor, axis: int, args: Any, kwargs: Any, result: Any) -> Axis:
    dim = _dim(args, kwargs, 1)
    if dim is None or isinstance(dim, torch.Tensor):
        return None
    dims = [each % value.dim() for each in ([dim] if isinstance(dim, int) else dim)]
    if axis in dims:
        return None
    returned = result[0] if isinstance(result, tuple) else result
    is_kept = returned.dim() == value.dim()
    return axis if is_kept else axis - sum(each < axis for each in dims)


def _joined(value: torch.Tensor, axis: int, args: Any, kwargs: Any, result: Any) -> Axis:
    return None if (_dim(args, kwargs, 1) or 0) % value.dim() == axis else axis


def _same(value: torch.Tensor, axis: int, args: Any, kwargs: Any, result: Any) -> Axis:
    returned = result[0] if isinstance(result, tuple) else result
    return axis if returned.dim() == value.dim() else None


def _multiplied(value: torch.Tensor, axis: int, args: Any, kwargs: Any, result: Any) -> Axis:
    """But for the last dimension, over which products sum."""
    is_left = value is args[0] and axis < value.dim() - 1
    return _same(value, axis, args, kwargs, result) if is_left else None


def _convolved(value: torch.Tensor, axis: int, args: Any, kwargs: Any, result: Any) -> Axis:
    return axis if axis == 0 and value is args[0] else None


def _split(value: torch.Tensor, axis: int, args: Any, kwargs: Any, result: Any) -> Axis:
    return None if (_dim(args, kwargs, 2) or 0) % value.dim() == axis else axis


def _narrowed(value: torch.Tensor, axis: int, args: Any, kwargs: Any, result: Any) -> Axis:
    return None if int(_dim(args, kwargs, 1)) % value.dim() == axis else axis


def _expanded(value: torch.Tensor, axis: int, args: Any, kwargs: Any, result: Any) -> Axis:
    added: int = result.dim() - value.dim()
    return axis + added


def _stacked(value: torch.Tensor, axis: int, args: Any, kwargs: Any, result: Any) -> Axis:
    dim = int(_dim(args, kwargs, 1) or 0) % (value.dim() + 1)
    return axis + (1 if dim <= axis else 0)


_FOLLOWED: dict[Any, Callable[[torch.Tensor, int, Any, Any, Any], Axis]] = {
    function: follow
    for functions, follow in (
        (_PERMUTES, _permuted),
        (_TRANSPOSES, _transposed),
        (_TURNED, _turned),
        (_MOVES, _moved),
        (_UNSQUEEZES, _unsqueezed),
        (_SQUEEZES, _squeezed),
        (_ITEMS, _item),
        (_SELECTS, _selected),
        (_REDUCTIONS, _reduced),
        (_JOINS, _joined),
        (_STACKS, _stacked),
        (_EMBEDDINGS, lambda _value, axis, _args, _kwargs, _result: axis),
        (_PRODUCTS, _multiplied),
        (_CONVOLUTIONS, _convolved),
        (_SPLITS, _split),
        (_NARROWS, _narrowed),
        (_EXPANDS, _expanded),
        (_SAME, _same),
        (_SOFTMAXES, _same),
    )
    for function in functions
}
WATCHED: frozenset[Any] = frozenset(_FOLLOWED) | _VIEWS | _RECURRENTS | frozenset({_multi_head})


class _Mark(NamedTuple):
    """Along which dimension of a tensor the samples lie."""

    tensor: weakref.ref[torch.Tensor]
    axis: int
    each: int  # places of each sample, one after the other: the frames of a clip


def _is_cut_anew(tensor: torch.Tensor) -> bool:
    """[time, samples, ...] by a view or reshape of [samples, time, ...]."""
    base = tensor._base
    return (
        type(base) is torch.Tensor
        and base.dim() > 1
        and base.shape[0] == tensor.shape[1] != tensor.shape[0] > 1
        and base.numel() == tensor.numel()
        and tensor.is_contiguous()
        and base.is_contiguous()
        and tensor.shape[0] % base.shape[0] != 0
    )


def _keeps_samples(value: torch.Tensor, axis: int, count: int, shape: torch.Size) -> Axis:
    """Where samples that lie whole along `axis` lie in a view of this shape; None: nowhere.

    Each is there a block of the same values where as many values come before as did.
    """
    before, passed = value.shape[:axis].numel(), 1
    for place, size in enumerate(shape):
        if passed == before and size % count == 0:
            return place
        passed *= size
    return None


def _labels_of(args: Any, kwargs: Any) -> tuple[int, int]:
    """How many samples the labels of a loss are for, and how many there are of each; 0: unknown."""
    labels = args[1] if len(args) > 1 else kwargs.get("target")
    if type(labels) is not torch.Tensor or labels.dim() not in (1, 2) or capturing_graph(labels):
        return 0, 0
    return labels.shape[0], labels.shape[1] if labels.dim() == 2 else 1


class _Following:
    """What a forward pass does with samples that lie along one dimension of its first input."""

    def __init__(self, axis: int) -> None:
        self.axis = axis
        self.begin()

    def begin(self) -> None:
        """A pass begins."""
        self.samples = 0
        self.shape = torch.Size()  # of the input
        self.is_followed = False  # something was called with what was computed of it
        self.has_scores = False  # rows of numbers were computed, one for each
        self._marks: dict[int, _Mark] = {}
        self.found: dict[tuple[str, str], int] = {}
        self._normalised: set[tuple[str, torch.Size, bool]] = set()  # whether over samples

    def input_given(self, tensor: torch.Tensor) -> None:
        """The first one."""
        if tensor.dim() < 2 or tensor.shape[self.axis] < _FEWEST:
            return
        self.samples, self.shape = tensor.shape[self.axis], tensor.shape
        if self.axis == 1 and _is_cut_anew(tensor):
            self._tell(CUT, "")
        self._mark(tensor, self.axis)

    def _mark(self, result: Any, axis: Axis, each: int = 1) -> None:
        if isinstance(result, tuple) and result:
            result = result[0]  # values beside their places, outputs beside a state
        if axis is None or type(result) is not torch.Tensor or result.dim() <= axis:
            return
        if result.shape[axis] == self.samples * each and len(self._marks) < _MOST_MARKS:
            self._marks[id(result)] = _Mark(weakref.ref(result), axis, each)

    def _axis_of(self, value: torch.Tensor) -> tuple[int, int] | None:
        """None also where its shape was changed in place since."""
        known = self._marks.get(id(value))
        tensor = None if known is None else known.tensor()
        if known is None or tensor is None or tensor is not value or tensor.dim() <= known.axis:
            return None
        is_there = tensor.shape[known.axis] == self.samples * known.each
        return (known.axis, known.each) if is_there else None

    def _first_known(self, values: Any) -> tuple[torch.Tensor, int, int] | None:
        for value in values:
            if isinstance(value, (list, tuple)):
                found = self._first_known(value)
                if found is not None:
                    return found
            elif isinstance(value, torch.Tensor):
                axis = self._axis_of(value)
                if axis is not None:
                    return value, *axis
        return None

    def called(self, place: str, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        """One of WATCHED was called and has returned."""
        known = self._first_known(args)
        if known is None:
            return
        self.is_followed = True
        value, axis, each = known
        if function in _VIEWS:
            self._viewed(place, value, axis, each, result)
        elif each > 1:  # as a batch of more samples; who goes from one to the next is not asked
            follow = _FOLLOWED.get(function)
            if follow is not None and function not in _SPLITS:
                self._mark(result, follow(value, axis, args, kwargs, result), each)
        elif function in _RECURRENTS:
            self._recurrent_called(place, value, axis, args, result)
        elif function is _multi_head:
            if axis == 0 and value.dim() == 3 and value.shape[1] > 1:
                self._tell(ATTENTION, place)
            self._mark(result, axis)
        else:
            if function in _SOFTMAXES:
                self._softmax_called(place, value, axis, args, kwargs)
            to: Axis = _FOLLOWED[function](value, axis, args, kwargs, result)
            for part in result if function in _SPLITS else (result,):
                self._mark(part, to)
            if function in _PRODUCTS and to == 0 and result.dim() == 2:
                self.has_scores = True

    def _viewed(
        self, place: str, value: torch.Tensor, axis: int, each: int, result: torch.Tensor
    ) -> None:
        count, shape = self.samples, result.shape
        kept = _keeps_samples(value, axis, count, shape)
        if kept is not None:
            self._mark(result, kept, shape[kept] // count)
        elif axis == 0:
            if len(shape) > 1 and shape[0] > 1 and shape[1] == count and each in (1, shape[0]):
                self._tell(VIEW, place)  # [time, samples, ...], of [samples, time, ...]
        elif each > 1:
            return
        elif axis == 1 and len(shape) > 0 and shape[0] == count != value.shape[0] > 1:
            self._tell(VIEW, place)  # [samples, ...], of [time, samples, ...]

    def _recurrent_called(
        self, place: str, value: torch.Tensor, axis: int, args: Any, result: Any
    ) -> None:
        is_packed = len(args) > 1 and isinstance(args[1], torch.Tensor) and args[1].dim() == 1
        if is_packed or value is not args[0] or value.dim() != 3:
            return
        is_batch_first = args[-1] is True
        along = 1 if is_batch_first else 0
        if axis == along and value.shape[1 - along] > 1:
            self._tell(RECURRENT, place)
        self._mark(result, axis)
        if axis != along:  # [layers, samples, width], of one state or two
            for state in result[1:]:
                self._mark(state, 1)

    def _softmax_called(
        self, place: str, value: torch.Tensor, axis: int, args: Any, kwargs: Any
    ) -> None:
        """Scores of pairs of samples, as of contrastive losses, are as many both ways.

        Or a multiple: several captions of a picture.
        """
        dim = _dim(args, kwargs, 1)
        if dim is None:  # what PyTorch takes then
            dim = 0 if value.dim() in (0, 1, 3) else 1
        if not isinstance(dim, int):
            return
        is_over_samples = dim % value.dim() == axis
        self._normalised.add((place, value.shape, is_over_samples))
        others = [size for each, size in enumerate(value.shape) if each != axis]
        is_of_pairs = any(size % self.samples == 0 for size in others)
        if is_over_samples and max(others, default=1) > 1 and not is_of_pairs:
            self._tell(SOFTMAX, place)

    def _tell(self, fact: str, place: str) -> None:
        if len(self.found) < _MOST_TOLD:
            self.found.setdefault((fact, place), line_of_code())

    def facts(self) -> list[tuple[str, float, str]]:
        """Name, line of the code and place of each."""
        # Alternately over both, as Sinkhorn's algorithm does, is meant.
        both = {
            place
            for place, shape, is_over in self._normalised
            if is_over and (place, shape, False) in self._normalised
        }
        return [
            (fact, float(line), place)
            for (fact, place), line in self.found.items()
            if fact != SOFTMAX or place not in both
        ]


def _is_by_loader(way: _Following, of_each: int) -> bool:
    """Whether labels for each step of sequences begin with the samples, and not with the steps.

    A loader draws so many of them at random, and none is known to hand out as many as there are
    steps.
    """
    is_drawn = way.samples in sizes.dealt and way.samples not in sizes.in_order
    is_other = of_each != way.samples and of_each not in sizes.dealt | sizes.in_order
    return way.axis == 0 and is_drawn and is_other


class MixingObserver:
    """What the forward passes of one step after the other do with their samples.

    One per recording; on the thread of the training.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Another training begins."""
        self._looks = self._shown = 0
        self._rows = Dealt()
        self._is_dealt = False
        self._waits_for = 0  # samples of a batch, of which it is to be seen how they are dealt
        self.clear()

    def clear(self) -> None:
        """Drops what was seen of a step."""
        self.is_open = False
        self._ways = (_Following(0), _Following(1))
        self._told: list[tuple[str, float, str]] = []

    def begin(self, is_due: bool) -> None:
        """A forward pass of the training begins; of a step it may be one of several."""
        is_wanted = self._looks < _FEWEST_LOOKS or (self._shown > 0 and self._looks < _MOST_LOOKS)
        self.is_open = is_due and is_wanted
        if self.is_open:
            for way in self._ways:
                way.begin()

    def input_given(self, number: int, tensor: torch.Tensor) -> None:
        """The model is given an input."""
        if number > 0 or type(tensor) is not torch.Tensor:
            return
        if self.is_open:
            for way in self._ways:
                way.input_given(tensor)
        if self._waits_for == tensor.shape[:1].numel() and tensor.dim() > 1:
            prints = _core.row_prints(tensor, False)
            if prints is not None:
                self._rows.learn(prints.halves)

    @property
    def wants_rows(self) -> bool:
        """Whether it is to be seen how rows are dealt."""
        return self._waits_for > 0

    def called(self, place: str, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        """One of WATCHED was called and has returned."""
        for way in self._ways:
            if way.samples >= _FEWEST:
                way.called(place, function, args, kwargs, result)

    def loss_computed(self, args: Any, kwargs: Any) -> None:
        """By a loss function, in training."""
        if not self.is_open or any(value > 0 for _, value, _ in self._told):
            return
        samples, of_each = _labels_of(args, kwargs)
        ways = [
            way
            for way in self._ways
            if way.samples == samples >= _FEWEST
            and (of_each == 1 or of_each not in way.shape[1:] or _is_by_loader(way, of_each))
        ]
        if len(ways) != 1 or not self._is_sure(ways[0]):
            self._told = [(FOLLOWED, 0.0, "")]
        elif ways[0].is_followed:
            found = ways[0].facts()
            self._shown += bool(found)
            self._told = [*found, (FOLLOWED, float(samples), "")]
            is_by_rows = ways[0].axis == 0
            if found and not self._is_dealt:
                is_drawn = samples in sizes.dealt and samples not in sizes.in_order
                is_cut = any(fact == CUT for fact, _, _ in found)
                self._is_dealt = is_drawn or is_cut
                self._waits_for = samples if is_by_rows and not self._is_dealt else 0
                if self._is_dealt:
                    self._told.append((DEALT, 1.0, ""))

    def _is_sure(self, way: _Following) -> bool:
        """Of samples along the second dimension: that they do not lie along the first one."""
        if way.axis == 0:
            return True
        is_many = way.shape[0] % way.samples == 0  # several for each label: two views, choices
        return len(way.shape) > 2 and not is_many and not self._ways[0].has_scores

    def facts(self) -> list[tuple[str, float, str]]:
        """Name, value and place of each, when the step's backward passes are over."""
        told = self._told
        if told:
            self._looks += 1
        if self._waits_for and self._rows.is_anew:
            self._is_dealt, self._waits_for = True, 0
            told = [*told, (DEALT, 1.0, "")]
        if self.is_open:
            self.clear()
        return told
