"""Rules of the form that the SageMaker Debugger client has, judged here.

    from traindbg.original_rules import Rule          # or: from smdebug.rules.rule import Rule

    class VanishingGradients(Rule):
        collections = ("gradients",)                  # captured for it; see below

        def __init__(self, base_trial, threshold=1e-7):
            super().__init__(base_trial)
            self.threshold = float(threshold)

        def invoke_at_step(self, step):
            for name in self.base_trial.tensor_names(collection="gradients"):
                tensor = self.base_trial.tensor(name)
                if tensor.reduction_value(step, "mean", abs=True) < self.threshold:
                    return True
            return False

Files that import `smdebug` work unchanged in the process in which `--rule-python` runs them: there
those names are of this module. The original attaches what a rule needs with the job's
configuration; here a class may name `collections`, `every` (500 as there) and `raw` itself, or the
user adds `--collect gradients --every 100`. Parameters are the arguments of `__init__` behind the
trial.

What is otherwise than in the original: steps are those of training, counted from 0 (`ModeKeys.EVAL`
asks for evaluation); a trial remembers the last 1000 steps of a worker, and whole tensors of the
last 256 MiB; names of tensors are ours, and a name or pattern of the original's finds them, too. Of
`other_trials` there is none.
"""

from __future__ import annotations

import enum
import inspect
import logging
import math
import re
from abc import ABC, abstractmethod
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, ClassVar

from traindbg.rules import Finding, Need, Parameter, Sink, Step, Tensor, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_MOST_STEPS = 1000
_MOST_RAW_BYTES = 256 << 20


class ModeKeys(enum.Enum):
    """Modes of steps; GLOBAL is training."""

    TRAIN = 1
    EVAL = 2
    PREDICT = 3
    GLOBAL = 4


modes = ModeKeys


class SMDebugError(Exception):
    """The base of what the original raises."""


class TensorUnavailable(SMDebugError):
    """No tensor of that name was recorded."""


class TensorUnavailableForStep(SMDebugError):
    """That step has no value, or no such number, of the tensor."""


class StepUnavailable(SMDebugError):
    """That step was not recorded, or is no longer remembered."""


class StepNotYetAvailable(SMDebugError):
    """That step is still to come."""


class InvalidWorker(SMDebugError):
    """No such worker: a trial here is of one."""


class NoMoreData(SMDebugError):
    """There is no further step."""


class InsufficientInformationForRuleInvocation(SMDebugError):
    """The rule has nothing to judge."""


class RuleEvaluationConditionMet(SMDebugError):
    """The rule's condition holds."""

    def __init__(self, rule_name: str = "", step: int = -1, end_of_rule: bool = False) -> None:
        super().__init__(
            f"Evaluation of the rule {rule_name} at step {step} resulted in the condition being met"
        )
        self.rule_name = rule_name
        self.step = step
        self.end_of_rule = end_of_rule


def original_name(tensor: Tensor, model_type: str) -> str:
    """What the original calls a tensor; our name where it has none of its own."""
    if not tensor.name.startswith(tensor.role + "/"):
        return tensor.name
    path = tensor.name[len(tensor.role) + 1 :]
    parameter = f"{model_type}_{path}" if model_type else path
    names = {
        "weight": parameter,
        "bias": parameter,
        "gradient": "gradient/" + parameter,
        "output": path + "_output_0",
        "activation": path + "_output_0",
        "input": f"{model_type}_input_{path}",
        "loss": f"{tensor.module_type or path}_output_0",
    }
    return names.get(tensor.role, tensor.name)


def _mode_word(mode: ModeKeys) -> str:
    return {ModeKeys.EVAL: "eval", ModeKeys.PREDICT: "predict"}.get(mode, "train")


