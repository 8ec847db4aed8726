"""How much of what a model is given is left in what it returns.

For one step: a global hook hears the models of a recording. What is kept of a tensor are a few
numbers. Of one in host memory the core
takes them at once; else they stay on its device until they are asked for. The hook is taken off at
the end of the step.
"""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import torch
from torch.nn.modules.module import register_module_forward_hook

from traindbg import _core
from traindbg.hooks.torch.base.compiled import our_hooks
from traindbg.hooks.torch.base.device import capturing_graph, own_operations, widest_of
from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.base.later import may_read
from traindbg.hooks.torch.base.names import tensors_in
from traindbg.hooks.torch.base.transforms import is_transforming
from traindbg.hooks.torch.data.fields import highest_of_columns
from traindbg.hooks.torch.losses.compared import mark_returned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torch import nn

# Of what is looked at of a batch; the same as in the core.
_FEWEST_ROWS = 8
_MOST_ROWS = 64
_MOST_VALUES = 4096  # of a row
_COUNTING = 0.75  # of the changes from one number to the next, by which positions are told
_MOST_COLUMNS = 512  # by which directions are counted
_MOST_LAYERS = 16  # of a model, whose directions are counted
_MOST_TENSORS = 4  # of what a model returns
_MOST_BRANCHES = 4  # calls of one layer; more of them are steps through time

_TABLES = (torch.nn.Embedding, torch.nn.EmbeddingBag)
_DROPOUTS = torch.nn.modules.dropout._DropoutNd
_is_compiling = torch.compiler.is_compiling
_graph_task = getattr(torch._C, "_current_graph_task_id", None)

Number: TypeAlias = "float | torch.Tensor"  # on a device: a tensor of one element
_Found = TypeVar("_Found")


class Spread(NamedTuple):
    """Of what a model returned, from sample to sample; one value each."""

    place: str
    suffix: str  # which part of what it returned
    deviation: Number
    size: Number  # root mean square of all values
    directions: Number
    units: int  # values of a sample
    turn: Number  # by which samples point another way than their mean; 0 to 1


class Given(NamedTuple):
    """What a layer with a matrix was given first."""

    layer: nn.Module
    directions: Number
    units: int
    zeros: Number | None  # their share; of the first layer alone, where no dropout was before it


class LookedUp(NamedTuple):
    """What an embedding was asked for first."""

    layer: nn.Module
    in_order: torch.Tensor  # the share of samples whose rows count up or down, as positions do
    is_one_each: bool  # of each sample one row
    highest: torch.Tensor | None  # of each column of a table of numbers the greatest one


class Branch(NamedTuple):
    """Of what a layer returned that is given one input after the other, as `Spread`."""

    layer: nn.Module
    deviation: Number
    size: Number


# Of what models returned: a graph may outlive its step, and is not to be taken for another.
_numbers = itertools.count()


def _is_plain(tensor: torch.Tensor) -> bool:
    """Part of a graph, and nothing that is distributed or made by somebody's subclass."""
    return (
        type(tensor) is torch.Tensor
        and tensor.grad_fn is not None
        and tensor.is_floating_point()
        and tensor.layout == torch.strided
    )


def has_matrix(module: nn.Module) -> bool:
    """Whether it is a layer with a matrix of weights, and no table of rows."""
    parameters = module.__dict__.get("_parameters")
    if not parameters or not isinstance(parameters, dict):
        return False
    weight: Any = parameters.get("weight")
    if type(weight) is not torch.nn.Parameter or isinstance(module, _TABLES):
        return False
    return bool(weight.dim() > 1)


def _is_batch(tensor: Any) -> bool:
    """Of enough samples, of several values each, that can be looked at now."""
    if type(tensor) is not torch.Tensor or tensor.dim() < 2 or not tensor.is_floating_point():
        return False
    if tensor.shape[0] < _FEWEST_ROWS or tensor.numel() // tensor.shape[0] < 2:
        return False
    return tensor.layout == torch.strided and not capturing_graph(tensor)


