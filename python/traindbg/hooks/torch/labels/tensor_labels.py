"""Losses of evaluations that compute none, of labels that lie beside the tensor that is evaluated.

    with torch.no_grad():
        accuracy = (model(x_val).argmax(1) == y_val).float().mean()  # no loss function is called

Nothing is listened to, and no variable of the program is read: among all tensors that are alive,
those are looked for that may be the labels of as many rows. What is what has to show:

 - The training's loss is given what the model returned, in three steps that are looked at.
 - The same tensors are evaluated again after more steps, without a loss, and are none of the
   training's. Of tensors that were there at the first time already, lie elsewhere than the inputs
   and have the same values still, one alone goes together with what the model returns by far more
   than chance (`labels.evidence`), or several that are equal; by more than then, in the units
   of the training, and not much worse than its own labels, once these are known well. The last two
   are judged when the training's next loss is computed, which is of the same weights.

All of it in host memory alone. From then on the training's loss is computed whenever these are
evaluated, and recorded as that of an evaluation, as of a loader's (`labels.loader_labels`), which
goes first. Of several tensors that are evaluated it is the one of the largest loss: the others may
be the training's, as they were before they were changed at random. A loss that the program computes
in an evaluation ends it for good, and so do labels that were written to.

No tensor is kept, nor a weak reference to one, which `torch.utils.swap_tensors` refuses: memory is
known by weak references to storages, and values by sums. A search goes through all objects of the
process once, for each of four evaluated tensors at most.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from traindbg import _core
from traindbg.hooks.torch.base.compiled import compiler_in_use
from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.guard import boundary
from traindbg.hooks.torch.base.later import may_read
from traindbg.hooks.torch.base.leaves import leaves_of
from traindbg.hooks.torch.base.sources import sources
from traindbg.hooks.torch.evaluations.module_modes import acts_by_mode
from traindbg.hooks.torch.labels.evidence import OF_CLASSES, Evidence
from traindbg.hooks.torch.labels.forms import (
    FORMS,
    MOST_CLASSES,
    Computation,
    OfTraining,
    are_equal,
    can_be_given,
    form_of,
    in_wide,
    is_evaluated,
    output_of,
    outputs_of,
    settings_of,
    told_apart,
)
from traindbg.hooks.torch.labels.loader_batches import is_plain, leaf_at
from traindbg.hooks.torch.labels.measures import (
    Comparison,
    Told,
    are_numbers,
    is_of_another_unit,
    line_through,
    measure,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from traindbg.hooks.torch.base.guard import Guard
    from traindbg.hooks.torch.base.sources import Line
    from traindbg.hooks.torch.base.watched import WatchedModels
    from traindbg.hooks.torch.evaluations.phases import Evaluations
    from traindbg.hooks.torch.labels.loader_batches import Path

_LOOP = _core.ROLE_BITS["loop"]
_STEPS = 3  # of a training, that have to agree
_MOST_STEPS = 32  # that are looked at until they have
_FEWEST_ROWS = 32
_MOST_TENSORS = 4  # that may be evaluated
_MOST_CANDIDATES = 64
_MOST_CALLS = 64  # of an evaluation, that lead to nothing
_MOST_LOOKS = 8  # at a tensor that is evaluated again
_MOST_VALUES = 1 << 24  # of labels
_MOST_KEPT = 1 << 22  # scores, until the training's next loss
_MOST_HEARD = 8  # losses of others, until then
_MOST_ALIVE = 100_000  # tensors
_CALLS_IN_VAIN = 3  # of what is evaluated, while another one is not again

_is_wrapped: Any = torch._C._functorch.is_functorch_wrapped_tensor


class _Roles(NamedTuple):
    """How the training's loss is computed."""

    loss: str
    output: Path  # what of the model's output it is given
    scores_form: str
    dims: tuple[int, int]  # of the output, of what the loss is given
    classes: int  # 0: there are none
    target_type: torch.dtype
    target_dims: int


