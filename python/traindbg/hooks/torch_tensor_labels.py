"""Losses of evaluations that compute none, of labels that lie beside the tensor that is evaluated.

    with torch.no_grad():
        accuracy = (model(x_val).argmax(1) == y_val).float().mean()  # no loss function is called

Nothing is listened to, and no variable of the program is read: among all tensors that are alive,
those are looked for that may be the labels of as many rows. What is what has to show:

 - The training's loss is given what the model returned, in three steps that are looked at.
 - The same tensor is evaluated again after more steps, without a loss, and it is none of the
   training's. Of tensors that were there at the first time already (no prediction was), and were
   not written to since, one alone goes together with what the model returns by far more than
   chance, in the units of the training (`torch_label_evidence`); or several that are equal.

From then on the training's loss is computed whenever that tensor is evaluated, and recorded as that
of an evaluation, as of a loader's (`torch_loader_labels`), which goes first. A loss that the
program computes in an evaluation ends it for good.

No tensor is kept: what is remembered of them are weak references. A search goes through all
objects of the process once, for each of four tensors at most.
"""

from __future__ import annotations

import json
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from traindbg import _core
from traindbg.hooks.torch_compiled import compiler_in_use
from traindbg.hooks.torch_device import capturing_graph, own_operations
from traindbg.hooks.torch_guard import boundary
from traindbg.hooks.torch_label_evidence import OF_CLASSES, Evidence
from traindbg.hooks.torch_label_forms import (
    FORMS,
    MOST_CLASSES,
    Computation,
    OfTraining,
    are_equal,
    can_be_given,
    form_of,
    in_wide,
    output_of,
    outputs_of,
    settings_of,
)
from traindbg.hooks.torch_loader_batches import is_plain, leaf_at, leaves_of
from traindbg.hooks.torch_module_modes import acts_by_mode

if TYPE_CHECKING:
    from collections.abc import Callable

    from traindbg.hooks.torch_evaluations import Evaluations
    from traindbg.hooks.torch_guard import Guard
    from traindbg.hooks.torch_loader_batches import Path
    from traindbg.hooks.torch_watched import WatchedModels

_EVAL = _core.EVAL
_STEPS = 3  # of a training, that have to agree
_MOST_STEPS = 32  # that are looked at until they have
_FEWEST_ROWS = 32
_MOST_TENSORS = 4  # that may be evaluated
_MOST_CANDIDATES = 64
_MOST_CALLS = 64  # of an evaluation, that lead to nothing
_MOST_LOOKS = 8  # at a tensor that is evaluated again
_MOST_VALUES = 1 << 24  # of labels


class _Roles(NamedTuple):
    """How the training's loss is computed."""

    loss: str
    output: Path  # what of the model's output it is given
    scores_form: str
    dims: tuple[int, int]  # of the output, of what the loss is given
    classes: int  # 0: there are none
    target_type: torch.dtype
    target_dims: int


class _View(NamedTuple):
    """A tensor, or some of its rows."""

    tensor: weakref.ref[torch.Tensor]
    version: int
    start: int

    def rows(self, number: int) -> torch.Tensor | None:
        """None: it is gone, or was written to."""
        tensor = self.tensor()
        if tensor is None or tensor.is_inference() or tensor._version != self.version:
            return None
        return tensor.detach()[self.start : self.start + number]