def rows_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """A batch as a table of some of its rows and columns. None: it is none.

    In the widest type: of rows that are nearly equal, the mean of float32 leaves other rows.
    """
    if not _is_batch(tensor):
        return None
    part = tensor.detach()[:_MOST_ROWS]
    # Cut before it is made a table, which may be a copy.
    for dim in range(1, part.dim()):
        inner = part[0].numel() // part.shape[dim]
        if inner * part.shape[dim] > _MOST_VALUES:
            part = part.narrow(dim, 0, min(part.shape[dim], max(1, _MOST_VALUES // inner)))
    return part.reshape(part.shape[0], -1)[:, :_MOST_VALUES].to(widest_of(tensor))


def _of_batch(
    batch: Any,
    in_core: Callable[[Any], _Found | None],
    by_operations: Callable[[torch.Tensor], _Found],
) -> _Found | None:
    """What is told of a batch's rows. None: it is no batch."""
    if not _is_batch(batch):
        return None
    found = in_core(batch) if may_read(batch) else None
    if found is not None:
        return found
    with own_operations():
        rows = rows_of(batch)
        return None if rows is None else by_operations(rows)


def _deviation_and_size(batch: Any) -> tuple[Number, Number] | None:
    """From row to row, of the typical column; and of all values. None: it is no batch."""
    return _of_batch(batch, _core.row_deviation, lambda rows: (_deviation(rows), _size(rows)))


def _directions(batch: Any) -> Number | None:
    """As `directions_of`. None: it is no batch."""
    return _of_batch(batch, _core.row_directions, directions_of)


def share_of_zeros(batch: Any) -> Number | None:
    """Of all its values. None: it is no batch."""
    if not _is_batch(batch):
        return None
    with own_operations():
        found = 1 - torch.count_nonzero(batch.detach()) / batch.numel()
        return float(found) if may_read(batch) else found


def _spread(batch: Any) -> tuple[Number, Number, Number, Number] | None:
    """Deviation, size, directions and turn. None: it is no batch."""
    return _of_batch(
        batch,
        _core.row_spread,
        lambda rows: (_deviation(rows), _size(rows), directions_of(rows), turn_of(rows)),
    )


def _deviation(rows: torch.Tensor) -> torch.Tensor:
    return (rows - rows.mean(0)).square().mean().sqrt()


def _size(rows: torch.Tensor) -> torch.Tensor:
    return rows.square().mean().sqrt()


def in_order(rows: torch.Tensor) -> torch.Tensor | None:
    """In what share of samples the rows' numbers count up or down, or never turn back.

    Positions count by one, also where padding comes before them, or where they begin again with
    each of several documents. None: there are too few.
    """
    if type(rows) is not torch.Tensor or rows.is_floating_point() or rows.dim() == 0:
        return None
    length = rows.shape[-1] if rows.dim() > 1 and rows.shape[-1] > 2 else rows.numel()
    if length < 3 or rows.layout != torch.strided or capturing_graph(rows):
        return None
    part = rows.detach().reshape(-1, length)[:_MOST_ROWS, :_MOST_VALUES]
    steps = part[:, 1:] - part[:, :-1]
    changes = _COUNTING * (steps != 0).sum(1)
    counts = ((steps == 1).sum(1) >= changes) | ((steps == -1).sum(1) >= changes)
    return (counts | (steps >= 0).all(1) | (steps <= 0).all(1)).float().mean()


def turn_of(rows: torch.Tensor) -> torch.Tensor:
    """How far the rows' unit vectors lie from their mean, whatever the rows' lengths: 0 to 1."""
    units = rows / torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp_min(1e-30)
    return (units - units.mean(0)).square().sum(1).mean().sqrt()


def directions_of(rows: torch.Tensor) -> torch.Tensor:
    """How many directions rows spread in, as their participation ratio; 0 where all are equal.

    That is (sum of e)^2 / (sum of e^2) of the eigenvalues e of their covariance: n where n of them
    are equal and the others 0. Of a matrix of products of rows it needs no decomposition.
    """
    x = rows[:, :_MOST_COLUMNS]
    x = x - x.mean(0)
    x = x / x.abs().max().clamp_min(1e-30)  # squares of squares are taken
    products = x @ x.t()
    return products.diagonal().sum().square() / products.square().sum().clamp_min(1e-30)


def _parts_of(model: nn.Module, prefix: str) -> Iterator[tuple[str, nn.Module]]:
    """The modules that a method of the model may call; of a list or a dictionary those in it."""
    for name, part in model.named_children():
        if isinstance(part, (torch.nn.ModuleList, torch.nn.ModuleDict)):
            yield from _parts_of(part, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", part


class Outputs:
    """Listens in one training step."""

    def __init__(self, models: Iterable[tuple[nn.Module, str]]) -> None:
        models = list(models)
        self._spreads: list[Spread] = []
        self.target: Number | None = None  # as `deviation` of what a loss compares with
        self.returned: dict[int, torch.Tensor] = {}  # by models, without gradients; see `forget`
        self.places: dict[int, str] = {}  # of these
        self._keeps_returned = True
        self._roots = {id(model): prefix.rstrip(".") or "model" for model, prefix in models}
        # Of a model that is never called itself, as by a method of its own, the part that is called
        # last returns what there is: its place, and that. None: one was called more than once.
        self._parts = {
            id(part): place for model, prefix in models for place, part in _parts_of(model, prefix)
        }
        self._parts_called: set[int] = set()
        self._last: tuple[str, list[tuple[str, torch.Tensor]]] | None = None
        self._seen: set[int] = set()
        self._calls: dict[int, int] = {}  # of layers with a matrix, by id
        self._given: list[Given] = []  # in the order of their first calls
        # Root mean square of what the first module with a matrix of its own was given.
        self._given_size: Number | None = None
        self._is_first = True  # none has run yet
        self._is_dropped_from = False  # by a dropout before the first of them
        self.looked_up: dict[int, LookedUp] = {}  # by the embedding's id
        self._branch: Branch | None = None
        self._thread = threading.get_ident()
        self._handle = register_module_forward_hook(self._called)
        our_hooks.add(self._handle.id)

    def spreads(self) -> list[Spread]:
        """Of what models returned, the last parts of those that were not called themselves."""
        last, self._last = self._last, None
        if last is not None and not self._seen and not self._spreads:
            place, returned = last
            for suffix, tensor in returned:
                self._take_spread(place, suffix, tensor)
        return self._spreads

    def forget(self) -> None:
        """Drops what models, and last parts, returned: all tensors of the training's that are kept.

        A backward pass begins, and is to find as much memory as it would without us.
        """
        self.spreads()
        self.returned = {}
        self._keeps_returned = False

    def compared_with(self, target: Any) -> None:
        """By a loss that is about differences."""
        if self.target is None:
            found = _deviation_and_size(target)
            if found is not None:
                self.target = found[0]

    def branch(self) -> Branch | None:
        """Of the last layer that several inputs went through, as the two images of a pair.

        None where models return what tells it: several values a sample.
        """
        return None if self.spreads() else self._branch

    def given(self) -> list[Given]:
        """What layers with a matrix were given first, in order. Empty: by several models."""
        return self._given if len(self._roots) == 1 else []

    def given_size(self) -> Number | None:
        """The root mean square of what the first module with a matrix of its own was given.

        Tables of rows do not count.

        None: no batch of numbers, or there are several models. Of a module that has others in it,
        whose calls end first, it cannot be told.
        """
        return self._given_size if len(self._roots) == 1 else None

    def end(self) -> None:
        self._branch = self._last = None
        self.forget()
        self._given = []
        self.looked_up = {}
        self._handle.remove()
        our_hooks.discard(self._handle.id)

    def _called(self, module: nn.Module, args: Any, output: Any) -> None:
        if _is_compiling():  # the rest would be compiled, or end the compiling
            return
        key = id(module)
        is_one = key in self._roots or key in self._parts
        if isinstance(module, _DROPOUTS):
            self._is_dropped_from = self._is_dropped_from or not self._calls
        if not is_one and not module.__dict__.get("_parameters"):  # most modules of a model
            return
        if threading.get_ident() == self._thread:
            guarded("outputs", self._look, module, args, output)

    def _look(self, module: nn.Module, args: Any, output: Any) -> None:
        key = id(module)
        is_taken = key in self._roots and key not in self._seen
        is_part = key in self._parts and not self._seen
        is_layer = has_matrix(module)
        is_table = isinstance(module, torch.nn.Embedding) and key not in self.looked_up
        is_first = (
            self._is_first
            and not isinstance(module, _TABLES)
            and any(
                parameter is not None and parameter.dim() > 1
                for parameter in module.__dict__.get("_parameters", {}).values()
            )
        )
        if not (is_taken or is_part or is_layer or is_table or is_first):
            return
        if not module.training or not torch.is_grad_enabled():
            return
        if torch.jit.is_tracing() or is_transforming():  # what is done here would be traced, too
            return
        if _graph_task is not None and _graph_task() != -1:
            return
        if is_first:
            self._is_first = False
            is_alone = next(module.children(), None) is None
            found = _deviation_and_size(args[0]) if args and is_alone else None
            self._given_size = None if found is None else found[1]
        if is_taken:
            self._seen.add(key)
            self._last = None
            self._take(key, output)
        elif is_part:
            self._take_part(key, output)
        if is_layer:
            self._take_call(module, args, output)
        if is_table:
            self._take_rows(module, args)

    def _take(self, key: int, output: Any) -> None:
        if key in self._roots:
            for number, (suffix, tensor) in enumerate(tensors_in(output, 2)):
                if number >= _MOST_TENSORS:
                    break
                self._take_returned(self._roots[key], suffix, tensor)

    def _take_part(self, key: int, output: Any) -> None:
        is_again = key in self._parts_called  # of a pair, say
        self._parts_called.add(key)
        self._last = None
        if not is_again:
            with own_operations():
                returned = [(suffix, tensor.detach()) for suffix, tensor in tensors_in(output, 2)]
            self._last = self._parts[key], returned[:_MOST_TENSORS]

    def _take_returned(self, place: str, suffix: str, tensor: torch.Tensor) -> None:
        if self._keeps_returned and _is_plain(tensor):
            mark = next(_numbers)
            mark_returned(tensor, mark)
            with own_operations():
                self.returned[mark] = tensor.detach()
            self.places[mark] = place + suffix
        self._take_spread(place, suffix, tensor)

    def _take_spread(self, place: str, suffix: str, tensor: torch.Tensor) -> None:
        found = _spread(tensor)
        if found is not None:
            deviation, size, directions, turn = found
            units = tensor.numel() // tensor.shape[0]
            spread = Spread(place, suffix, deviation, size, directions, units, turn)
            self._spreads.append(spread)

    def _take_call(self, module: nn.Module, args: Any, output: Any) -> None:
        calls = self._calls[id(module)] = self._calls.get(id(module), 0) + 1
        if calls == 1:
            self._take_given(module, args)
            return
        self._branch = None
        if calls <= _MOST_BRANCHES:
            found = _deviation_and_size(output)
            if found is not None:
                self._branch = Branch(module, *found)

    def _take_rows(self, module: nn.Module, args: Any) -> None:
        if len(self.looked_up) < _MOST_LAYERS and args:
            with own_operations():
                found = in_order(args[0])
                highest = None if found is None else highest_of_columns(args[0])
            if found is not None:
                is_one_each = args[0].dim() == 1 or args[0].shape[1:].numel() == 1
                self.looked_up[id(module)] = LookedUp(module, found, is_one_each, highest)

    def _take_given(self, module: nn.Module, args: Any) -> None:
        if len(self._given) >= _MOST_LAYERS or not args:
            return
        directions = _directions(args[0])
        if directions is not None:
            units = args[0].numel() // args[0].shape[0]
            is_first = len(self._calls) == 1 and not self._is_dropped_from
            zeros = share_of_zeros(args[0]) if is_first else None
            self._given.append(Given(module, directions, units, zeros))