class _Place(NamedTuple):
    """Where labels lie, and what they were."""

    storage: StorageWeakRef
    data_type: torch.dtype
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    sums: tuple[float, ...]

    def tensor(self) -> torch.Tensor | None:
        """None: the memory is gone, or has other values."""
        storage = torch.UntypedStorage._new_with_weak_ptr(self.storage.cdata)
        # Of one that was made smaller `set_` would make it larger again.
        if storage is None or storage.data_ptr() == 0:
            return None
        if _bytes_up_to(self.offset, self.shape, self.stride, self.data_type) > storage.nbytes():
            return None
        empty = torch.empty(0, dtype=self.data_type, device=storage.device)
        labels = empty.set_(storage, self.offset, self.shape, self.stride)
        return labels if _sums_of(labels) == self.sums else None


class _Wanted(NamedTuple):
    """What a tensor must be like to be labels."""

    rows: int
    number: int  # of labels of these
    whole: int  # rows of the tensor of which the inputs are some; 0: they are all
    start: int  # the first of these
    may_be_real: bool
    devices: tuple[str, str]
    elsewhere: frozenset[int]  # storages of the inputs

    def rows_of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Its rows that may be labels."""
        if tensor.dim() == 0 or tensor.shape[0] not in (self.rows, self.whole):
            return None
        if tensor.requires_grad or not _is_at_hand(tensor):
            return None
        if tensor.is_floating_point() and not self.may_be_real:
            return None
        if tensor.device.type not in self.devices:
            return None
        if tensor.untyped_storage()._cdata in self.elsewhere:
            return None
        if len(tensor) == self.rows:
            return tensor if tensor.numel() == self.number else None
        is_alike = tensor.numel() * self.rows == self.number * self.whole
        return tensor[self.start : self.start + self.rows] if is_alike else None


class _Evaluated:
    """What is evaluated: by where it lies."""

    def __init__(self, steps: int) -> None:
        self.steps = steps  # that the training had made when it was evaluated last
        self.calls = self.looks = 0  # since then
        self.candidates: list[tuple[_Place, float]] = []  # and the loss of each at first
        self.likely: tuple[_Place, Told] | None = None  # of the last look, until it is judged
        self.comparison = Comparison()
        self.is_doubtful = False  # what was likely was not told as the training's, up to now
        self.labels: _Place | None = None
        self.loss = -math.inf  # of these, when they were found


class TensorLabels:
    """One per recording, one thread."""

    def __init__(
        self,
        session: _core.Session,
        guard: Guard,
        watched: WatchedModels,
        evaluations: Evaluations,
        computation: Computation,
    ) -> None:
        self.guard = guard
        self._session = session
        self._hot = guard.hot
        self._watched = watched
        self._evaluations = evaluations
        self._computation = computation
        self._is_wanted = False
        # Whether rows of an input were trained on, as far as that is known; set by who knows them.
        self.are_trained: Callable[[torch.Tensor], bool] | None = None
        self.forget()

    def follow(self, is_wanted: bool) -> None:
        """Losses of evaluations are asked for, or not."""
        self._is_wanted = is_wanted

    def forget(self) -> None:
        """Another training begins."""
        self._is_over = False
        self._drop()

    def _drop(self) -> None:
        self._outputs: dict[Path, tuple[torch.Tensor, int]] = {}  # of the pass under way
        self._roles: _Roles | None = None
        self._settings: dict[str, Any] = {}
        self._of_training = OfTraining()
        self._agreed = self._looks = 0  # steps
        self._calls = 0  # of evaluations
        self._evaluated: dict[Any, _Evaluated] = {}
        self._known: tuple[Any, _Place] | None = None  # what is evaluated, and its labels
        self._first = 0.0  # what `measure` says of the training's first step that told anything
        self._hot.hears_next_loss = False
        # Until what was evaluated is judged: after how many steps that was, how many losses of
        # others were heard since, in which line of the program that was, and what the loss would be
        # given, by the key.
        self._asked_after = self._heard = 0
        self._asked_in: Line | None = None
        self._waiting: dict[Any, torch.Tensor] = {}

    @property
    def listens(self) -> bool:
        """Whether passes of an evaluation are to be heard, whatever else is due."""
        return self._agreed == _STEPS and not self._is_over

    @property
    def computes_late(self) -> bool:
        """Whether the loss that is computed now is of an evaluation that has ended."""
        return self._computation.is_late

    def end(self) -> None:
        """Evaluations have losses, or none can be computed."""
        self._is_over = True
        self._drop()

    @property
    def computes(self) -> bool:
        """Whether a loss is computed here now, not by the program."""
        return self._computation.is_under_way

    def evaluated(self) -> None:
        """A loss of an evaluation was computed; by the program, unless it is ours."""
        if not self._is_over and not self._computation.is_under_way:
            self.end()

    # A training.

    def trains(self, output: Any) -> None:
        """The model has returned, in a step of the training that is looked at."""
        self._outputs = {}
        if self._is_over or not self._is_wanted or self._agreed == _STEPS:
            return
        self._looks += 1
        if self._looks > _MOST_STEPS or len(self._watched.watchers) != 1 or compiler_in_use():
            self.end()
            return
        with own_operations():
            self._outputs = outputs_of(output)

    def step_ends(self) -> None:
        """A step that is looked at is about to end: what was returned is let go."""
        self._outputs = {}

    def trained_by(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A loss of the training was computed; the first one after each pass counts."""
        outputs, self._outputs = self._outputs, {}
        if self._is_over or not self._is_wanted:
            return
        if not outputs:
            return
        scores = args[0] if args else kwargs.get("input")
        target = args[1] if len(args) > 1 else kwargs.get("target")
        settings = settings_of(name, args, kwargs)
        if not isinstance(scores, torch.Tensor) or not isinstance(target, torch.Tensor):
            self.end()
            return
        are_plain = is_plain(scores) and is_plain(target)
        # On a device each look would wait for it.
        are_here = may_read(scores) and may_read(target) and not capturing_graph(target)
        if settings is None or not are_plain or not are_here:
            self.end()
            return
        with own_operations():
            roles = _roles_of(outputs, name, scores, target)
            is_same = self._roles is None or (
                roles == self._roles and are_equal(settings, self._settings)
            )
            # Of other shapes, each of the outputs is compared with all labels.
            is_spread = are_numbers(name) and scores.shape != target.shape
            if roles is None or not is_same or is_spread:
                self.end()
            elif self._of_training.add(name, scores.detach(), target.detach()):
                self._roles = roles
                self._settings = {
                    key: value.detach().clone() if isinstance(value, torch.Tensor) else value
                    for key, value in settings.items()
                }
                self._agreed += 1
                self._first = self._first or measure(
                    roles.loss, in_wide(scores.detach()), target.detach()
                )

    @boundary("tensor labels")
    def trained_after_evaluation(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """The next loss of the training is computed, and was asked for; the first answer counts."""
        roles = self._roles
        if roles is None or self._hot.steps != self._asked_after:
            self._judged()  # other weights
            return
        scores = args[0] if args else kwargs.get("input")
        target = args[1] if len(args) > 1 else kwargs.get("target")
        if (
            name != roles.loss
            or not isinstance(scores, torch.Tensor)
            or not isinstance(target, torch.Tensor)
            or not self._is_of_model(scores)
        ):
            self._heard += 1
            if self._heard < _MOST_HEARD:
                self._hot.hears_next_loss = True  # another one of the same step may be
            else:
                self._judged()  # many are of another training
            return
        waiting, line = self._waiting, self._asked_in
        try:
            if _is_at_hand(scores) and _is_at_hand(target):
                with own_operations():
                    self._judge(roles, scores.detach(), target.detach(), waiting, line)
        finally:
            self._judged()

    def _is_of_model(self, scores: torch.Tensor) -> bool:
        """Whether the model that is watched has a part in them, not one beside it alone."""
        models = (watcher.model for watcher in self._watched.watchers)
        own = {id(p) for model in models if model is not None for p in model.parameters()}
        return any(id(leaf) in own for leaf in leaves_of(scores))

    def _judged(self) -> None:
        """What waited for the training's next loss waits no more."""
        self._waiting = {}
        for known in self._evaluated.values():
            known.likely = None

    def _judge(
        self,
        roles: _Roles,
        scores: torch.Tensor,
        target: torch.Tensor,
        waiting: dict[Any, torch.Tensor],
        line: Line | None,
    ) -> None:
        """What was evaluated, beside what the training is given."""
        scores = in_wide(scores)
        is_as_ever = target.dtype == roles.target_type and scores.dim() == roles.dims[1]
        is_as_ever = is_as_ever and (roles.classes == 0 or scores.shape[1] == roles.classes)
        if not is_as_ever or not can_be_given(roles.loss, scores, target, self._settings):
            return
        of_training = line_through(roles.loss, scores, target)
        if self._known is None:
            now = measure(roles.loss, scores, target)
            for known in self._evaluated.values():
                if known.likely is None:
                    continue
                place, told = known.likely
                known.is_doubtful = not known.comparison.is_sure(
                    told, now, of_training, self._first, known.looks, self._is_alike()
                )
                if not known.is_doubtful:
                    known.labels, known.loss = place, told.measure
                if not known.is_doubtful or known.looks >= _MOST_LOOKS:
                    known.candidates = []
            self._choose()
        if self._known is None or self._known[0] not in waiting:
            return
        key, labels = self._known[0], self._known[1].tensor()
        others = None if labels is None else self._target(labels, waiting[key])
        if others is None:
            self.end()
            return
        of_labels = line_through(roles.loss, waiting[key], others)
        if of_labels is not None and is_of_another_unit(of_labels, of_training):
            self.end()
            return
        where = f"evaluation/{roles.loss}"
        if not sources.has(where):
            sources.put(where, line)  # not where the training's loss is
        self._computation.compute(roles.loss, self._settings, waiting[key], others, is_late=True)
        self._evaluations.end()  # the training goes on

    def _is_alike(self) -> bool:
        """Whether the model computes the same in training and in evaluation."""
        models = (watcher.model for watcher in self._watched.watchers)
        return not any(acts_by_mode(m) for model in models if model for m in model.modules())

    # An evaluation.

    @boundary("tensor labels")
    def evaluates(self, given: Any, output: Any) -> None:
        """The model has returned, in a pass of an evaluation that no loader has a part in."""
        if not self.listens or self._roles is None:
            return
        others, tensors = told_apart(given)
        inputs = list(tensors.values())
        if not inputs or not all(map(_is_at_hand, inputs)):
            self._called_in_vain()
            return
        key = others, tuple((path, *_where(each)) for path, each in tensors.items())
        if self._known is not None and self._known[0] != key:
            return
        if len(inputs[0]) < _FEWEST_ROWS or not is_evaluated(self._watched, self._evaluations):
            self._called_in_vain()
            return
        with own_operations():
            scores = self._scores(output)
            if scores is None:
                self._called_in_vain()
            elif self._known is not None:
                self._compute_again(key, self._known[1], scores)
            else:
                self._look(key, inputs, scores)

    def _called_in_vain(self) -> None:
        """Many such calls are no evaluations: a policy plays, say."""
        if self._known is None:
            self._calls += 1
            if self._calls > _MOST_CALLS:
                self.end()

    def _scores(self, output: Any) -> torch.Tensor | None:
        """What the loss would be given."""
        roles = self._roles
        scores: Any = None if roles is None else leaf_at(output, roles.output)
        if roles is None or not is_plain(scores) or not scores.is_floating_point():
            return None
        if scores.dim() != roles.dims[0]:
            return None
        scores = in_wide(scores.detach().reshape(FORMS[roles.scores_form](scores.shape)))
        if scores.dim() != roles.dims[1]:
            return None
        return scores if roles.classes == 0 or scores.shape[1] == roles.classes else None

    def _target(self, labels: torch.Tensor, scores: torch.Tensor) -> torch.Tensor | None:
        """Labels as the loss would be given them; None: they cannot be."""
        roles = self._roles
        if roles is None:
            return None
        for form in FORMS.values():
            shape = form(labels.shape)
            if len(shape) != roles.target_dims:
                continue
            target = labels.reshape(shape).to(scores.device, roles.target_type)
            if can_be_given(roles.loss, scores, target, self._settings):
                return target
        return None

    def _look(self, key: Any, inputs: list[torch.Tensor], scores: torch.Tensor) -> None:
        known = self._evaluated.get(key)
        if known is None:
            if len(self._evaluated) >= _MOST_TENSORS:
                self._called_in_vain()
                return
            known = self._evaluated[key] = _Evaluated(self._hot.steps)
            known.candidates = self._candidates(inputs, scores)
            return
        if known.steps == self._hot.steps:
            return
        known.steps = self._hot.steps
        known.calls += 1
        if known.labels is not None:  # until it shows which one is chosen
            self._wait(key, scores)
            return
        if known.looks >= _MOST_LOOKS:
            known.candidates = []
        if not known.candidates:
            self._called_in_vain()
            return
        known.looks += 1
        known.likely = self._likely_among(known, inputs, scores)
        # How well the training's own rows are known is no evaluation.
        are_trained = self.are_trained if known.likely is not None else None
        if are_trained is not None and any(map(are_trained, inputs)):
            known.likely, known.candidates = None, []
        if known.likely is not None:
            self._wait(key, scores)

    def _wait(self, key: Any, scores: torch.Tensor) -> None:
        """For the training's next loss."""
        if self._asked_after != self._hot.steps or not self._waiting:
            self._waiting, self._asked_in = {}, sources.here()
            self._asked_after, self._heard = self._hot.steps, 0
        if scores.numel() + sum(each.numel() for each in self._waiting.values()) <= _MOST_KEPT:
            self._waiting[key] = scores.clone()
        self._hot.hears_next_loss = True

    def _choose(self) -> None:
        """Of what has labels one is followed, once all that was evaluated again was looked at."""
        if any(k.is_doubtful and not k.candidates for k in self._evaluated.values()):
            self.end()  # of one of these it stays open whether it is told worse than another
            return
        others = [k for k in self._evaluated.values() if k.candidates]
        if any(k.is_doubtful for k in others):
            return
        waits = any(k.looks == 0 for k in others)
        found = [(k.loss, key, k.labels) for key, k in self._evaluated.items() if k.labels]
        calls = max((k.calls for k in self._evaluated.values()), default=0)
        if not found or self._roles is None or (waits and calls < _CALLS_IN_VAIN):
            return
        _, key, labels = max(found, key=lambda each: each[0])
        self._known, self._evaluated = (key, labels), {}
        told = {"loss": self._roles.loss, "of": "tensors"}
        self._session.event("evaluation_losses", json.dumps(told))

    def _compute_again(self, key: Any, place: _Place, scores: torch.Tensor) -> None:
        roles = self._roles
        labels = place.tensor()
        target = None if labels is None else self._target(labels, scores)
        if target is None or roles is None:
            self.end()
            return
        # Which unit they are in shows the better, the more is learned.
        line = line_through(roles.loss, scores, target)
        if line is not None and line.is_of_another_unit:
            self._wait(key, scores)
        else:
            self._computation.compute(roles.loss, self._settings, scores, target)

    def _candidates(
        self, inputs: list[torch.Tensor], scores: torch.Tensor
    ) -> list[tuple[_Place, float]]:
        """What there is that may be labels of these rows, with the loss of each."""
        roles = self._roles
        if roles is None or scores.numel() > _MOST_VALUES:
            return []
        x, (whole, start) = inputs[0], _whole(inputs[0])
        wanted = _Wanted(
            len(x),
            scores.numel() // roles.classes if roles.classes else scores.numel(),
            0 if whole is None else len(whole),
            start,
            roles.target_type.is_floating_point,
            ("cpu", scores.device.type),
            frozenset(each.untyped_storage()._cdata for each in inputs),
        )
        alive = _core.instances_of(torch.Tensor, exact=True)
        found: list[tuple[_Place, float]] = []
        for tensor in alive if len(alive) <= _MOST_ALIVE else ():
            try:
                labels = wanted.rows_of(tensor)
                target = None if labels is None else self._target(labels, scores)
            except Exception:  # of memory that is gone, of a view that may not be looked at
                continue
            if labels is None or target is None:
                continue
            if len(found) == _MOST_CANDIDATES:
                return []
            found.append((_place_of(labels), measure(roles.loss, scores, target)))
        return found

    def _likely_among(
        self, known: _Evaluated, inputs: list[torch.Tensor], scores: torch.Tensor
    ) -> tuple[_Place, Told] | None:
        """The only ones that go together with the scores, or one of several that are equal."""
        roles = self._roles
        found: list[tuple[_Place, float, torch.Tensor]] = []
        for place, first in known.candidates if roles is not None else ():
            labels = place.tensor()
            target = None if labels is None else self._target(labels, scores)
            if target is None or roles is None:
                continue
            evidence = Evidence(roles.loss, self._of_training.labels())
            evidence.add(scores, target, self._settings.get("ignore_index", -100))
            if not evidence.is_enough():
                continue
            if evidence.are_probabilities() and not self._of_training.are_probabilities:
                return None
            if any(not torch.equal(target, other) for *_, other in found):
                return None
            found.append((place, first, target))
        if not found or roles is None:
            return None
        place, first, target = found[0]
        measured = measure(roles.loss, scores, target)
        # What is to be made again is the input itself, of which others may be a noisy copy.
        for each in inputs if are_numbers(roles.loss) else ():
            own = self._target(each, scores) if each.numel() == scores.numel() else None
            if own is not None and measure(roles.loss, scores, own) <= measured:
                return None
        line = line_through(roles.loss, scores, target)
        return place, Told(measured < first, measured, line)


def _is_at_hand(tensor: torch.Tensor) -> bool:
    """Whether it has values that can be looked at."""
    if not is_plain(tensor) or tensor.is_nested or tensor.is_meta or tensor.is_inference():
        return False
    if _is_wrapped(tensor) or not may_read(tensor) or capturing_graph(tensor):
        return False
    lies = tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype
    storage = tensor.untyped_storage()
    return bool(storage.data_ptr() != 0 and _bytes_up_to(*lies) <= storage.nbytes())


def _bytes_up_to(
    offset: int, shape: Sequence[int], stride: Sequence[int], data_type: torch.dtype
) -> int:
    """What a storage must have for a tensor that lies in it so."""
    steps = sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
    return int(offset + steps + 1) * int(data_type.itemsize)


def _where(tensor: torch.Tensor) -> tuple[Any, ...]:
    at = tensor.data_ptr(), tensor._version
    return (*at, tensor.shape, tensor.stride(), tensor.dtype, tensor.device)


def _whole(x: torch.Tensor) -> tuple[torch.Tensor | None, int]:
    """The tensor of which `x` is some of the rows, and the first of these."""
    whole = x._base if x._is_view() else None
    if whole is None or whole.shape[1:] != x.shape[1:] or whole.stride() != x.stride():
        return None, 0
    step = x.stride()[0]
    offset = x.storage_offset() - whole.storage_offset()
    return (whole, offset // step) if step > 0 and offset % step == 0 else (None, 0)


def _place_of(labels: torch.Tensor) -> _Place:
    return _Place(
        StorageWeakRef(labels.untyped_storage()),
        labels.dtype,
        labels.storage_offset(),
        tuple(labels.shape),
        labels.stride(),
        _sums_of(labels),
    )


def _sums_of(labels: torch.Tensor) -> tuple[float, ...]:
    """By which it shows that values were changed: sums in which places count differently."""
    wide = labels.detach().reshape(-1).to(torch.float64)
    places = torch.arange(len(wide), dtype=torch.float64, device=wide.device)
    return tuple(torch.stack([wide.sum(), (wide * (places * 0.7310585).cos()).sum()]).tolist())


def _roles_of(
    outputs: dict[Path, tuple[torch.Tensor, int]],
    name: str,
    scores: torch.Tensor,
    target: torch.Tensor,
) -> _Roles | None:
    found = output_of(outputs, scores)
    if found is None:
        return None
    path, output = found
    form = form_of(scores.shape, output.shape)
    is_of_classes = name in OF_CLASSES
    if form is None or (is_of_classes and not 2 <= scores.dim() <= 4):
        return None
    classes = scores.shape[1] if is_of_classes else 0
    if classes > MOST_CLASSES:
        return None
    dims = output.dim(), scores.dim()
    return _Roles(name, path, form, dims, classes, target.dtype, target.dim())
