"""What a model lets the positions of a sequence see: later ones, padding, or the right ones.

At a few steps the functions that carry something from one position to another are listened to:
attention, recurrent layers, convolutions over one dimension (also by a Fourier transform), shifts,
matrices that mix positions, and softmax, for attention that is written out. Of attention the mask
says which positions are seen, of a softmax that is written out its zeros. And the model's inputs
are compared with the targets of the loss: where each target is the next value of an input, nothing
may see what comes later.

Copies of the first rows of inputs and targets, what masks show, and numbers are kept until the step
ends. Of a device they come over then (`base.later`), and are compared in host memory.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.nn import functional

from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.later import brought
from traindbg.hooks.torch.base.nodes import next_nodes
from traindbg.hooks.torch.data.convolutions import POOLING, Along, Convolutions, Flag, flag
from traindbg.hooks.torch.data.masks import (
    MOST_CELLS,
    Mask,
    blind_by,
    hides_next_to_nothing,
    is_filled_with_tiny,
    is_mask_added_to_scores,
    is_plain,
    is_repeated_by_head,
    left_by,
    masks_given,
    of_multi_head,
    of_scaled_dot_product,
    of_softmax,
)
from traindbg.hooks.torch.data.mixers import (
    ADDING,
    CUTTING,
    FILLING,
    HIDING,
    MULTI_HEAD,
    PASSING,
    PRODUCTS,
    RECURRENT,
    ROLLS,
    SOFTMAXES,
)
from traindbg.hooks.torch.data.next_values import Given, Next, Target, may_be_next
from traindbg.hooks.torch.data.scores import compares_positions, mixing_matrix
from traindbg.hooks.torch.data.seen import Call, Seen, sight_of
from traindbg.hooks.torch.data.spectra import SPECTRAL, Spectra

if TYPE_CHECKING:
    from collections.abc import Callable

    from traindbg.hooks.torch.base.later import Later

_MOST_LOOKS = 6  # steps
_MOST_INPUTS = 4
_MOST_VALUES = 1 << 16  # of an input that are copied
_MOST_CALLS = 64  # in a step
_MOST_KEPT = 1 << 23  # cells of masks that are kept until the step ends
_FEWEST = 16  # values of what is added to scores
_MOST_TARGETS = 8  # of a step, that may be the next values of an input


class _Sum(NamedTuple):
    """Scores and what has no gradient, a mask perhaps."""

    result: weakref.ref[torch.Tensor]
    added: torch.Tensor


class _Weights(NamedTuple):
    """What a softmax that is written out has returned, until it is used."""

    result: weakref.ref[torch.Tensor]
    call: int | None  # the places of what is known of it, in lists
    mask: int | None
    is_turned: bool  # [keys, queries]


def _is_spectrum(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_complex()


class SequenceObserver:
    """What is seen of the sequences of one step after the other. One per recording."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Another training begins."""
        self._looks = 0
        self.clear()

    def clear(self) -> None:
        """Drops what was seen of a step."""
        self.is_open = False
        self._inputs: list[Given] = []
        self._calls: list[Call] = []
        self._added: list[tuple[str, list[Flag]]] = []  # whether one of them holds, by place
        self._repeated: list[tuple[str, Flag]] = []  # masks of each head, by their places
        self._tiny: list[tuple[str, Flag]] = []  # whether masks hide nothing, by their places
        # Scores, by their ids, and whether they hold a number that hides nothing.
        self._filled: dict[int, tuple[weakref.ref[torch.Tensor], Flag]] = {}
        self._masks: list[Mask] = []
        self._cells = 0
        self._weights: dict[int, _Weights] = {}  # by the results' ids
        self._sums: dict[int, _Sum] = {}  # the same
        self._convolutions = Convolutions()
        self._spectra = Spectra()
        self._targets: list[Target] = []
        self._models: set[int] = set()  # that were called, by their ids
        self._is_all = True

    def begin(self, is_due: bool, model: torch.nn.Module, is_alone: bool = True) -> None:
        """A forward pass of the training begins: `model` is called.

        `is_alone`: no other module is trained beside it.

        One of several models adds to what the others of the step have shown; of one that is called
        again only the last pass counts.
        """
        if not is_due or id(model) in self._models:
            self.clear()
        if is_due:
            self._is_all = is_alone and not self._models
            self._models.add(id(model))
        self.is_open = is_due and self._looks < _MOST_LOOKS

    def input_given(self, tensor: torch.Tensor) -> None:
        """One of the model's inputs, in their order."""
        if not self.is_open or tensor.dim() < 2:
            return
        rows, kept = tensor.shape[0], 0
        if self._is_looked_at(tensor):
            kept = min(rows, _MOST_VALUES * rows // tensor.numel())
        if kept == 0:
            self._is_all = False
            return
        with own_operations():
            values = tensor.detach()[:kept].clone()
            while values.dim() > 2 and values.shape[-1] == 1:
                values = values.squeeze(-1)
        self._inputs.append(Given(values, rows, weakref.ref(tensor)))

    def _is_looked_at(self, tensor: torch.Tensor) -> bool:
        if type(tensor) is not torch.Tensor or tensor.layout is not torch.strided:
            return False
        if tensor.dim() > 4 or tensor.numel() == 0 or tensor.is_complex():
            return False
        return len(self._inputs) < _MOST_INPUTS and not capturing_graph(tensor)

    def called(self, place: str, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        """One of MIXERS was called and has returned."""
        if not self.is_open:
            return
        if function in ADDING:
            self._added_to(args, result)
            return
        if function in CUTTING:
            self._cut(args)
            return
        if function in FILLING and isinstance(result, torch.Tensor):
            is_tiny = is_filled_with_tiny(function, args, kwargs, result)
            if is_tiny is not False:
                self._filled[id(result)] = weakref.ref(result), is_tiny
        is_full = len(self._calls) + len(self._masks) >= _MOST_CALLS
        if function in SPECTRAL or (function in HIDING and _is_spectrum(result)):
            if not is_full and all(map(is_plain, (*args, *kwargs.values(), result))):
                with own_operations():
                    self._moved(place, self._spectra.called(function, args, kwargs, result))
            return
        if function in HIDING or function in PASSING:
            self._weights_used(function, args, kwargs, result)
            return
        if is_full:
            return
        if not all(map(is_plain, (*args, *kwargs.values(), result))):
            return
        if function in POOLING and not torch.is_grad_enabled():
            return  # what is shown of it trains nothing
        with own_operations():
            if function in RECURRENT:
                self._recurrent_called(place, args)
            elif (matrix := mixing_matrix(function, args, kwargs)) is not None:
                self._matrix_called(place, *matrix)
            elif function is torch.conv1d:
                called = self._convolutions.called(args, kwargs, result, len(self._calls))
                self._moved(place, called)
            elif function in POOLING:
                pooled = self._convolutions.pooled(args, kwargs, result, len(self._calls))
                self._moved(place, pooled)
            elif function is functional.linear or function in PRODUCTS:
                return
            elif function is functional.pad or function in ROLLS:
                number = None if function in ROLLS else self._convolutions.moved_on(args, kwargs)
                if number is not None and number < len(self._calls):
                    self._calls[number] = self._calls[number]._replace(sees_later=False)
                self._moved(place, self._convolutions.shifted(function, args, kwargs, result))
            elif function in SOFTMAXES:
                self._softmax_called(place, args, kwargs, result)
            else:
                of = of_multi_head if function is MULTI_HEAD else of_scaled_dot_product
                shown, is_added = of(args, kwargs)
                self._attention_called(place, shown, is_added)
                for mask in masks_given(function, args, kwargs):
                    self._say_tiny(place, hides_next_to_nothing(mask))
                repeated = is_repeated_by_head(args, kwargs) if function is MULTI_HEAD else None
                if repeated is not None:
                    self._repeated.append((place, repeated))

    def _added_to(self, args: Any, result: Any) -> None:
        """A sum; what it added is kept, as it may be a mask for the softmax that comes next."""
        if type(result) is not torch.Tensor or result.dim() not in (2, 3, 4):
            return
        if len(args) != 2 or len(self._sums) >= _MOST_CALLS or result.grad_fn is None:
            return
        for added, to in (args, args[::-1]):
            if type(added) is not torch.Tensor or added.requires_grad or added.numel() < _FEWEST:
                continue
            if added.numel() <= MOST_CELLS and getattr(to, "requires_grad", False):
                self._sums[id(result)] = _Sum(weakref.ref(result), added)
                return

    def _added_mask(self, scores: Any) -> torch.Tensor | None:
        """What was added to the scores that a softmax is given."""
        known = self._sums.get(id(scores))
        if known is None or known.result() is not scores or capturing_graph(scores):
            return None
        return known.added if is_plain(known.added) else None

    def _is_hardly_masked(self, scores: Any) -> Flag:
        """Whether a softmax is given scores that a mask leaves next to as they were."""
        filled = self._filled.get(id(scores))
        if filled is not None and filled[0]() is scores:
            return filled[1]
        added = self._added_mask(scores)
        is_mask = added is not None and added.shape[-1] == scores.shape[-1]
        return hides_next_to_nothing(added) if is_mask else False

    def _say_tiny(self, place: str, is_tiny: Flag) -> None:
        if is_tiny is not False:
            self._tiny.append((place, is_tiny))

    def _softmax_called(self, place: str, args: Any, kwargs: Any, result: Any) -> None:
        if not isinstance(result, torch.Tensor) or result.dim() not in (2, 3, 4):
            return
        dim = args[1] if len(args) > 1 else kwargs.get("dim")
        if not isinstance(dim, int):
            return
        last, weights = result.dim() - 1, result.detach()
        is_average = result.dim() == 3 and result.shape[2] == 1
        is_turned = dim % (last + 1) == last - 1 and last > 1 and not is_average
        if is_turned:
            weights = weights.transpose(-1, -2)
        elif dim % (last + 1) != last and not (is_average and dim % 3 == 1):
            return
        if weights.shape[-1] == weights.shape[-2]:
            node = result.grad_fn
            if node is None or not any(map(compares_positions, next_nodes(node))):
                return
        calls, masks = len(self._calls), len(self._masks)
        scores = args[0] if args else kwargs.get("input")
        added = None if is_turned else self._added_mask(scores)
        # Whether it is of ones and zeros.
        is_added = False if added is None else is_mask_added_to_scores(added, scores)
        self._say_tiny(place, self._is_hardly_masked(scores))
        shown, blind = of_softmax(weights), None
        if shown is not None and is_plain(scores) and scores.dim() > 2 and not is_average:
            hidden = scores.detach()
            blind = blind_by(hidden.transpose(-1, -2) if is_turned else hidden)
        self._attention_called(place, shown, [is_added], blind)
        self._weights[id(result)] = _Weights(
            weakref.ref(result),
            calls if len(self._calls) > calls else None,
            masks if len(self._masks) > masks else None,
            is_turned,
        )

    def _weights_used(self, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Weights of a softmax that is written out went through something, a mask perhaps."""
        given = (*args, *kwargs.values())
        for value in given:
            known = self._weights.get(id(value))
            before = known.result() if known is not None else None
            if known is None or before is None or before is not value:
                continue
            if type(result) is not torch.Tensor or result.shape != before.shape:
                return
            if function in HIDING and not (known.call is None and known.mask is None):
                if capturing_graph(result) or not all(map(is_plain, given)):
                    return
                with own_operations():
                    self._hidden_after(known, left_by(function, args, kwargs, before))
            self._weights[id(result)] = known._replace(result=weakref.ref(result))
            return

    def _hidden_after(self, known: _Weights, left: torch.Tensor) -> None:
        """What is `left` of weights says what is shown of them still."""
        shown = of_softmax(left.transpose(-1, -2) if known.is_turned else left)
        if shown is None:
            return
        if known.call is not None:
            call = self._calls[known.call]
            if call.sight is not None:
                sight = call.sight.through(sight_of(shown))
                self._calls[known.call] = call._replace(sight=sight)
        if known.mask is not None:
            mask = self._masks[known.mask]
            shown = mask.shown & shown
            blind = mask.blind | ~shown.any(2)
            self._masks[known.mask] = Mask(mask.place, shown, blind)

    def _recurrent_called(self, place: str, args: Any) -> None:
        if len(args) < 9:
            return
        if isinstance(args[3], (list, tuple)):  # a packed sequence
            length, both = len(args[1]), args[8]
        else:
            length, both = args[0].shape[1 if args[8] else 0], args[7]
        self._calls.append(Call(place, int(length), bool(both)))

    def _matrix_called(self, place: str, matrix: torch.Tensor, across: int) -> None:
        if not capturing_graph(matrix):
            sees_later = flag(matrix.detach().triu(1).any())
            self._calls.append(Call(place, len(matrix), sees_later, is_matrix=True, across=across))

    def _moved(self, place: str, found: Along | None) -> None:
        if found is not None:
            call = Call(place, found.length, found.sees_later, is_round=found.is_round)
            self._calls.append(call)

    def _cut(self, args: Any) -> None:
        found = self._convolutions.cut(args)
        if found is not None:
            call = self._calls[found.number]._replace(
                length=found.along.length, sees_later=found.along.sees_later
            )
            self._calls[found.number] = call

    def _attention_called(
        self,
        place: str,
        shown: torch.Tensor | None,
        are_added: list[Flag],
        blind: torch.Tensor | None = None,
    ) -> None:
        perhaps = [is_added for is_added in are_added if is_added is not False]
        if perhaps:
            self._added.append((place, perhaps))
        if shown is None or capturing_graph(shown):
            return
        if shown.shape[1] == shown.shape[2] >= 4:
            self._calls.append(Call(place, shown.shape[1], sight=sight_of(shown)))
        if self._cells + shown.numel() <= _MOST_KEPT:
            self._cells += shown.numel()
            self._masks.append(Mask(place, shown, ~shown.any(2) if blind is None else blind))

    def loss_computed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """By a loss function, in training."""
        if not self.is_open or not self._inputs or len(self._targets) >= _MOST_TARGETS:
            return
        self.target_known(args[1] if len(args) > 1 else kwargs.get("target"))

    def target_known(self, target: Any, margin: torch.Tensor | float = 0.0) -> None:
        """Of a loss, in training. `margin`: by which equal values may differ, a number."""
        if not self.is_open or not self._inputs or len(self._targets) >= _MOST_TARGETS:
            return
        if type(target) is not torch.Tensor or target.layout is not torch.strided:
            return
        if capturing_graph(target):
            return
        with own_operations():
            for number, given in enumerate(self._inputs):
                if target.device != given.values.device or not may_be_next(given, target.numel()):
                    continue
                values = target.detach().reshape(given.rows, -1)[: len(given.values)].clone()
                count = target.numel()
                self._targets.append(Target(number, len(self._inputs), values, count, margin))

    def next_input(self) -> tuple[torch.Tensor, Next] | None:
        """The input whose next values are the targets. Waits for a device."""
        seen = self._seen()
        with own_operations():
            found = seen.there(brought(seen.tensors)).next()
        if found is None:
            return None
        reference = self._inputs[found[0].given].source
        source = None if reference is None else reference()
        return None if source is None else (source, found[1])

    def _seen(self) -> Seen:
        return Seen(
            self._inputs,
            self._calls,
            self._masks,
            self._added,
            self._repeated,
            self._tiny,
            self._targets,
            self._is_all,
        )

    def facts(self) -> list[tuple[str, float, str]]:
        """Name, value and place of each, when the step's backward passes are over.

        Waits for a device.
        """
        seen = self._taken()
        return [] if seen is None else seen.facts(brought(seen.tensors))

    def ask(self, later: Later, told: Callable[[list[tuple[str, float, str]]], None]) -> None:
        """Tells the same when the step ends."""
        seen = self._taken()
        if seen is not None:
            later.ask("sequences", seen.tensors, lambda values: told(seen.facts(values)))

    def _taken(self) -> Seen | None:
        """What was seen of the step, to be told. None: there is nothing to tell."""
        seen = None
        if self.is_open:
            self._looks += 1
            if self._inputs and not capturing_graph(self._inputs[0].values):
                seen = self._seen()
            self.clear()
        return seen
