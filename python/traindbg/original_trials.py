"""Trials, tensors and collections as rules of the SageMaker Debugger client read them.

A trial holds what a rule was shown of one worker. Names of tensors are ours; the original's find
the same tensors, and are told by the native program, which has the one table of them.
"""

from __future__ import annotations

import itertools
import math
import re
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from traindbg.original_errors import (
    InvalidWorker,
    ModeKeys,
    NoMoreData,
    SMDebugNotImplementedError,
    SMDebugValueError,
    StepNotYetAvailable,
    StepState,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from traindbg.rules import Statistics, Step, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_MOST_STEPS = 1000
_MOST_RAW_BYTES = 256 << 20  # of all trials of the process

_PART = 1 << 20  # values of a whole tensor that are reduced at a time
_TOLD_TOGETHER = ("min", "max", "mean", "std", "sum", "l1", "l2", "variance")
# What every trial of the original has; what a tensor is in beside is known when it is recorded.
_COLLECTIONS = ("all", "default", "weights", "biases", "gradients", "losses")


class CollectionKeys:
    """Names of the original's collections."""

    DEFAULT = "default"
    ALL = "all"
    INPUTS = "inputs"
    OUTPUTS = "outputs"
    WEIGHTS = "weights"
    GRADIENTS = "gradients"
    LOSSES = "losses"
    BIASES = "biases"
    LAYERS = "layers"
    SM_METRICS = "sm_metrics"
    OPTIMIZER_VARIABLES = "optimizer_variables"
    TENSORFLOW_SUMMARIES = "tensorflow_summaries"
    METRICS = "metrics"
    HYPERPARAMETERS = "hyperparameters"
    PREDICTIONS = "predictions"
    LABELS = "labels"
    FEATURE_IMPORTANCE = "feature_importance"
    AVERAGE_SHAP = "average_shap"
    FULL_SHAP = "full_shap"
    TREES = "trees"


def _not_here(what: str, instead: str) -> SMDebugNotImplementedError:
    return SMDebugNotImplementedError(f"{what}: has no meaning in traindbg; {instead}")


class _AttributeNotHereError(SMDebugNotImplementedError, AttributeError):
    """Of an attribute, so that `hasattr` and a default of `getattr` work as ever."""


# By this name it is told.
_AttributeNotHereError.__name__ = _AttributeNotHereError.__qualname__ = "SMDebugNotImplementedError"


def _mode_word(mode: ModeKeys) -> str:
    if not isinstance(mode, ModeKeys):
        known = ", ".join(str(each) for each in ModeKeys)
        raise SMDebugValueError(f"{mode!r}: is no mode; there are {known}")
    return {ModeKeys.EVAL: "eval", ModeKeys.PREDICT: "predict"}.get(mode, "train")


# Reductions.


def _of_statistics(known: Statistics, name: str, absolute: bool) -> float | None:
    """What NumPy says of the values; statistics have the moments of the finite ones alone."""
    if known.count == 0:
        return None
    if known.nan:
        return math.nan
    finite = known.count - known.positive_infinite - known.negative_infinite
    if finite < known.count:
        return _of_infinite(known, name, absolute, has_finite=finite > 0)
    if not absolute:
        plain = {
            "min": known.min, "max": known.max, "mean": known.mean, "std": known.std,
            "variance": known.std**2, "sum": known.mean * finite, "l1": known.l1, "l2": known.l2,
        }  # fmt: skip
        return plain.get(name)
    mean = known.l1 / finite
    variance = max(known.l2**2 / finite - mean**2, 0.0)
    of_absolutes = {
        "max": max(abs(known.min), abs(known.max)), "mean": mean, "sum": known.l1,
        "l1": known.l1, "l2": known.l2, "variance": variance, "std": math.sqrt(variance),
    }  # fmt: skip
    return _least_absolute(known) if name == "min" else of_absolutes.get(name)


def _least_absolute(known: Statistics) -> float | None:
    """None where the finite values have both signs."""
    is_of_one_sign = known.min >= 0 or known.max <= 0
    return min(abs(known.min), abs(known.max)) if is_of_one_sign else None


def _of_infinite(known: Statistics, name: str, absolute: bool, *, has_finite: bool) -> float | None:
    """Where some values are infinite, and none is NaN."""
    positive, negative = known.positive_infinite > 0, known.negative_infinite > 0
    if absolute:
        positive, negative = True, False
    if name in {"l1", "l2"}:
        return math.inf
    if name in {"std", "variance"}:
        return math.nan
    if name in {"sum", "mean"}:
        if positive and negative:
            return math.nan
        return math.inf if positive else -math.inf
    if name == "max":
        return math.inf if positive else known.max if has_finite else -math.inf
    if name == "min":
        if not has_finite:
            return -math.inf if negative else math.inf
        if absolute:
            return _least_absolute(known)
        return -math.inf if negative else known.min
    return None


def _of_values(values: Any, name: str, absolute: bool) -> float | None:
    """In float64, whatever the values' type: float16 has no large sums, uint8 no squares."""
    import numpy as np

    is_of_absolutes = absolute or name in {"l1", "l2"}
    if not values.size or (values.dtype.kind == "c" and not is_of_absolutes):
        return None
    flat = values.reshape(-1)

    def parts() -> Iterator[Any]:
        """All values, a few at a time: a copy in float64 may be more memory than there is."""
        for begin in range(0, flat.size, _PART):
            part = flat[begin : begin + _PART]
            if part.dtype.kind != "c":
                part = part.astype(np.float64)
            yield np.abs(part).astype(np.float64, copy=False) if is_of_absolutes else part

    def total(of_part: Callable[[Any], Any]) -> Any:
        return np.sum([np.sum(of_part(part)) for part in parts()])

    def variance() -> Any:
        mean = total(lambda part: part) / flat.size
        return total(lambda part: np.square(part - mean)) / flat.size

    reductions: dict[str, Callable[[], Any]] = {
        "min": lambda: np.min([np.min(part) for part in parts()]),
        "max": lambda: np.max([np.max(part) for part in parts()]),
        "sum": lambda: total(lambda part: part),
        "mean": lambda: total(lambda part: part) / flat.size,
        "l1": lambda: total(lambda part: part),
        "l2": lambda: np.sqrt(total(np.square)),
        "variance": variance,
        "std": lambda: np.sqrt(variance()),
        "prod": lambda: np.prod([np.prod(part) for part in parts()]),
        "median": lambda: np.median(np.concatenate(list(parts()))),
    }
    if name not in reductions:
        return None
    with np.errstate(all="ignore"):
        return float(reductions[name]())


def _reduction(
    tensor: Tensor, name: str, absolute: bool, *, is_quick: bool = False
) -> float | None:
    """A reduction of the original's, of what was recorded; None: it cannot be told from that.

    Of a whole tensor it is exact; `is_quick`: told from statistics where these are there.
    """
    import numpy as np

    if tensor.value is not None:
        return _of_values(np.array(tensor.value), name, absolute)
    known = tensor.statistics
    # Whole tensors of these types are bytes.
    has_values = tensor.raw is not None and not tensor.dtype.startswith(("float8", "unknown"))
    if has_values and not (is_quick and known is not None):
        return _of_values(tensor.raw, name, absolute)
    return None if known is None else _of_statistics(known, name, absolute)


class TrialTensor:
    """One tensor of a trial, over its steps."""

    def __init__(self, trial: Trial, name: str) -> None:
        self._trial = trial
        self.name = name
        self.original_name = trial._originals.get(name, name)

    def steps(
        self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False
    ) -> list[int]:
        """The steps that have something of it, ascending."""
        found = [at for at, step in self._trial._of(mode).items() if self.name in step]
        self._trial._looked_at(mode, bool(found))
        return sorted(found)

    def _at(self, step_num: int, mode: ModeKeys, worker: str | None) -> Tensor:
        if worker is not None and worker not in self._trial.workers():
            raise InvalidWorker(worker)
        found = self._trial._step(step_num, mode).get(self.name)
        if found is None:
            raise TensorUnavailableForStep(self.name, step_num, mode)
        return found

    def value(
        self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> Any:
        """The whole tensor, a NumPy array; of a loss, its value."""
        import numpy as np

        found = self._at(step_num, mode, worker)
        if found.raw is None and found.value is None:
            raise TensorUnavailableForStep(self.name, step_num, mode, has_reductions=True)
        self._trial.was_read = True
        return found.raw if found.raw is not None else np.array(found.value)

    def values(self, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> dict[int, Any]:
        """The whole tensor, by step."""
        found = {}
        for step in self.steps(mode):
            try:
                found[step] = self.value(step, mode, worker)
            except TensorUnavailableForStep:
                continue
        return found

    def shape(
        self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> tuple[int, ...]:
        """Its shape; of one that was not kept as a whole, that of its first step."""
        found = self._at(step_num, mode, worker)
        self._trial.was_read = True
        return found.shape if found.raw is None else tuple(found.raw.shape)

    def reduction_value(
        self,
        step_num: int,
        reduction_name: str,
        mode: ModeKeys = ModeKeys.GLOBAL,
        worker: str | None = None,
        abs: bool = False,  # noqa: A002 (the original's name)
    ) -> Any:
        """A number: min, max, mean, std, sum, l1, l2, variance, median, prod."""
        import numpy as np

        found = _reduction(self._at(step_num, mode, worker), reduction_name, abs)
        if found is None:
            wanted = f"absolute {reduction_name}" if abs else reduction_name
            raise TensorUnavailableForStep(self.name, step_num, mode, wanted=wanted)
        self._trial.was_read = True
        return np.float64(found)

    def reduction_values(
        self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> dict[tuple[str, bool], Any]:
        """By (name, of absolute values): what statistics tell, where these were recorded.

        `median` and `prod`, which take long, are told one by one, by `reduction_value`.
        """
        import numpy as np

        tensor = self._at(step_num, mode, worker)
        told = {}
        for name in _TOLD_TOGETHER:
            for absolute in (False, True):
                value = _reduction(tensor, name, absolute, is_quick=True)
                if value is not None:
                    told[name, absolute] = np.float64(value)
        self._trial.was_read |= bool(told)
        return told

    def workers(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[str]:
        """The workers that recorded it at this step: that of the trial."""
        self._at(step_num, mode, None)
        return self._trial.workers()

    def prev_steps(
        self, step: int, n: int | None = None, mode: ModeKeys = ModeKeys.GLOBAL
    ) -> list[int]:
        """Up to `n` steps that are not after `step`, ascending."""
        before = [each for each in self.steps(mode) if each <= step]
        return before if n is None else before[max(len(before) - n, 0) :]

    def step(self, *arguments: Any, **more: Any) -> Any:
        """Is not there in the original either."""
        raise _not_here("Tensor.step", "ask for `steps` and `value`")


class Collection:
    """A collection of a trial: the tensors in it are those that were recorded so far."""

    def __init__(self, name: str, trial: Trial | None = None) -> None:
        if trial is None:
            raise _not_here(
                "making a Collection in a rule",
                "what is captured is said with --collection NAME=REGEX and --collect NAME, or by "
                "the class: `collections`, `every`, `raw`",
            )
        self.name = name
        self._trial = trial

    @property
    def tensor_names(self) -> set[str]:
        """Names of its tensors."""
        return set(self._trial.tensor_names(collection=self.name))

    def __getattr__(self, name: str) -> Any:
        if name in {"include_regex", "save_config", "reduction_config", "save_histogram"}:
            raise _AttributeNotHereError(
                f"Collection.{name}: has no meaning in traindbg; `traindbg explain-plan` says what "
                "is captured"
            )
        raise AttributeError(name)

    def __repr__(self) -> str:
        return f"Collection({self.name!r}, tensor_names={sorted(self.tensor_names)})"


# Attributes of the original's trials that are about its files.
_OF_FILES = {
    "index_reader", "last_index_token", "collection_manager", "event_file_retry_limit",
    "range_steps", "cache",
}  # fmt: skip


# By their numbers: two trials of one worker are equal.
_alive: weakref.WeakValueDictionary[int, Trial] = weakref.WeakValueDictionary()
_numbers = itertools.count()


class _WholeTensors:
    """Which steps of which trials have whole tensors: the oldest lose theirs where memory ends."""

    def __init__(self) -> None:
        self._sizes: OrderedDict[tuple[int, str, int], int] = OrderedDict()
        self._bytes = 0

    def add(self, trial: int, mode: str, step: int, size: int) -> None:
        """What this step has, which is kept in any case."""
        self._sizes[trial, mode, step] = size
        self._bytes += size
        while self._bytes > _MOST_RAW_BYTES and len(self._sizes) > 1:
            (number, oldest_mode, oldest_step), freed = self._sizes.popitem(last=False)
            self._bytes -= freed
            owner = _alive.get(number)
            if owner is not None:
                owner._lose_whole(oldest_mode, oldest_step)

    def remove(self, trial: int, mode: str, step: int) -> None:
        """Of a step that is forgotten."""
        self._bytes -= self._sizes.pop((trial, mode, step), 0)

    def remove_trial(self, trial: int) -> None:
        """Of a trial that has gone."""
        for key in [key for key in self._sizes if key[0] == trial]:
            self.remove(*key)


_whole_tensors = _WholeTensors()


def has_training_ended(path: str) -> bool:
    """Whether all steps of the trials of this path are there; of other paths nothing is known."""
    ended = [trial.loaded_all_steps for trial in _alive.values() if path == trial.path]
    if not ended:
        raise _not_here(
            f"has_training_ended({path!r})", "only a trial's own `path` can be asked for"
        )
    return all(ended)


class Trial:
    """What a rule was shown of one worker so far: the last 1000 steps of each mode.

    `asked`: collections that its rule names, whose tensors are among all, whatever they are.
    """

    def __init__(self, name: str = "traindbg", worker: int = 0, asked: Iterable[str] = ()) -> None:
        self.name = name
        self.path = name
        self.trial_dir = name
        self.worker = worker
        self.loaded_all_steps = False
        self.dynamic_refresh = True
        self.was_read = False
        """Whether something of a step was looked at that is more than that it is there."""
        self._asked = frozenset(asked)
        self._number = next(_numbers)
        self._steps: dict[str, OrderedDict[int, dict[str, Tensor]]] = {}
        self._known: dict[str, Tensor] = {}
        self._of_mode: dict[str, set[str]] = {}
        self._originals: dict[str, str] = {}  # the original's name of ours
        self._aliases: dict[str, str] = {}  # ours of the original's; of several the first
        _alive[self._number] = self
        weakref.finalize(self, _whole_tensors.remove_trial, self._number).atexit = False

    def take(self, step: Step) -> None:
        """Adds a step."""
        held: dict[str, Tensor] = {}
        size = 0
        for tensor in step.tensors:
            held[tensor.name] = tensor
            if tensor.name not in self._known:
                original = tensor.original_name or tensor.name
                self._originals[tensor.name] = original
                self._aliases.setdefault(original, tensor.name)
                # What it is, without what a step had of it.
                self._known[tensor.name] = Tensor(
                    tensor.name, tensor.role, tensor.collection, tensor.module, tensor.module_type,
                    tensor.activation, tensor.layer, tensor.dtype, tensor.shape, tensor.collections,
                    original_name=original, original_collections=tensor.original_collections,
                )  # fmt: skip
            size += 0 if tensor.raw is None else tensor.raw.nbytes
        self._of_mode.setdefault(step.mode, set()).update(held)
        steps = self._steps.setdefault(step.mode, OrderedDict())
        # Another training of the process may have had a step of this number.
        _whole_tensors.remove(self._number, step.mode, step.step)
        steps[step.step] = held
        if len(steps) > _MOST_STEPS:
            gone, _ = steps.popitem(last=False)
            _whole_tensors.remove(self._number, step.mode, gone)
        if size:
            _whole_tensors.add(self._number, step.mode, step.step, size)

    def _lose_whole(self, mode: str, step: int) -> None:
        for tensor in self._steps[mode].get(step, {}).values():
            tensor.raw = None

    def _looked_at(self, mode: ModeKeys, found: bool) -> None:
        """That there are steps of training a rule knows, being invoked at them; others are news."""
        self.was_read |= found and _mode_word(mode) != "train"

    def _of(self, mode: ModeKeys) -> OrderedDict[int, dict[str, Tensor]]:
        return self._steps.get(_mode_word(mode), OrderedDict())

    def _step(self, step: int, mode: ModeKeys) -> dict[str, Tensor]:
        steps = self._of(mode)
        if step in steps:
            return steps[step]
        if self._state_of(step, mode) is StepState.NOT_YET_AVAILABLE:
            raise StepNotYetAvailable(step, mode)
        raise StepUnavailable(step, mode)

    def _state_of(self, step: int, mode: ModeKeys) -> StepState:
        steps = self._of(mode)
        if step in steps:
            return StepState.AVAILABLE
        if self.loaded_all_steps or (steps and step < next(reversed(steps))):
            return StepState.UNAVAILABLE
        return StepState.NOT_YET_AVAILABLE

    # Steps and modes.

    def steps(
        self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False
    ) -> list[int]:
        """The steps that are remembered, ascending."""
        found = sorted(self._of(mode))
        self._looked_at(mode, bool(found))
        return found

    def modes(self) -> list[ModeKeys]:
        """The modes of which there are steps."""
        return [
            mode for mode in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT) if self._of(mode)
        ]

    def mode_modestep(self, global_step: int) -> tuple[ModeKeys | None, int | None]:
        """TRAIN and the step itself, because global steps here are those of training."""
        known = global_step in self._of(ModeKeys.GLOBAL)
        return (ModeKeys.TRAIN, global_step) if known else (None, None)

    def mode(self, global_step: int) -> ModeKeys | None:
        """TRAIN; None of a step that is not there."""
        return self.mode_modestep(global_step)[0]

    def mode_step(self, global_step: int) -> int | None:
        """The step itself; None of one that is not there."""
        return self.mode_modestep(global_step)[1]

    def global_step(self, mode: ModeKeys, mode_step: int) -> int | None:
        """A step of training itself; None of one that is not there."""
        if mode in {ModeKeys.EVAL, ModeKeys.PREDICT}:
            raise _not_here(
                f"the global step of a step of mode {mode.name}",
                "global steps are those of training; ask for other steps with `mode=`",
            )
        return mode_step if mode_step in self._of(mode) else None

    def has_passed_step(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> StepState:
        """Whether a step is there, will never be, or may still come."""
        state = self._state_of(step, mode)
        self._looked_at(mode, state is StepState.AVAILABLE)
        return state

    def wait_for_steps(
        self, required_steps: Iterable[int], mode: ModeKeys = ModeKeys.GLOBAL
    ) -> None:
        """Raises where one of them is not here: a rule is shown each step when it is there."""
        for step in required_steps:
            state = self._state_of(step, mode)
            last = next(reversed(self._of(mode)), -1)
            if state is StepState.UNAVAILABLE and step > last:
                raise NoMoreData(step, mode, last)
            self._step(step, mode)

    @property
    def last_complete_step(self) -> int:
        """The newest step of training; -1: there is none."""
        return next(reversed(self._of(ModeKeys.GLOBAL)), -1)

    @property
    def global_step_to_tensors_map(self) -> dict[int, set[str]]:
        """Names of tensors by step of training."""
        return {at: set(step) for at, step in self._of(ModeKeys.GLOBAL).items()}

    def refresh_data(self) -> None:
        """Nothing: a rule is shown each step when it is there."""

    def maybe_refresh(self, name: str | None = None) -> None:
        """Nothing, as `refresh_data`."""

    def refresh_tensor(self, tname: str, steps: Iterable[int] | None = None) -> None:
        """Nothing, as `refresh_data`."""

    # Workers.

    def workers(self) -> list[str]:
        """The one worker of this trial."""
        return [f"worker_{self.worker}"]

    @property
    def worker_set(self) -> set[str]:
        """The one worker of this trial."""
        return set(self.workers())

    @property
    def num_workers(self) -> int:
        """1: each worker is judged by a rule of its own, with a trial of its own."""
        return 1

    @property
    def workers_for_global_step(self) -> dict[int, set[str]]:
        """The worker, by step of training."""
        return dict.fromkeys(self._of(ModeKeys.GLOBAL), self.worker_set)

    # Tensors.

    def tensor_names(
        self,
        show_prefixed_tensors: bool = False,
        *,
        step: int | None = None,
        mode: ModeKeys = ModeKeys.GLOBAL,
        regex: str | Iterable[str] | None = None,
        collection: Any = None,
    ) -> list[str]:
        """Names, sorted: of a collection, or those in which a pattern is found.

        Without a step those of all steps: of a mode other than GLOBAL, of its steps. Without a
        collection those that the original would have, and what the rule's `collections` name. A
        pattern is searched in the original's names; one with a `/` in all of ours, too, because
        only ours begin with what they are of (but "gradient/", which both have).
        """
        if regex is not None and collection is not None:
            raise ValueError("only one of regex and collection")
        if step is not None:
            names = set(self._step(step, mode))
        elif mode is ModeKeys.GLOBAL:
            names = set(self._known)
        else:
            names = set(self._of_mode.get(_mode_word(mode), ()))
        if collection is not None:
            wanted = str(getattr(collection, "name", collection))
            names = {name for name in names if self._is_in(self._known[name], wanted)}
        elif regex is None:
            names = {name for name in names if self._is_of_originals(name)}
        else:
            patterns = [re.compile(each) for each in ([regex] if isinstance(regex, str) else regex)]
            names = {name for name in names if any(self._matches(name, each) for each in patterns)}
        return sorted(names)

    def _is_of_originals(self, name: str) -> bool:
        tensor = self._known[name]
        return "all" in tensor.original_collections or any(map(tensor.is_in, self._asked))

    def _matches(self, name: str, pattern: re.Pattern[str]) -> bool:
        if self._is_of_originals(name) and pattern.search(self._originals[name]):
            return True
        return "/" in pattern.pattern and pattern.search(name) is not None

    @staticmethod
    def _is_in(tensor: Tensor, collection: str) -> bool:
        return tensor.is_in(collection) or collection in tensor.original_collections

    def has_tensor(self, name: str) -> bool:
        """Whether something of it was recorded, by our name or the original's."""
        return name in self._known or name in self._aliases

    def tensor(self, name: str) -> TrialTensor:
        """The tensor of this name, ours or the original's."""
        ours = name if name in self._known else self._aliases.get(name)
        if ours is None:
            raise TensorUnavailable(name)
        return TrialTensor(self, ours)

    def collections(self) -> dict[str, Collection]:
        """By name: the original's that every trial has, and those of the recorded tensors."""
        names = list(_COLLECTIONS)
        for tensor in self._known.values():
            names += [tensor.collection, *tensor.collections, *tensor.original_collections]
        return {name: Collection(name, self) for name in dict.fromkeys(names)}

    def collection(self, coll_name: str) -> Collection:
        """The collection of this name; one of which nothing was recorded is empty."""
        return Collection(coll_name, self)

    def _numbered(self, collection: str, step: int, mode: ModeKeys) -> list[Any]:
        """Whole tensors of a collection at a step, by the numbers at the ends of their names."""

        def place(name: str) -> tuple[int, str]:
            number = re.search(r"(\d+)$", name)
            return (int(number.group(1)) if number else 0, name)

        names = self.tensor_names(step=step, mode=mode, collection=collection)
        return [self.tensor(name).value(step, mode) for name in sorted(names, key=place)]

    def inputs(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[Any]:
        """What the model was given at this step, NumPy arrays."""
        return self._numbered("inputs", step, mode)

    def labels(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[Any]:
        """The labels at this step, NumPy arrays."""
        return self._numbered("labels", step, mode)

    def predictions(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[Any]:
        """The predictions at this step, NumPy arrays."""
        return self._numbered("predictions", step, mode)

    def __getattr__(self, name: str) -> Any:
        if name in _OF_FILES:
            raise _AttributeNotHereError(
                f"Trial.{name}: has no meaning in traindbg; ask the trial for its steps, tensors "
                "and collections"
            )
        raise AttributeError(f"a trial has no {name!r}; see docs/custom-rules.md")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trial) and (self.name, self.path, self.worker) == (
            other.name, other.path, other.worker,
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.name, self.path, self.worker))

    def __repr__(self) -> str:
        return (
            f"Trial(name={self.name!r}, worker={self.worker}, "
            f"steps={sorted(self._of(ModeKeys.GLOBAL))}, "
            f"collections={list(self.collections())}, tensor_names={self.tensor_names()})"
        )
