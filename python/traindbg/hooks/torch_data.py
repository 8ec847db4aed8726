"""Facts about the data of a training, beside what the reductions of single tensors tell.

How much there is beside the batch at hand, and whether a column of the input is the label. Nothing
of a loader or a tensor is kept.
"""

from __future__ import annotations

import functools
import gc
import math
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from traindbg.hooks.torch_device import capturing_graph, own_operations, widest_of
from traindbg.hooks.torch_guard import guarded
from traindbg.hooks.torch_passes import Pass
from traindbg.hooks.torch_rounds import rounds
from traindbg.hooks.torch_sources import sources

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_DATA = 64
_FEW_REFERENCES = 8  # to a tensor, by a loop and our hooks; of more, containers are looked for


class LoaderSizes:
    """Of the `DataLoader`s that were asked for batches where gradients are made."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.batches = 0  # the most of one loader
        self.stream_workers = 0  # the most processes that go through one `IterableDataset`
        self.settings: dict[str, str] = {}  # of the one with the most batches, as facts of a run
        # By the id of the data: another loader may be made for each.
        self._passes: dict[int, int] = {}
        # The pass under way, if it gives each row once and there is no other data.
        self.drawing: Pass | None = None
        self._begun = 0
        self.dealt: set[int] = set()  # sizes of batches of which each is drawn at random
        self.in_order: set[int] = set()  # and of those that may be drawn in any other way

    @property
    def passes(self) -> int:
        """How often the same data was gone through, at the most; 0 where no loader was seen."""
        return max(self._passes.values(), default=0)

    def begins(self, loader: Any) -> None:
        """A loader is asked for its batches."""
        data = id(getattr(loader, "dataset", loader))
        if data in self._passes or len(self._passes) < _MOST_DATA:
            self._passes[data] = self._passes.get(data, 0) + 1
        self._begun += 1
        self.drawing = None
        if len(self._passes) == 1 and _draws_once(loader):
            self.drawing = Pass(self._begun, len(loader.sampler))
        if isinstance(getattr(loader, "dataset", None), torch.utils.data.IterableDataset):
            # Its length, if there is one, may be anything.
            self.stream_workers = max(self.stream_workers, int(loader.num_workers))
            return
        size = getattr(loader, "batch_size", None)
        if isinstance(size, int):
            (self.dealt if _draws_at_random(loader) else self.in_order).add(size)
        batches = len(loader)
        if batches >= self.batches:
            self.settings = _settings_of(loader)
        self.batches = max(self.batches, batches)


def _draws_once(loader: Any) -> bool:
    """Whether one pass gives each row at most once, by samplers whose order is known."""
    data = torch.utils.data
    if isinstance(getattr(loader, "dataset", None), data.IterableDataset):
        return False
    if type(getattr(loader, "batch_sampler", None)) is not data.BatchSampler:
        return False
    sampler = loader.sampler
    if type(sampler) is data.RandomSampler:
        return not sampler.replacement and len(sampler) <= len(loader.dataset)
    return type(sampler) is data.SequentialSampler


def _draws_at_random(loader: Any) -> bool:
    """Whether each row of a batch is drawn for itself, by a sampler that is known."""
    data = torch.utils.data
    samplers = (data.RandomSampler, data.SubsetRandomSampler, data.WeightedRandomSampler)
    is_plain = type(getattr(loader, "batch_sampler", None)) is data.BatchSampler
    return is_plain and type(loader.sampler) in samplers


def _settings_of(loader: Any) -> dict[str, str]:
    settings = {"loader_workers": str(loader.num_workers)}
    if isinstance(loader.batch_size, int):
        settings["loader_batch_size"] = str(loader.batch_size)
    # A sampler of the user's own may do either.
    data = torch.utils.data
    if type(loader.sampler) is data.RandomSampler:
        settings["loader_shuffles"] = "true"
    elif type(loader.sampler) is data.SequentialSampler:
        settings["loader_shuffles"] = "false"
    return settings


sizes = LoaderSizes()


def listening_init(original: Callable[..., Any]) -> Callable[..., Any]:
    """`DataLoader.__init__`, of which the line is noted."""

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        original(self, *args, **kwargs)
        guarded("sources", sources.made, self)

    return __init__


def listening_iter(
    is_heard: Callable[[], bool], original: Callable[..., Any]
) -> Callable[..., Any]:
    """`DataLoader.__iter__`, of whose loader the size is noted where `is_heard()`."""

    def note(loader: Any) -> None:
        what = ""
        if is_heard():
            sizes.begins(loader)
            rounds.pass_begins()
        else:
            what = "evaluation_"
        sources.used(f"{what}loader", loader)
        sources.note(f"{what}loop")

    @functools.wraps(original)
    def __iter__(self: Any) -> Any:  # noqa: N807
        guarded("loaders", note, self)
        return original(self)

    return __iter__


def batches_in_storage(tensor: torch.Tensor) -> float:
    """How many such tensors the memory holds that this one is a slice of, by its rows: at least 1.

    Rows are counted by the first dimension's stride, so that some columns of a table count as all
    of it. 1 also where it cannot be told.
    """
    if type(tensor) is not torch.Tensor or tensor.dim() == 0 or tensor.layout != torch.strided:
        return 1.0
    rows, stride = tensor.shape[0], tensor.stride(0)
    if rows == 0 or stride <= 0 or tensor.is_conj() or tensor.is_quantized:
        return 1.0
    elements = tensor.untyped_storage().nbytes() // tensor.element_size()
    held: float = elements / (stride * rows)
    return max(1.0, held)


def places_in_containers(tensor: torch.Tensor) -> int:
    """In how many places of lists this very tensor lies, alone or in a tuple or dict.

    A list of batches that were all written into one buffer has it once for each. What is handed
    from call to call lies in tuples, too, but these in no list. 0 where few refer to the tensor,
    which costs nothing; else all objects are gone through twice (milliseconds to tenths of a
    second): to be asked once for each tensor.
    """
    if sys.getrefcount(tensor) <= _FEW_REFERENCES:
        return 0
    holders = gc.get_referrers(tensor)
    places = sum(item is tensor for each in holders if type(each) is list for item in each)
    parts = {id(each): each for each in holders if type(each) in (tuple, dict)}
    del holders
    for batches in gc.get_referrers(*parts.values()):
        if type(batches) is list:
            places += sum(id(item) in parts for item in batches)
    return places


_FEWEST_STEPS = 3  # of a series
_FEWEST_ROWS = 24  # with fewer, two columns of zeros and ones are alike by chance
_MOST_VALUES = 1 << 20


def closest_column(
    inputs: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, bool] | None:
    """Of a table of inputs, the size of the largest correlation with the labels, and its column.

    One value each, on the inputs' device. Of series the last step is looked at, which the third
    says: there a window is that ends too late. None where they are no real numbers with one label
    for each row, or too many or too few of them. Cost: one pass over the table, in float64.
    """
    rows = labels.numel()
    if (
        rows < _FEWEST_ROWS
        or inputs.numel() > _MOST_VALUES
        or not inputs.is_floating_point()
        or inputs.layout is not torch.strided
        or labels.layout is not torch.strided
        or labels.is_complex()
        or labels.device != inputs.device
    ):
        return None
    ends = _last_steps(inputs, rows)
    if ends is None and (inputs.dim() != 2 or inputs.shape[0] != rows or inputs.shape[1] < 2):
        return None
    wide = widest_of(inputs)
    parts = [inputs] if ends is None else ends
    table = torch.cat([part.detach().to(wide) for part in parts], 1)
    table = table - table.mean(0)
    wanted = labels.detach().reshape(rows).to(wide)
    wanted = wanted - wanted.mean()
    # A column that is constant has no correlation.
    size = (table.square().sum(0) * wanted.square().sum()).sqrt()
    found = torch.where(size > 0, (wanted @ table).abs() / size.clamp_min(1e-300), 0.0)
    value = found.max()
    # What two parts share is in both of them: the first one, whichever rounding makes the larger.
    column = (found >= value - 1e-9).int().argmax()
    first = parts[0].shape[1]
    return value, torch.where(column < first, column, column - first), ends is not None


def _last_steps(inputs: torch.Tensor, rows: int) -> list[torch.Tensor] | None:
    """Of as many series the last step, as one table; as two where either of two sizes may be steps.

    Series are (rows, steps, values) or (steps, rows, values), as of recurrent layers, or (rows,
    channels, steps), as of convolutions, where there are more steps than channels. None: no series,
    or one without values.
    """
    if inputs.dim() != 3 or inputs.numel() == 0:
        return None
    if inputs.shape[0] != rows:
        is_series = inputs.shape[1] == rows and inputs.shape[0] >= _FEWEST_STEPS
        return [inputs[-1]] if is_series else None
    ends = []
    if inputs.shape[2] >= _FEWEST_STEPS and inputs.shape[1] < inputs.shape[2]:
        ends.append(inputs[..., -1])
    if inputs.shape[1] >= _FEWEST_STEPS:
        ends.append(inputs[:, -1])
    return ends or None


def one_sided_column(
    inputs: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None:
    """Of a table, the column that tells a label of two best by whether it has its usual value.

    A column that is filled in only once the label is known (a recovery after a default) has its
    usual value, mostly 0, in all rows of the one label, and in few of the other. Returns the share
    of rows in which the two agree, the column, and how many rows have another value than the usual
    one; the share is 0 where no column has only rows of one label without its usual value. None
    where it is no table with one label of 0 or 1 for each row. Cost: a sort of each column.
    """
    rows = labels.numel()
    if not _is_table_of(inputs, labels, rows) or inputs.numel() > _MOST_VALUES // 16:
        return None
    table, wanted = inputs.detach(), labels.detach().reshape(rows, 1)
    is_one, is_zero = wanted == 1, wanted == 0
    is_other = table != table.mode(0).values
    ones, zeros = (is_other & is_one).sum(0), (is_other & is_zero).sum(0)
    agree_one = ones + (~is_other & is_zero).sum(0)
    agree_zero = zeros + (~is_other & is_one).sum(0)
    is_binary = (is_one | is_zero).all() & is_one.any() & is_zero.any()
    agree = torch.maximum(agree_one * (zeros == 0), agree_zero * (ones == 0)) * is_binary
    best, column = agree.max(0)
    other = (ones + zeros).index_select(0, column.reshape(1)).squeeze(0)  # waits for no device
    return best / rows, column, other


class Beyond(NamedTuple):
    """Of a column beyond one value of which lie all rows of one label: one value each."""

    columns: torch.Tensor  # there are so many of them; the rest is of the first
    column: torch.Tensor
    is_above: torch.Tensor  # the rows of label 1 lie above those of label 0, else below
    low: torch.Tensor  # the largest value of the lower ones
    high: torch.Tensor  # the smallest value of the upper ones
    deviation: torch.Tensor  # of the column's values
    fewer: torch.Tensor  # rows of the label that has fewer
    others: torch.Tensor  # what the other columns tell of the label: 1 where that is chance
    rows: int


def column_beyond(inputs: torch.Tensor, labels: torch.Tensor) -> Beyond | None:
    """Whether one value of a column parts the rows of label 0 from those of label 1.

    So does a number that the label was made of by a limit (a delay of fifteen minutes and more is
    "late"). `others` is the mean of (rows - 1) r² of the other columns, r being their correlation
    with the label. None where it is no table with one label of 0 or 1 for each row. Cost: seven
    passes over the table.
    """
    rows = labels.numel()
    if not _is_table_of(inputs, labels, rows) or inputs.numel() > _MOST_VALUES:
        return None
    table, wanted = inputs.detach(), labels.detach().reshape(rows, 1)
    is_one, is_zero = wanted == 1, wanted == 0
    ones, zeros = is_one.sum(), is_zero.sum()
    first_one = table.masked_fill(~is_one, math.inf).amin(0)
    last_one = table.masked_fill(~is_one, -math.inf).amax(0)
    first_zero = table.masked_fill(~is_zero, math.inf).amin(0)
    last_zero = table.masked_fill(~is_zero, -math.inf).amax(0)
    is_above, is_below = first_one > last_zero, first_zero > last_one
    is_known = (is_one | is_zero).all() & (ones > 0) & (zeros > 0) & table.isfinite().all()
    parts = (is_above | is_below) & is_known
    column = parts.int().argmax()
    # Chosen by `index_select`, since an index that is a tensor waits for the device.
    picked = column.reshape(1)

    def of(values: torch.Tensor) -> torch.Tensor:
        return values.index_select(-1, picked).squeeze(-1)

    above = of(is_above)
    centred = table - table.mean(0)
    label = is_one.to(table.dtype) - is_one.to(table.dtype).mean()
    size = centred.square().sum(0) * label.square().sum()
    told = (label * centred).sum(0).square() / size.clamp_min(1e-30) * (rows - 1)
    return Beyond(
        parts.sum(),
        column,
        above,
        torch.where(above, of(last_zero), of(last_one)),
        torch.where(above, of(first_one), of(first_zero)),
        of(table.std(0)),
        torch.minimum(ones, zeros),
        (told.sum() - of(told)) / (told.numel() - 1),
        rows,
    )


def _is_table_of(inputs: torch.Tensor, labels: torch.Tensor, rows: int) -> bool:
    """Rows and two columns or more of floating point, and one label for each row."""
    return (
        inputs.dim() == 2
        and inputs.shape[0] == rows
        and inputs.shape[1] >= 2
        and rows >= _FEWEST_ROWS
        and inputs.is_floating_point()
        and inputs.layout is torch.strided
        and labels.layout is torch.strided
        and not labels.is_complex()
        and labels.device == inputs.device
    )


_MOST_PIXELS = 1 << 16

# Losses of yes or no: above which number an output says yes.
OF_TWO = {"binary_cross_entropy": 0.5, "binary_cross_entropy_with_logits": 0.0}


class Answers(NamedTuple):
    """To a question of yes or no: one value each, on the labels' device."""

    answers: torch.Tensor  # 0 where labels are not 0 and 1
    answers_yes: torch.Tensor  # labels that are 1
    answers_said_yes: torch.Tensor
    answers_right_yes: torch.Tensor  # both