def _reduction(tensor: Tensor, name: str, absolute: bool) -> float | None:
    """A reduction of the original's, of what was recorded; None: it cannot be told from that."""
    if tensor.value is not None and name in {"min", "max", "mean", "sum", "l1", "l2"}:
        return abs(tensor.value) if absolute or name in {"l1", "l2"} else tensor.value
    if tensor.raw is not None:
        import numpy as np

        values = np.abs(tensor.raw) if absolute else tensor.raw
        of_values: dict[str, Callable[[Any], Any]] = {
            "min": np.min, "max": np.max, "mean": np.mean, "std": np.std, "sum": np.sum,
            "prod": np.prod, "median": np.median, "variance": np.var,
            "l1": lambda v: np.sum(np.abs(v)), "l2": lambda v: np.sqrt(np.sum(np.square(v))),
        }  # fmt: skip
        return float(of_values[name](values)) if name in of_values and values.size else None
    known = tensor.statistics
    if known is None:
        return None
    finite = known.count - known.nan - known.positive_infinite - known.negative_infinite
    if finite == 0:
        return math.nan
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
    if name == "min" and (known.min >= 0 or known.max <= 0):
        return min(abs(known.min), abs(known.max))
    return of_absolutes.get(name)


class TrialTensor:
    """One tensor of a trial, over its steps."""

    def __init__(self, trial: Trial, name: str) -> None:
        self._trial = trial
        self.name = name
        self.original_name = name

    def steps(
        self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False
    ) -> list[int]:
        """The steps that have something of it."""
        return [at for at, step in self._trial._of(mode).items() if self.name in step]

    def _at(self, step_num: int, mode: ModeKeys) -> Tensor:
        found = self._trial._step(step_num, mode).get(self.name)
        if found is None:
            raise TensorUnavailableForStep(
                f"{self.name}: nothing of it was recorded at step {step_num}"
            )
        return found

    def value(
        self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> Any:
        """The whole tensor, a NumPy array; of a loss, its value."""
        import numpy as np

        found = self._at(step_num, mode)
        if found.raw is not None:
            return found.raw
        if found.value is not None:
            return np.array(found.value)
        raise TensorUnavailableForStep(
            f"{self.name}: not kept as a whole at step {step_num}; ask for it with --raw, "
            "or for a reduction"
        )

    def values(self, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> dict[int, Any]:
        """The whole tensor, by step."""
        found = {}
        for step in self.steps(mode):
            try:
                found[step] = self.value(step, mode)
            except TensorUnavailableForStep:
                continue
        return found

    def shape(
        self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> tuple[int, ...]:
        """Its shape."""
        return self._at(step_num, mode).shape

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

        found = _reduction(self._at(step_num, mode), reduction_name, abs)
        if found is None:
            raise TensorUnavailableForStep(
                f"{self.name}: no {'absolute ' if abs else ''}{reduction_name} at step {step_num}"
            )
        return np.float64(found)

    def prev_steps(
        self, step: int, n: int | None = None, mode: ModeKeys = ModeKeys.GLOBAL
    ) -> list[int]:
        """Up to `n` steps that are not after `step`, ascending."""
        before = [each for each in self.steps(mode) if each <= step]
        return before if n is None else before[-n:]


class Trial:
    """What a rule was shown of one worker so far: the last 1000 steps of each mode."""

    def __init__(self, name: str = "traindbg", worker: int = 0) -> None:
        self.name = name
        self.path = name
        self.worker = worker
        self.loaded_all_steps = False
        self._steps: dict[str, OrderedDict[int, dict[str, Tensor]]] = {}
        self._raw: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._raw_bytes = 0
        self._known: dict[str, Tensor] = {}
        self._aliases: dict[str, str] = {}

    def take(self, step: Step) -> None:
        """Adds a step."""
        model = str(step.training.get("model_type", ""))
        held: dict[str, Tensor] = {}
        size = 0
        for tensor in step.tensors:
            held[tensor.name] = tensor
            if tensor.name not in self._known:
                self._aliases[original_name(tensor, model)] = tensor.name
                # What it is, without what a step had of it.
                self._known[tensor.name] = Tensor(
                    tensor.name, tensor.role, tensor.collection, tensor.module, tensor.module_type,
                    tensor.activation, tensor.layer, tensor.dtype, tensor.shape, tensor.collections,
                )  # fmt: skip
            size += 0 if tensor.raw is None else tensor.raw.nbytes
        steps = self._steps.setdefault(step.mode, OrderedDict())
        steps[step.step] = held
        if len(steps) > _MOST_STEPS:
            gone, _ = steps.popitem(last=False)
            self._raw_bytes -= self._raw.pop((step.mode, gone), 0)
        if size:
            self._raw[step.mode, step.step] = size
            self._raw_bytes += size
        while self._raw_bytes > _MOST_RAW_BYTES and len(self._raw) > 1:
            (mode, at), freed = self._raw.popitem(last=False)
            self._raw_bytes -= freed
            for tensor in self._steps[mode].get(at, {}).values():
                tensor.raw = None

    def _of(self, mode: ModeKeys) -> OrderedDict[int, dict[str, Tensor]]:
        return self._steps.get(_mode_word(mode), OrderedDict())

    def _step(self, step: int, mode: ModeKeys) -> dict[str, Tensor]:
        steps = self._of(mode)
        if step in steps:
            return steps[step]
        if not steps or step > next(reversed(steps)):
            raise StepNotYetAvailable(f"step {step} is still to come")
        raise StepUnavailable(f"step {step} was not recorded, or is no longer remembered")

    def steps(
        self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False
    ) -> list[int]:
        """The steps that are remembered, ascending."""
        return sorted(self._of(mode))

    def modes(self) -> list[ModeKeys]:
        """The modes of which there are steps."""
        return [
            mode for mode in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT) if self._of(mode)
        ]

    def workers(self) -> list[str]:
        """The one worker of this trial."""
        return [f"worker_{self.worker}"]

    def tensor_names(
        self,
        show_prefixed_tensors: bool = False,
        *,
        step: int | None = None,
        mode: ModeKeys = ModeKeys.GLOBAL,
        regex: str | Iterable[str] | None = None,
        collection: Any = None,
    ) -> list[str]:
        """Names, sorted: of a collection, or those in which a pattern is found (ours or theirs)."""
        if regex is not None and collection is not None:
            raise ValueError("only one of regex and collection")
        names = set(self._known if step is None else self._step(step, mode))
        if collection is not None:
            wanted = str(getattr(collection, "name", collection))
            names = {name for name in names if self._is_in(self._known[name], wanted)}
        if regex is not None:
            patterns = [re.compile(each) for each in ([regex] if isinstance(regex, str) else regex)]
            originals = {ours: theirs for theirs, ours in self._aliases.items()}
            names = {
                name
                for name in names
                if any(p.search(name) or p.search(originals.get(name, name)) for p in patterns)
            }
        return sorted(names)

    @staticmethod
    def _is_in(tensor: Tensor, collection: str) -> bool:
        if tensor.is_in(collection) or collection in {"all", "default"}:
            return True
        if collection == "relu_output":
            return tensor.activation == "relu"
        return collection == "optimizer_variables" and tensor.role == "optimizer_state"

    def has_tensor(self, name: str) -> bool:
        """Whether something of it was recorded, by our name or the original's."""
        return name in self._known or name in self._aliases

    def tensor(self, name: str) -> TrialTensor:
        """The tensor of this name, ours or the original's."""
        ours = name if name in self._known else self._aliases.get(name)
        if ours is None:
            raise TensorUnavailable(f"{name}: no such tensor was recorded")
        return TrialTensor(self, ours)

    def wait_for_steps(
        self, required_steps: Iterable[int], mode: ModeKeys = ModeKeys.GLOBAL
    ) -> None:
        """Raises where one of them is not here: a rule is shown each step when it is there."""
        for step in required_steps:
            self._step(step, mode)


class RequiredTensors:
    """The tensors that a rule says it will look at, with their steps."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._steps: dict[str, set[int]] = {}

    def add(
        self, name: str, steps: Iterable[int], trial: Any = None, should_match_regex: bool = False
    ) -> None:
        """Adds a tensor, or all whose names match."""
        names = (
            self._trial.tensor_names(regex=name)
            if should_match_regex
            else [self._trial.tensor(name).name]
        )
        for each in names:
            self._steps.setdefault(each, set()).update(steps)

    def get(self, trial: Any = None) -> list[TrialTensor]:
        """The tensors."""
        return [self._trial.tensor(name) for name in self._steps]

    def get_names(self, trial: Any = None) -> list[str]:
        """Their names."""
        return list(self._steps)

    def get_tensor_steps(self, name: str, trial: Any = None) -> list[int]:
        """The steps of one of them."""
        return sorted(self._steps.get(name, ()))

    def clear(self) -> None:
        """Forgets all."""
        self._steps.clear()


class Rule(ABC):
    """The base of rules of that form: `invoke_at_step` says whether the condition holds."""

    collections: ClassVar[Sequence[str]] = ()
    """What is captured for it, by our names. None: what is recorded for others, or for you."""
    every: ClassVar[int] = 500
    raw: ClassVar[bool] = False
    """Whether whole tensors of these are captured."""

    def __init__(self, base_trial: Trial, action_str: str = "", other_trials: Any = None) -> None:
        self.base_trial = base_trial
        self.other_trials: list[Trial] = []
        self.trials = [base_trial]
        self.req_tensors = RequiredTensors(base_trial)
        self.rule_name = type(self).__name__
        self.logger = logging.getLogger("traindbg.rules")
        self.report: dict[str, Any] = {
            "RuleTriggered": 0,
            "Violations": 0,
            "Details": {},
            "Datapoints": 0,
            "RuleParameters": "",
        }

    def set_required_tensors(self, step: int) -> None:  # noqa: B027 (may be left out)
        """Says which tensors are looked at; may be left out."""

    @abstractmethod
    def invoke_at_step(self, step: int) -> bool:
        """Whether the condition holds at this step."""

    def invoke(self, step: int) -> None:
        """Raises RuleEvaluationConditionMet where the condition holds."""
        self.req_tensors.clear()
        self.set_required_tensors(step)
        if self.invoke_at_step(step):
            raise RuleEvaluationConditionMet(self.rule_name, step)


_OURS = {"base_trial", "action_str", "other_trials"}


def parameters_of(rule: type[Any]) -> tuple[Parameter, ...]:
    """The arguments of `__init__`; one without a default is a text that has to be set."""
    found = []
    for name, argument in list(inspect.signature(rule.__init__).parameters.items())[1:]:
        if name in _OURS or argument.kind in {argument.VAR_POSITIONAL, argument.VAR_KEYWORD}:
            continue
        default = argument.default
        if default is None or default is argument.empty:
            default = ""
        elif not isinstance(default, (bool, int, float, str)):
            continue
        found.append(Parameter(name, default, "an argument of the rule's __init__"))
    return tuple(found)


class Invoker:
    """Judges by a rule of the original's form, as a rule of ours does."""

    why_not_judged = ""

    def __init__(self, rule: type[Any], values: dict[str, Value]) -> None:
        self._class = rule
        self._trial: Trial | None = None
        self._rule: Any = None
        self._is_over = False
        signature = inspect.signature(rule.__init__).parameters
        # A text that was left empty is not given, so that None stays None.
        self._values = {
            name: value
            for name, value in values.items()
            if not (value == "" and signature[name].default in {None, inspect.Parameter.empty})
        }

    def needs(self) -> list[Need]:
        """What the class names; the default is nothing."""
        what = ("statistics", "raw") if getattr(self._class, "raw", False) else ("statistics",)
        every = int(getattr(self._class, "every", 500))
        return [Need(name, what, every=every) for name in getattr(self._class, "collections", ())]

    def on_step(self, step: Step, sink: Sink) -> bool:
        """Invokes the rule at a step of training."""
        if self._trial is None:
            self._trial = Trial(worker=step.worker)
            signature = inspect.signature(self._class.__init__).parameters
            more: dict[str, Any] = {"action_str": ""} if "action_str" in signature else {}
            self._rule = self._class(self._trial, **more, **self._values)
        self._trial.take(step)
        if step.mode != "train":
            return False
        if self._is_over:
            return True
        try:
            self._rule.invoke(step.step)
        except RuleEvaluationConditionMet as met:
            self._rule.report["RuleTriggered"] += 1
            name = type(self._rule).__name__
            sink.fire(Finding(f"The condition of {name} holds at step {step.step}."))
            self._is_over = met.end_of_rule
        except (
            TensorUnavailable,
            TensorUnavailableForStep,
            StepUnavailable,
            StepNotYetAvailable,
            InsufficientInformationForRuleInvocation,
        ) as error:
            self.why_not_judged = f"{type(error).__name__}: {error}"
            return False
        else:
            sink.clear()
        return True

    def on_end(self, sink: Sink) -> None:
        """Nothing: such a rule judges steps."""
        if self._trial is not None:
            self._trial.loaded_all_steps = True
