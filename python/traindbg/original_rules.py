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
those names are of this module. In the original, the job's configuration says what is captured; here
a class may name `collections`, `every` (500 as there) and `raw` itself, or the user adds `--collect
gradients --every 100`. Parameters are the arguments of `__init__` behind the
trial.

What is otherwise than in the original: steps are those of training, counted from 0, and
`mode=ModeKeys.EVAL` asks for those of evaluation, which the rule has been shown by then; a trial is
of one worker, remembers its last 1000 steps of each mode, and whole tensors of the last
256 MiB of all workers;
names of tensors are ours, and a name or pattern of the original's finds them, too. There are no
other trials, no actions and nothing about files: asking for them raises SMDebugNotImplementedError,
which names what to use instead. docs/custom-rules.md lists them.
"""

from __future__ import annotations

import inspect
import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from traindbg.original_errors import (
    InsufficientInformationForRuleInvocation,
    InvalidWorker,
    ModeKeys,
    NoMoreData,
    RuleEvaluationConditionMet,
    SMDebugError,
    SMDebugValueError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
    modes,
)
from traindbg.original_trials import Trial, TrialTensor
from traindbg.rules import Finding, Need, Parameter, Sink, Step, Value, rule_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "InsufficientInformationForRuleInvocation",
    "InvalidWorker",
    "ModeKeys",
    "NoMoreData",
    "RequiredTensors",
    "RequiredTensorsForTrial",
    "Rule",
    "RuleEvaluationConditionMet",
    "SMDebugError",
    "StepNotYetAvailable",
    "StepUnavailable",
    "TensorUnavailable",
    "TensorUnavailableForStep",
    "Trial",
    "TrialTensor",
    "invoke_rule",
    "modes",
]


class RequiredTensorsForTrial:
    """The tensors of one trial that a rule says it will look at, with their steps."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self._steps: dict[str, set[int]] = {}

    def add(self, name: str, steps: Iterable[int], should_match_regex: bool = False) -> None:
        """Adds a tensor, or all whose names match."""
        names = (
            self.trial.tensor_names(regex=name)
            if should_match_regex
            else [self.trial.tensor(name).name]
        )
        steps = list(steps)
        for each in names:
            self._steps.setdefault(each, set()).update(steps)

    def get(self) -> list[TrialTensor]:
        """The tensors."""
        return [self.trial.tensor(name) for name in self._steps]

    def get_names(self) -> list[str]:
        """Their names."""
        return list(self._steps)

    def get_tensor_steps(self, name: str) -> list[int]:
        """The steps of one of them, by our name or the original's."""
        ours = name if name in self._steps else self.trial.tensor(name).name
        return sorted(self._steps.get(ours, ()))

    def fetch(self) -> None:
        """Raises where one of the steps is not here."""
        self.trial.wait_for_steps(sorted({step for each in self._steps.values() for step in each}))

    def clear(self) -> None:
        """Forgets all."""
        self._steps.clear()


class RequiredTensors:
    """The tensors that a rule says it will look at, of each of its trials."""

    def __init__(self, base_trial: Trial, other_trials: Iterable[Trial] | None = None) -> None:
        self.base_trial = base_trial
        self._trials = [
            RequiredTensorsForTrial(each) for each in (base_trial, *(other_trials or ()))
        ]

    def _of(self, trial: Trial | None) -> RequiredTensorsForTrial:
        wanted = self.base_trial if trial is None else trial
        found = next((each for each in self._trials if each.trial is wanted), None)
        if found is None:
            raise SMDebugValueError(f"{wanted.name}: is no trial of this rule")
        return found

    def add(
        self,
        name: str,
        steps: Iterable[int],
        trial: Trial | None = None,
        should_match_regex: bool = False,
    ) -> None:
        """Adds a tensor, or all whose names match."""
        self._of(trial).add(name, steps, should_match_regex)

    def get(self, trial: Trial | None = None) -> list[TrialTensor]:
        """The tensors."""
        return self._of(trial).get()

    def get_names(self, trial: Trial | None = None) -> list[str]:
        """Their names."""
        return self._of(trial).get_names()

    def get_tensor_steps(self, name: str, trial: Trial | None = None) -> list[int]:
        """The steps of one of them."""
        return self._of(trial).get_tensor_steps(name)

    def fetch(self) -> None:
        """Raises where one of the steps is not here."""
        for each in self._trials:
            each.fetch()

    def clear(self) -> None:
        """Forgets all."""
        for each in self._trials:
            each.clear()


class Rule(ABC):
    """The base of rules of that form: `invoke_at_step` says whether the condition holds."""

    collections: ClassVar[Sequence[str] | str] = ()
    """What is captured for it, by our names. None: what is recorded for others, or for you."""
    every: ClassVar[int] = 500
    """At which steps of each mode: training, evaluation and prediction count their own."""
    raw: ClassVar[bool] = False
    """Whether whole tensors of these are captured."""

    def __init__(self, base_trial: Trial, action_str: str = "", other_trials: Any = None) -> None:
        self.base_trial = base_trial
        self.other_trials: list[Trial] = list(other_trials or ())
        self.trials = [base_trial, *self.other_trials]
        self.req_tensors = RequiredTensors(base_trial, self.other_trials)
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
        self.base_trial.wait_for_steps([step])
        self.req_tensors.clear()
        self.set_required_tensors(step)
        self.req_tensors.fetch()
        if self.invoke_at_step(step):
            raise RuleEvaluationConditionMet(self.rule_name, step)


