"""Losses of evaluations that compute none, of labels that lie beside the tensor that is evaluated.

    with torch.no_grad():
        accuracy = (model(x_val).argmax(1) == y_val).float().mean()  # no loss function is called

Nothing is listened to, and no variable of the program is read: among all tensors that are alive,
those are looked for that may be the labels of as many rows. What is what has to show:

 - The training's loss is given what the model returned, in three steps that are looked at.
 - The same tensors are evaluated again after more steps, without a loss, and are none of the
   training's. Of tensors that were there at the first time already, lie elsewhere than the inputs
   and have the same values still, one alone goes together with what the model returns by far more
   than chance (`torch_label_evidence`), or several that are equal; by more than then, in the units
   of the training, and not much worse than its own labels, once these are known well. The last two
   are judged when the training's next loss is computed, which is of the same weights.

All of it in host memory alone. From then on the training's loss is computed whenever these are
evaluated, and recorded as that of an evaluation, as of a loader's (`torch_loader_labels`), which
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
from traindbg.hooks.torch_compiled import compiler_in_use
from traindbg.hooks.torch_device import capturing_graph, own_operations
from traindbg.hooks.torch_guard import boundary
from traindbg.hooks.torch_label_evidence import OF_CLASSES, OF_TWO, Evidence
from traindbg.hooks.torch_label_forms import (
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
from traindbg.hooks.torch_later import may_read
from traindbg.hooks.torch_loader_batches import is_plain, leaf_at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from traindbg.hooks.torch_evaluations import Evaluations
    from traindbg.hooks.torch_guard import Guard
    from traindbg.hooks.torch_loader_batches import Path
    from traindbg.hooks.torch_watched import WatchedModels

_LOOP = _core.ROLE_BITS["loop"]
_STEPS = 3  # of a training, that have to agree
_MOST_STEPS = 32  # that are looked at until they have
_FEWEST_ROWS = 32
_MOST_TENSORS = 4  # that may be evaluated
_MOST_CANDIDATES = 64
_MOST_CALLS = 64  # of an evaluation, that lead to nothing
_MOST_LOOKS, _LATE_LOOKS = 8, 4  # at a tensor that is evaluated again
_MOST_VALUES = 1 << 24  # of labels
_MOST_KEPT = 1 << 22  # scores, until the training's next loss
_MOST_ALIVE = 100_000  # tensors
# Of the training's first loss: what is left where much is learned, and by how much worse other
# labels than its own may then be told; before that, as a multiple.
_LEARNED, _WORSE, _NEARLY = 0.25, 0.2, 1.2
_CALLS_IN_VAIN = 3  # of what is evaluated, while another one is not again
# Of the labels' variance: the squared error of numbers that are told well; what the best line may
# leave less of, as a multiple of its own error and beside it.
_TOLD, _AS_LINE, _ROUNDING = 0.6, 1.5, 0.02
_FEWEST_NUMBERS = 16  # of a batch, that a line is laid through
# A line that leaves less of it than this, and is off by so much, is of another unit.
_NEARLY_ALL, _OFF = 0.1, 0.2

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


class _Likely(NamedTuple):
    """What alone goes together with what the model returned, until it is judged."""

    place: _Place
    is_better: bool  # than at first: what a model said before is left behind by one that learns
    measure: float
    line: _Line | None  # None: they are no numbers


class _Evaluated:
    """What is evaluated: by where it lies."""

    def __init__(self, steps: int) -> None:
        self.steps = steps  # that the training had made when it was evaluated last
        self.calls = self.looks = 0  # since then
        self.candidates: list[tuple[_Place, float]] = []  # and the loss of each at first
        self.likely: _Likely | None = None  # of the last look
        self.is_doubtful = False  # what was likely was told too badly, up to now
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
        self._first = 0.0  # what `_measure` says of the training's first step that told anything
        # What was evaluated last, until it is judged: the key and what the loss would be given.
        self._waiting: tuple[Any, torch.Tensor] | None = None
        self._hot.hears_next_loss = False

    @property
    def listens(self) -> bool:
        """Whether passes of an evaluation are to be heard, whatever else is due."""
        return self._agreed == _STEPS and not self._is_over

    def end(self) -> None:
        """Evaluations have losses, or none can be computed."""
        self._is_over = True
        self._drop()

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
            if roles is None or not is_same:
                self.end()
            elif self._of_training.add(name, scores.detach(), target.detach()):
                self._roles = roles
                self._settings = {
                    key: value.detach().clone() if isinstance(value, torch.Tensor) else value
                    for key, value in settings.items()
                }
                self._agreed += 1
                self._first = self._first or _measure(
                    roles, in_wide(scores.detach()), target.detach()
                )

    @boundary("tensor labels")
    def trained_after_evaluation(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """The next loss of the training is computed, by the weights that were evaluated."""
        roles = self._roles
        scores = args[0] if args else kwargs.get("input")
        target = args[1] if len(args) > 1 else kwargs.get("target")
        if roles is None or self._is_over:
            self._hot.hears_next_loss = False
            return
        if name != roles.loss:
            return
        waiting, self._waiting = self._waiting, None
        self._hot.hears_next_loss = False
        if not isinstance(scores, torch.Tensor) or not isinstance(target, torch.Tensor):
            return
        if not _is_at_hand(scores) or not _is_at_hand(target) or target.dtype != roles.target_type:
            return
        with own_operations():
            scores, target = in_wide(scores.detach()), target.detach()
            is_given = can_be_given(name, scores, target, self._settings)
            if scores.dim() == roles.dims[1] and is_given:
                self._judge(roles, scores, target, waiting)

    def _judge(
        self,
        roles: _Roles,
        scores: torch.Tensor,
        target: torch.Tensor,
        waiting: tuple[Any, torch.Tensor] | None,
    ) -> None:
        """What was evaluated, beside what the training is given."""
        is_line = _are_numbers(roles) and target.numel() >= _FEWEST_NUMBERS
        line = _line_through(scores, target) if is_line else None
        if self._known is None:
            now = _measure(roles, scores, target)
            for known in self._evaluated.values():
                self._judge_likely(known, now, line)
            self._choose()
        elif waiting is not None and _are_numbers(roles):
            labels = self._known[1].tensor()
            others = None if labels is None else self._target(labels, waiting[1])
            if others is None or _line_through(waiting[1], others).is_of_another_unit(line):
                self.end()
                return
        if self._known is not None and waiting is not None and waiting[0] == self._known[0]:
            self._compute(self._known[1], waiting[1])
            self._evaluations.end()  # the training goes on

    def _judge_likely(self, known: _Evaluated, now: float, line: _Line | None) -> None:
        likely, known.likely = known.likely, None
        if likely is None:
            return
        is_of_unit = likely.line is None or likely.line.is_of_unit(line)
        is_sure = likely.is_better and is_of_unit
        is_sure = is_sure and self._is_told_as_in_training(likely.measure, now, known.looks)
        known.is_doubtful = not is_sure
        if is_sure:
            known.labels, known.loss = likely.place, likely.measure
        if is_sure or known.looks == _MOST_LOOKS:
            known.candidates = []

    def _is_told_as_in_training(self, measure: float, now: float, looks: int) -> bool:
        """Else they may be what another model says, which labels are like.

        That shows once much is learned; where little can be, they have to be told nearly as well.
        """
        if now < _LEARNED * self._first:
            return measure < now + _WORSE * self._first
        return looks >= _LATE_LOOKS and measure < _NEARLY * now

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
        self._wait(key, scores)
        if known.labels is None and known.candidates:
            known.looks += 1
            known.likely = self._likely_among(known, scores)
            if known.looks == _MOST_LOOKS and known.likely is None:
                known.candidates = []
            # How well the training's own rows are known is no evaluation.
            are_trained = self.are_trained if known.likely is not None else None
            if are_trained is not None and any(map(are_trained, inputs)):
                known.likely, known.candidates = None, []

    def _wait(self, key: Any, scores: torch.Tensor) -> None:
        """For the training's next loss."""
        self._hot.hears_next_loss = True
        self._waiting = (key, scores.clone()) if scores.numel() <= _MOST_KEPT else None

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
        # Which unit they are in shows the better, the more is learned.
        elif _are_numbers(roles) and _line_through(scores, target).is_of_another_unit(None):
            self._wait(key, scores)
        else:
            self._computation.compute(roles.loss, self._settings, scores, target)

    def _compute(self, place: _Place, scores: torch.Tensor) -> None:
        labels = place.tensor()
        target = None if labels is None else self._target(labels, scores)
        if target is not None and self._roles is not None:
            self._computation.compute(self._roles.loss, self._settings, scores, target)

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
            found.append((_place_of(labels), _measure(roles, scores, target)))
        return found

    def _likely_among(self, known: _Evaluated, scores: torch.Tensor) -> _Likely | None:
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
        measure = _measure(roles, scores, target)
        line = _line_through(scores, target) if _are_numbers(roles) else None
        return _Likely(place, measure < first, measure, line)


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


