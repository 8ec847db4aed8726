"""Losses of evaluations that compute none, of the labels that came with the loader's batch.

    for x, y in loader:                          # of an evaluation, without gradients
        hits += (model(x).argmax(1) == y).sum()  # no loss function is called

Nothing of tensors is listened to. What is what has to show:

 - Which part of a `DataLoader`'s batch the model is given, which one is the target of its loss, and
   that this loss is given what the model returned: in three of a training's first steps, as the
   same memory or the same values, and in all that are looked at later.
 - That another data set is evaluated in the same way: one pass from its first batch to its last,
   no step in between, each batch given to the model once and as it came, and no loss computed.
 - That its labels are labels, and its rows not the training's: in one pass the model's outputs and
   the labels go together by far more than chance, in the units of the training. Of a model that
   tells nothing of that data they never do: in the third pass it is enough that the same part of a
   batch has classes that are as frequent as the training's.

From the next pass over that data set on, and no other, the training's loss is computed of each
batch when the model has returned, and recorded as that of an evaluation; an event of the run
(`evaluation_losses`) says that it was not the program's. The first loss that an
evaluation does compute ends it for good, and so does a pass over that data in another way. A model
in training mode some of which acts by it is left alone; so is what is changed, comes in another
form, or the loss cannot be given.

Kept are, of the data set's batches, those parts that have a role, to the end of the pass at most;
of the training's, the same at steps that are looked at.
"""

from __future__ import annotations

import functools
import json
import threading
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from traindbg import _core
from traindbg.hooks.torch.base.compiled import compiler_in_use
from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.guard import boundary, guarded
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
from traindbg.hooks.torch.labels.loader_batches import Batch, data_of, is_plain, leaf_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from traindbg.hooks.torch.base.guard import Guard
    from traindbg.hooks.torch.base.watched import WatchedModels
    from traindbg.hooks.torch.evaluations.phases import Evaluations
    from traindbg.hooks.torch.labels.loader_batches import Path


_LOOP = _core.ROLE_BITS["loop"]
_STEPS = 3  # of a training, that have to agree
_MOST_STEPS = 32  # by which they have
_BATCHES = 2  # that are kept: some loops draw one ahead, or from two loaders in turn
_MOST_SETS = 4  # of data that may be evaluated
_MOST_DRAWN = 256  # batches
_PASSES_ALIKE = 3  # over the same data, after which it is enough that its classes are as frequent
_MOST_PASSES = 8  # over data that do not show it is evaluated, or in which nothing is heard


class _Roles(NamedTuple):
    """What of a batch is what, and how it is given to the model and the loss."""

    arguments: tuple[Any, ...]  # of the model, that are no tensors; with their keys
    inputs: tuple[tuple[Path, Path], ...]  # of the model: the argument, and the part of a batch
    target: Path  # the part
    output: Path  # what of the model's output the loss is given
    loss: str
    scores_form: str
    target_form: str
    dims: tuple[int, ...]  # of the output, of what the loss is given, of the part
    classes: int  # 0: there are none
    part_type: torch.dtype
    target_type: torch.dtype


class _Pass(NamedTuple):
    """A forward pass of the training whose loss is awaited."""

    batch: Batch
    arguments: tuple[Any, ...]
    inputs: tuple[tuple[Path, Path], ...]
    outputs: dict[Path, tuple[torch.Tensor, int]]  # without graphs; and versions


def _inputs(batch: Batch, tensors: dict[Path, Any]) -> tuple[tuple[Path, Path], ...] | None:
    """Which parts of a batch the tensors are; None: one of them is none."""
    found = []
    for place, tensor in tensors.items():
        if not is_plain(tensor):
            return None
        part = next((path for path, part in batch.parts.items() if part.is_given(tensor)), None)
        if part is None:
            return None
        found.append((place, part))
    return tuple(found)


class _Round:
    """A pass over a set of data that is evaluated."""

    def __init__(self, iterator: Any, steps: int, evidence: Evidence | None) -> None:
        self.iterator = weakref.ref(iterator)
        self.steps = steps  # that the training had made
        self.evidence = evidence  # None: the data is known to be evaluated
        self.batches: list[Batch] = []  # the last ones
        self.drawn = self.used = self.calls = 0
        self.is_ended = self.is_broken = False
        self.is_of_training = False  # its first rows were trained on