# Errors that say that a step gave nothing to judge.
_NOTHING_TO_JUDGE = (
    TensorUnavailable,
    TensorUnavailableForStep,
    StepUnavailable,
    StepNotYetAvailable,
    NoMoreData,
    InsufficientInformationForRuleInvocation,
)


def invoke_rule(
    rule_obj: Rule,
    start_step: int = 0,
    end_step: int | None = None,
    raise_eval_cond: bool = False,
) -> None:
    """Invokes a rule at steps of its trial; without end_step it runs until NoMoreData.

    What traindbg runs is invoked by traindbg: this is for a trial of one's own.
    """
    step = start_step
    while end_step is None or step < end_step:
        try:
            rule_obj.invoke(step)
        except (TensorUnavailableForStep, StepUnavailable, TensorUnavailable) as error:
            rule_obj.logger.info(str(error))
        except RuleEvaluationConditionMet as met:
            rule_obj.report["RuleTriggered"] += 1
            if raise_eval_cond:
                raise
            if met.end_of_rule:
                return
        step += 1


_OURS = {"base_trial", "action_str", "other_trials"}


def collections_of(rule: type[Any]) -> tuple[str, ...]:
    """What a class names; one may stand there as a text."""
    named = getattr(rule, "collections", ())
    return (named,) if isinstance(named, str) else tuple(map(str, named))


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
        self._last: int | None = None  # step of training
        self._is_newer = False  # steps of evaluation came after it
        signature = inspect.signature(rule.__init__).parameters
        self._missing = [
            name
            for name, value in values.items()
            if value == "" and signature[name].default is inspect.Parameter.empty
        ]
        # A text that was left empty is not given, so that None stays None.
        self._values = {
            name: value
            for name, value in values.items()
            if not (value == "" and signature[name].default in {None, inspect.Parameter.empty})
        }

    def needs(self) -> list[Need]:
        """What the class names, in all modes, as in the original; the default is nothing.

        It is asked for before the training starts, so that it refuses what `__init__`, which needs
        a trial, would refuse after that. ValueError: an argument without a default is not set.
        """
        for name in self._missing:
            raise ValueError(
                f"{name}: {self._class.__name__} has no default for it; "
                f"--rule {rule_name(self._class)}.{name}=VALUE sets it"
            )
        what = ("statistics", "raw") if getattr(self._class, "raw", False) else ("statistics",)
        every = int(getattr(self._class, "every", 500))
        return [
            Need(name, what, mode="global", every=every) for name in collections_of(self._class)
        ]

    def begin(self, worker: int) -> None:
        """Makes the rule, with a trial of this worker."""
        self._trial = Trial(worker=worker, asked=collections_of(self._class))
        signature = inspect.signature(self._class.__init__).parameters
        more: dict[str, Any] = {"action_str": ""} if "action_str" in signature else {}
        self._rule = self._class(self._trial, **more, **self._values)

    def on_step(self, step: Step, sink: Sink) -> bool:
        """Invokes the rule at a step of training."""
        if self._trial is None:
            self.begin(step.worker)
            assert self._trial is not None
        self._trial.take(step)
        if step.mode != "train":
            self._is_newer = True
            if self._last is None:
                self.why_not_judged = "of training, at whose steps it judges, no step was recorded"
            return False
        self._last = step.step
        self._is_newer = False
        return self._invoke(step.step, sink)

    def _invoke(self, step: int, sink: Sink) -> bool:
        if self._is_over:
            return True
        assert self._trial is not None
        self._trial.was_read = False
        name = type(self._rule).__name__
        try:
            self._rule.invoke(step)
        except RuleEvaluationConditionMet as met:
            self._rule.report["RuleTriggered"] += 1
            sink.fire(Finding(f"The condition of {name} holds at step {step}.", first_step=step))
            self._is_over = met.end_of_rule
            return True
        except _NOTHING_TO_JUDGE as error:
            self.why_not_judged = f"{type(error).__name__}: {error}"
            return False
        sink.clear()
        if not self._trial.was_read:
            # It is not clean: what it looks for was not there, or is called otherwise.
            self.why_not_judged = (
                f"{name} looked at nothing that was recorded; --collect NAME or the class's "
                "`collections` say what is captured"
            )
        return self._trial.was_read

    def on_end(self, sink: Sink) -> bool:
        """Shows it the steps of evaluation after the last of training."""
        if self._trial is None:
            return False
        self._trial.loaded_all_steps = True
        if self._last is None or not self._is_newer:
            return False
        return self._invoke(self._last, sink)