def _measure(roles: _Roles, scores: torch.Tensor, target: torch.Tensor) -> float:
    """Smaller, the better they go together: about what the loss is, of functions nobody hears."""
    if _are_numbers(roles):
        return float((scores - target).square().mean())
    if roles.loss in OF_TWO:
        if roles.loss == "binary_cross_entropy":
            scores = scores.clamp(1e-6, 1 - 1e-6).logit()
        return float(
            (scores.clamp_min(0) - scores * target + scores.abs().neg().exp().log1p()).mean()
        )
    logs = scores.log_softmax(1) if roles.loss == "cross_entropy" else scores
    if target.is_floating_point():
        return float(-(target * logs).sum(1).mean())
    is_class = (target >= 0) & (target < scores.shape[1])
    told = logs.gather(1, torch.where(is_class, target, 0).unsqueeze(1)).squeeze(1)
    return float(-(told * is_class).sum() / is_class.sum().clamp_min(1))


def _are_numbers(roles: _Roles) -> bool:
    return roles.loss not in OF_CLASSES and roles.loss not in OF_TWO


class _Line(NamedTuple):
    """Of labels by outputs: what is left of the labels' variance, and the best line's slope."""

    error: float  # of the outputs as they are
    of_line: float
    slope: float

    def is_of_unit(self, training: _Line | None) -> bool:
        """Numbers are told, and no other line through the outputs would tell them much better.

        Or nearly as well as those of the training are: a model that is not done is off by a slope.
        """
        if self.error >= _TOLD:
            return False
        if training is None:
            return self.error <= _AS_LINE * self.of_line + _ROUNDING
        best = max(self.of_line, training.error)
        return self.error <= _AS_LINE * best + _ROUNDING and not self._is_off(training.slope)

    def is_of_another_unit(self, training: _Line | None) -> bool:
        """But for the slope that those of the training have as well."""
        return self._is_off(1) and (training is None or self._is_off(training.slope))

    def _is_off(self, slope: float) -> bool:
        return self.of_line < _NEARLY_ALL and abs(self.slope - slope) > _OFF * abs(slope)


def _line_through(scores: torch.Tensor, target: torch.Tensor) -> _Line:
    p, t = (each.detach().reshape(-1).to(torch.float64) for each in (scores, target))
    spread = max(float(t.var(correction=0)), 1e-300)
    slope = float(((p - p.mean()) * (t - t.mean())).mean()) / max(
        float(p.var(correction=0)), 1e-300
    )
    of_line = float((t - t.mean() - slope * (p - p.mean())).square().mean())
    return _Line(float((p - t).square().mean()) / spread, of_line / spread, slope)


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