def answers_of(
    name: str, predictions: Any, labels: Any, is_weighed: bool = False
) -> Answers | None:
    """What a loss of one output for each label was given; `name`: of the loss function.

    For each sample, that is, or pixel; or, where a yes `is_weighed`, for many labels of a sample.
    Of many evenly, at most `_MOST_PIXELS`. Many labels that are not weighed may be of classes, of
    which the likeliest counts.
    """
    if name not in OF_TWO or type(predictions) is not torch.Tensor:
        return None
    if type(labels) is not torch.Tensor or labels.device != predictions.device:
        return None
    is_one_each = labels.dim() == 1 or (labels.dim() >= 2 and labels.shape[1] == 1)
    if not (is_one_each or (is_weighed and labels.dim() > 0)):
        return None
    if labels.shape != predictions.shape or capturing_graph(labels):
        return None
    with own_operations():
        given, wanted = predictions.detach(), labels.detach()
        if wanted.numel() > _MOST_PIXELS:
            step = -(-wanted.numel() // _MOST_PIXELS)
            while math.gcd(step, wanted.shape[-1]) > 1:  # else the same few columns of each row
                step += 1
            given, wanted = given.flatten()[::step], wanted.flatten()[::step]
        known = ((wanted == 0) | (wanted == 1)).all()
        yes, said = (wanted > 0.5) & known, (given > OF_TWO[name]) & known
        counts = (known * wanted.numel(), yes.sum(), said.sum(), (yes & said).sum())
        return Answers(*(count.to(torch.float32) for count in counts))


def missed_labels(
    name: str, predictions: Any, labels: Any
) -> tuple[int, torch.Tensor, torch.Tensor] | None:
    """Of a classification: how many labels, the share that is not what is predicted, their mean.

    `name` is the loss function's. The last two are one value each on the labels' device, not a
    number where there are no labels, or they are no classes. None for any other loss.
    """
    if type(predictions) is not torch.Tensor or type(labels) is not torch.Tensor:
        return None
    if labels.numel() == 0 or labels.device != predictions.device:
        return None
    with own_operations():
        given, wanted = predictions.detach(), labels.detach()
        if name in ("cross_entropy", "nll_loss"):
            if given.dim() != 2 or wanted.dim() != 1 or wanted.is_floating_point():
                return None
            is_known = wanted >= 0  # -100 is no label
            missed = (given.argmax(1) != wanted) & is_known
        elif name in OF_TWO and given.shape == wanted.shape:
            is_known = ((wanted == 0) | (wanted == 1)).all().expand(wanted.shape)
            missed = ((given > OF_TWO[name]) != (wanted > 0.5)) & is_known
        else:
            return None
        known = is_known.sum().to(widest_of(wanted))
        mean = (wanted.to(known.dtype) * is_known).sum() / known
        return wanted.numel(), missed.sum() / known, mean