class LoaderLabels:
    """One per recording, one thread. The losses that it computes are heard as the program's."""

    def __init__(
        self,
        session: _core.Session,
        guard: Guard,
        watched: WatchedModels,
        evaluations: Evaluations,
        computation: Computation,
    ) -> None:
        self.guard = guard
        self._computation = computation
        self._session = session
        self._hot = guard.hot
        self._watched = watched
        self._evaluations = evaluations
        self._is_wanted = False
        # Whether rows of an input were trained on, as far as that is known; set by who knows them.
        self.are_trained: Callable[[torch.Tensor], bool] | None = None
        self.forget()

    def follow(self, is_wanted: bool) -> None:
        """Losses of evaluations are asked for, or not."""
        self._is_wanted = is_wanted
        self._begin()

    def forget(self) -> None:
        """Another training begins."""
        self._is_over = False
        self._began = self._hot.steps
        self._drop()
        self._begin()

    def _drop(self) -> None:
        self._drawn: list[Batch] = []  # of the training
        self._draws = 0  # before it was known what is what
        self._pass: _Pass | None = None
        self._has_returned = False  # the model, in the step under way, of a batch
        self._roles: _Roles | None = None
        self._paths: list[Path] | None = None  # of parts that have a role
        self._settings: dict[str, Any] = {}
        self._agreed = 0  # steps
        self._of_training = OfTraining()
        self._trained: weakref.ref[Any] | None = None  # the training's data
        self._round: _Round | None = None
        self._sets: dict[int, tuple[weakref.ref[Any], int]] = {}  # passes that showed nothing
        self._evaluated: weakref.ref[Any] | None = None  # the data that is known to be
        self._unheard = 0

    @property
    def listens(self) -> bool:
        """Whether passes of an evaluation are to be heard, whatever else is due."""
        return self._round is not None and not self._is_over

    @property
    def may_listen(self) -> bool:
        """Whether there may be such evaluations."""
        return self._agreed == _STEPS and not self._is_over

    def _begin(self) -> None:
        self._thread = threading.get_ident()
        if self._is_wanted and not self._is_over:
            _listener.labels = weakref.ref(self)

    def end(self) -> None:
        """Evaluations have losses, or none can be computed."""
        self._is_over = True
        self._drop()
        if _listener.labels is not None and _listener.labels() in (self, None):
            _listener.labels = None

    @property
    def computes(self) -> bool:
        """Whether a loss is computed here now, not by the program."""
        return self._computation.is_under_way

    def evaluated(self) -> None:
        """A loss of an evaluation was computed; by the program, unless it is ours."""
        if not self._computation.is_under_way and not self._is_over:
            self.end()

    # What loaders give.

    def skips(self, iterator: Any) -> bool:
        """Whether what an iterator gives is of no interest now."""
        data = getattr(iterator, "_dataset", None)
        if self._is_over or data is None or not hasattr(iterator, "_num_yielded"):
            return True  # of another library
        if self._agreed < _STEPS or self._round is not None or self._hot.due & _LOOP:
            return False
        trained = None if self._trained is None else self._trained()
        return trained is data or trained is getattr(iterator, "_index_sampler", self)

    def drawn(self, iterator: Any, batch: Any) -> None:
        """`iterator`: of a `DataLoader`."""
        if threading.get_ident() != self._thread:
            return
        data = data_of(iterator)
        if self._agreed < _STEPS:
            self._draws += 1
            if self._is_too_late() or compiler_in_use():
                self.end()
                return
            if self._hot.due & _LOOP:
                self._drawn = [*self._drawn[1 - _BATCHES :], Batch(batch, data, None)]
        elif self._trained is None or self._trained() is data:
            self._leave_round()
            is_looked_at = bool(self._hot.due & _LOOP)
            self._drawn = [Batch(batch, data, self._paths)] if is_looked_at else []
        else:
            self._drawn = []
            self._evaluates_next(iterator, batch, data)

    def _is_too_late(self) -> bool:
        steps = self._hot.steps - self._began
        return self._agreed < _STEPS and (steps > _MOST_STEPS or self._draws > _MOST_DRAWN)

    def _evaluates_next(self, iterator: Any, batch: Any, data: Any) -> None:
        current = self._round
        if iterator._num_yielded == 1:
            self._leave_round()
            if self._is_over or not self._may_be_evaluated(data):
                return
            evidence = None
            if self._evaluated is None and self._roles is not None:
                evidence = Evidence(self._roles.loss, self._of_training.labels())
            current = self._round = _Round(iterator, self._hot.steps, evidence)
        elif current is None or current.iterator() is not iterator:
            self._leave_round()  # from the middle on
            return
        current.drawn += 1
        rest = [each for each in current.batches[1 - _BATCHES :] if not each.is_used]
        current.batches = [*rest, Batch(batch, data, self._paths)]

    def _may_be_evaluated(self, data: Any) -> bool:
        if self._evaluated is not None:
            return self._evaluated() is data
        self._sets = {key: known for key, known in self._sets.items() if known[0]() is not None}
        known = self._sets.get(id(data))
        if known is None:
            return len(self._sets) < _MOST_SETS
        return known[0]() is data and known[1] < _MOST_PASSES

    def _leave_round(self) -> None:
        """Something else is drawn."""
        current, self._round = self._round, None
        if current is not None and current.calls == 0:
            self._unheard += 1
            if self._unheard >= _MOST_PASSES:
                self.end()

    def ended(self, iterator: Any) -> None:
        """It has no further batch."""
        if threading.get_ident() != self._thread:
            return
        self._drawn = []
        current = self._round
        if current is not None and current.iterator() is iterator:
            current.is_ended = True
            self._close(current)

    def _close(self, current: _Round) -> None:
        """The pass is over, unless its last batch was drawn ahead."""
        if not current.is_ended or current.used < current.drawn:
            return
        self._round = None
        if current.is_broken or current.evidence is None or not current.batches:
            return
        data = weakref.ref(current.batches[-1].data)
        passes = self._sets.get(id(data()), (data, 0))[1]
        is_told = current.evidence.is_enough()
        if not is_told and not (passes + 1 >= _PASSES_ALIKE and current.evidence.are_alike()):
            self._sets[id(data())] = data, passes + 1
        elif current.evidence.are_probabilities() and not self._of_training.are_probabilities:
            self.end()
        elif current.is_of_training:
            self._sets[id(data())] = data, _MOST_PASSES
        else:
            self._evaluated, self._sets = data, {}
            if self._roles is not None:
                self._session.event("evaluation_losses", json.dumps({"loss": self._roles.loss}))

    # A training.

    def trains(self, given: Any, output: Any) -> None:
        """The model has returned, in a step of the training that is looked at."""
        self._pass = None
        if self._is_over or not self._is_wanted:
            return
        if self._round is not None and self._round.steps != self._hot.steps:
            self._leave_round()
        if not self._drawn:
            return
        if len(self._watched.watchers) != 1 or self._is_too_late():
            self.end()
            return
        arguments, tensors = told_apart(given)
        if any(map(capturing_graph, tensors.values())):
            return
        with own_operations():
            for batch in self._drawn[::-1]:
                inputs = _inputs(batch, tensors)
                if inputs:
                    self._drawn = self._drawn[self._drawn.index(batch) + 1 :]
                    self._has_returned = True
                    self._pass = _Pass(batch, arguments, inputs, outputs_of(output))
                    return
        if self._agreed < _STEPS:
            self.end()  # it is given something else

    def step_ends(self) -> None:
        """A step of the training that is looked at is about to end: what it was given is let go."""
        if not self._has_returned or self._agreed == _STEPS:
            self._drawn = []
        self._has_returned, self._pass = False, None

    def trained_by(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A loss of the training was computed; the first one after each pass counts."""
        awaited, self._pass = self._pass, None
        if awaited is None or self._is_over:
            return
        scores = args[0] if args else kwargs.get("input")
        target = args[1] if len(args) > 1 else kwargs.get("target")
        settings = settings_of(name, args, kwargs)
        if self._agreed == _STEPS:
            self._drawn = []
        if not isinstance(scores, torch.Tensor) or not isinstance(target, torch.Tensor):
            self.end()
            return
        are_plain = is_plain(scores) and is_plain(target)
        if not are_plain and self._agreed == _STEPS:
            return  # of a single row, say
        if settings is not None and are_plain:
            with own_operations():
                roles = self._roles_of(awaited, name, scores, target)
                if roles is not None and self._is_as_before(awaited, roles, settings):
                    if self._agreed < _STEPS:
                        self._agree(awaited, roles, settings, scores.detach(), target.detach())
                    return
        self.end()

    def _is_as_before(self, awaited: _Pass, roles: _Roles, settings: dict[str, Any]) -> bool:
        """As in the steps that agreed, if there are any."""
        if self._roles is None or self._trained is None:
            return True
        is_same = roles == self._roles and self._trained() is awaited.batch.data
        return is_same and are_equal(settings, self._settings)

    def _agree(
        self,
        awaited: _Pass,
        roles: _Roles,
        settings: dict[str, Any],
        scores: torch.Tensor,
        target: torch.Tensor,
    ) -> None:
        if not self._of_training.add(roles.loss, scores, target):
            return
        self._roles = roles
        self._settings = {
            key: value.detach().clone() if isinstance(value, torch.Tensor) else value
            for key, value in settings.items()
        }
        self._trained = weakref.ref(awaited.batch.data)
        self._agreed += 1
        if self._agreed == _STEPS:
            self._paths = [*dict.fromkeys([*(part for _, part in roles.inputs), roles.target])]
            self._drawn = []

    def _roles_of(
        self, awaited: _Pass, name: str, scores: torch.Tensor, target: torch.Tensor
    ) -> _Roles | None:
        found = output_of(awaited.outputs, scores)
        parts = awaited.batch.parts
        targets = [path for path, part in parts.items() if part.is_given(target)]
        if found is None or len(targets) != 1:
            return None
        output, part = found[1], parts[targets[0]].tensor
        scores_form = form_of(scores.shape, output.shape)
        target_form = form_of(target.shape, part.shape)
        is_of_classes = name in OF_CLASSES
        if scores_form is None or target_form is None or (is_of_classes and scores.dim() < 2):
            return None
        if is_of_classes and scores.shape[1] > MOST_CLASSES:
            return None
        return _Roles(
            awaited.arguments,
            awaited.inputs,
            targets[0],
            found[0],
            name,
            scores_form,
            target_form,
            (output.dim(), scores.dim(), part.dim()),
            scores.shape[1] if is_of_classes else 0,
            part.dtype,
            target.dtype,
        )

    # An evaluation.

    @boundary("loader labels")
    def evaluates(self, given: Any, output: Any) -> None:
        """The model has returned, in a pass of an evaluation."""
        current, roles = self._round, self._roles
        if current is None or roles is None or self._is_over:
            return
        current.calls += 1
        arguments, tensors = told_apart(given)
        is_as_wanted = self._hot.steps == current.steps and arguments == roles.arguments
        if any(map(capturing_graph, tensors.values())):
            return
        batch = both = None
        if is_as_wanted and is_evaluated(self._watched, self._evaluations):
            with own_operations():
                batch = self._given_of(current, roles, tensors)
                if batch is not None and not batch.is_used:
                    both = self._scores_and_target(roles, batch, output)
        if batch is None or both is None:
            current.is_broken = True
            if self._evaluated is not None:
                self.end()  # it is evaluated in another way than before
            return
        batch.is_used = True
        current.used += 1
        with own_operations():
            if current.evidence is None:
                self._computation.compute(roles.loss, self._settings, *both)
            else:
                self._add(current, current.evidence, tensors, both)
        if not self._is_over:
            self._close(current)

    def _add(
        self,
        current: _Round,
        evidence: Evidence,
        tensors: dict[Path, Any],
        both: tuple[torch.Tensor, torch.Tensor],
    ) -> None:
        evidence.add(*both, self._settings.get("ignore_index", -100))
        if current.used == 1 and self.are_trained is not None:
            current.is_of_training = any(map(self.are_trained, tensors.values()))

    def _given_of(self, current: _Round, roles: _Roles, tensors: dict[Path, Any]) -> Batch | None:
        """The batch that the model was given, as it came."""
        if tensors.keys() != dict(roles.inputs).keys():
            return None
        for batch in reversed(current.batches):
            pairs = [(tensors[place], batch.parts.get(part)) for place, part in roles.inputs]
            if all(part is not None and is_plain(x) and part.is_given(x) for x, part in pairs):
                return batch
        return None

    def _scores_and_target(
        self, roles: _Roles, batch: Batch, output: Any
    ) -> tuple[torch.Tensor, torch.Tensor] | None:
        scores: Any = leaf_at(output, roles.output)
        part = batch.parts.get(roles.target)
        if part is None or not part.is_as_given() or not is_plain(scores):
            return None
        labels = part.tensor
        if not scores.is_floating_point() or labels.dtype != roles.part_type:
            return None
        if (scores.dim(), labels.dim()) != roles.dims[::2]:
            return None
        scores = scores.detach().reshape(FORMS[roles.scores_form](scores.shape))
        target = labels.detach().reshape(FORMS[roles.target_form](labels.shape))
        target = target.to(scores.device, roles.target_type)
        scores = in_wide(scores)
        if scores.dim() != roles.dims[1] or (roles.classes and scores.shape[1] != roles.classes):
            return None
        if not can_be_given(roles.loss, scores, target, self._settings):
            return None
        return scores, target


class _Listener:
    """Of the process: who hears what loaders give."""

    labels: weakref.ref[LoaderLabels] | None = None


_listener = _Listener()


def listening_next(original: Callable[..., Any]) -> Callable[..., Any]:
    """`__next__` of what a `DataLoader` is iterated with."""

    @functools.wraps(original)
    def __next__(self: Any) -> Any:  # noqa: N807
        labels = None if _listener.labels is None else _listener.labels()
        if labels is None:
            return original(self)
        try:
            batch = original(self)
        except StopIteration:
            guarded("loader labels", labels.ended, self)
            raise
        try:
            is_skipped = labels.skips(self)
        except Exception:  # of an iterator that is none of PyTorch's
            is_skipped = True
        if not is_skipped:
            guarded("loader labels", labels.drawn, self, batch)
        return batch

    return __next__
