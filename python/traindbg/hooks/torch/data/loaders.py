"""Facts about the data of a training, beside what the reductions of single tensors tell.

How much there is beside the batch at hand, with what weights rows are drawn, and what the answers
to yes or no are. Nothing of a loader or a tensor is kept.
"""

from __future__ import annotations

import functools
import gc
import math
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from traindbg.hooks.torch.base.device import capturing_graph, own_operations, widest_of
from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.base.sources import sources
from traindbg.hooks.torch.data.passes import Pass
from traindbg.hooks.torch.text.called import called
from traindbg.hooks.torch.text.rounds import rounds

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_DATA = 64
_MOST_DRAWN = 1 << 20  # rows, whose weights are sorted once
_FIRST_DRAWN = 4096  # of them, that are looked at before all are
_LOOKS_AT_WEIGHTS = 3  # passes: the loader that is trained from may be the second one
_MOST_WEIGHTS = 32  # that differ: of classes, not of single rows
_MOST_TOLD = 2  # steps at which they are told
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
        # Of the first loader that has some: the weights that rows are drawn with, and how many rows
        # have each.
        self._drawn: tuple[tuple[float, int], ...] = ()
        self._drawn_told = 0

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
        if not self._drawn and self._begun <= _LOOKS_AT_WEIGHTS:
            self._drawn = _weights_drawn_with(loader)
        batches = len(loader)
        if batches >= self.batches:
            self.settings = _settings_of(loader)
        self.batches = max(self.batches, batches)

    def weights_to_tell(self) -> tuple[tuple[float, int], ...]:
        """What rows are drawn with, to be told at two steps; empty before and after these."""
        if not self._drawn or self._drawn_told >= _MOST_TOLD:
            return ()
        self._drawn_told += 1
        return self._drawn


def _draws_once(loader: Any) -> bool:
    """Whether one pass gives each row at most once, by samplers whose order is known."""
    data = torch.utils.data
    if isinstance(getattr(loader, "dataset", None), data.IterableDataset):
        return False
    if type(getattr(loader, "batch_sampler", None)) is not data.BatchSampler:
        return False
    parts = getattr(loader.dataset, "datasets", ())  # of a ConcatDataset: one may be in it twice
    if len({id(part) for part in parts}) < len(parts):
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


def _weights_drawn_with(loader: Any) -> tuple[tuple[float, int], ...]:
    """The few weights that a weighted sampler has for all rows, and how many rows have each."""
    sampler = loader.sampler
    if type(sampler) is not torch.utils.data.WeightedRandomSampler or not sampler.replacement:
        return ()
    weights = sampler.weights
    if type(weights) is not torch.Tensor or weights.dim() != 1 or weights.numel() > _MOST_DRAWN:
        return ()
    with own_operations():
        if weights[:_FIRST_DRAWN].unique().numel() > _MOST_WEIGHTS:
            return ()
        each, rows = weights.unique(return_counts=True)
        if not 2 <= each.numel() <= _MOST_WEIGHTS:
            return ()
        return tuple(zip(each.tolist(), rows.tolist(), strict=True))


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
        iterator = original(self)
        if sources.is_open:
            guarded("called", called.begins, self, iterator)
        return iterator

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