class _Evaluated:
    """A tensor that is evaluated: by where it lies."""

    def __init__(self, steps: int, candidates: list[_View]) -> None:
        self.steps = steps  # that the training had made when it was evaluated last
        self.candidates = candidates
        self.looks = 0


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
        self._known: tuple[Any, _View] | None = None  # what is evaluated, and its labels

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
        if not outputs or self._is_over:
            return
        scores = args[0] if args else kwargs.get("input")
        target = args[1] if len(args) > 1 else kwargs.get("target")
        settings = settings_of(name, args, kwargs)
        is_plain_loss = is_plain(scores) and is_plain(target)
        if settings is None or not is_plain_loss or capturing_graph(target):
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

    # An evaluation.

    @boundary("tensor labels")
    def evaluates(self, given: Any, output: Any) -> None:
        """The model has returned, in a pass of an evaluation that no loader has a part in."""
        if not self.listens or self._roles is None:
            return
        inputs = [leaf for _, leaf in leaves_of(given) if isinstance(leaf, torch.Tensor)]
        if not inputs or not all(map(is_plain, inputs)) or any(map(capturing_graph, inputs)):
            self._called_in_vain()
            return
        x = inputs[0]
        if x.is_inference():
            self._called_in_vain()
            return
        key = (x.data_ptr(), x._version, x.shape, x.stride(), x.dtype, x.device)
        if self._known is not None and self._known[0] != key:
            return
        if len(x) < _FEWEST_ROWS or not self._is_to_be_evaluated():
            self._called_in_vain()
            return
        with own_operations():
            scores = self._scores(output)
            if scores is None:
                self._called_in_vain()
            elif self._known is not None:
                self._compute_again(x, scores)
            else:
                self._look(key, x, scores)

    def _called_in_vain(self) -> None:
        """Many such calls are no evaluations: a policy plays, say."""
        if self._known is None:
            self._calls += 1
            if self._calls > _MOST_CALLS:
                self.end()

    def _is_to_be_evaluated(self) -> bool:
        """Whether the model is what is evaluated, and nothing in it acts as in training."""
        models = [watcher.model for watcher in self._watched.watchers]
        if len(models) != 1 or models[0] is None or self._evaluations.mode() != _EVAL:
            return False
        return not models[0].training or not any(map(acts_by_mode, models[0].modules()))

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

    def _look(self, key: Any, x: torch.Tensor, scores: torch.Tensor) -> None:
        known = self._evaluated.get(key)
        if known is None:
            if len(self._evaluated) >= _MOST_TENSORS:
                self._called_in_vain()
                return
            self._evaluated[key] = _Evaluated(self._hot.steps, self._candidates(x, scores))
            return
        if known.steps == self._hot.steps or not known.candidates:
            return
        known.steps = self._hot.steps
        known.looks += 1
        if known.looks > _MOST_LOOKS:
            known.candidates = []
            return
        found = self._labels_among(known.candidates, len(x), scores)
        if found is None:
            return
        if self.are_trained is not None and self.are_trained(x):
            known.candidates = []  # how well the training's own rows are known
            return
        self._known, self._evaluated = (key, found), {}
        if self._roles is not None:
            told = {"loss": self._roles.loss, "of": "tensors"}
            self._session.event("evaluation_losses", json.dumps(told))
        self._compute_again(x, scores)

    def _compute_again(self, x: torch.Tensor, scores: torch.Tensor) -> None:
        labels = None if self._known is None else self._known[1].rows(len(x))
        target = None if labels is None else self._target(labels, scores)
        if target is None or self._roles is None:
            self.end()
            return
        self._computation.compute(self._roles.loss, self._settings, scores, target)

    def _candidates(self, x: torch.Tensor, scores: torch.Tensor) -> list[_View]:
        """What there is that may be labels of these rows."""
        roles = self._roles
        if roles is None or scores.numel() > _MOST_VALUES:
            return []
        number = scores.numel() // roles.classes if roles.classes else scores.numel()
        is_of_numbers = roles.target_type.is_floating_point
        whole = x._base if x._is_view() and x._base is not None else None
        start = 0
        if whole is not None and whole.dim() == x.dim() and whole.stride() == x.stride():
            start = (x.storage_offset() - whole.storage_offset()) // max(x.stride()[0], 1)
        found: list[_View] = []
        for tensor in _core.instances_of(torch.Tensor, exact=True):
            if not is_plain(tensor) or tensor.requires_grad or tensor.is_inference():
                continue
            if tensor.is_floating_point() and not is_of_numbers:
                continue
            if tensor.device.type not in ("cpu", scores.device.type):
                continue
            is_whole = len(tensor) == len(x) and tensor.numel() == number
            is_longer = whole is not None and len(tensor) == len(whole) > len(x)
            if is_longer and tensor.numel() * len(x) != number * len(tensor):
                is_longer = False
            if not is_whole and not is_longer:
                continue
            if len(found) == _MOST_CANDIDATES:
                return []
            found.append(_View(weakref.ref(tensor), tensor._version, 0 if is_whole else start))
        return found

    def _labels_among(
        self, candidates: list[_View], number: int, scores: torch.Tensor
    ) -> _View | None:
        """The only ones that go together with the scores; or one of several that are equal."""
        roles = self._roles
        found: list[tuple[_View, torch.Tensor]] = []
        for view in candidates if roles is not None else ():
            labels = view.rows(number)
            target = None if labels is None else self._target(labels, scores)
            if target is None or roles is None:
                continue
            evidence = Evidence(roles.loss, self._of_training.labels())
            evidence.add(scores, target, self._settings.get("ignore_index", -100))
            if not evidence.is_enough():
                continue
            if evidence.are_probabilities() and not self._of_training.are_probabilities:
                return None
            if any(not torch.equal(target, other) for _, other in found):
                return None
            found.append((view, target))
        return found[0][0] if found else None


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
