"""Modes, states of steps and errors of the SageMaker Debugger client, by its names.

Arguments of errors are kept as attributes of the same names, as there.
"""

from __future__ import annotations

import enum


class ModeKeys(enum.Enum):
    """Modes of steps; GLOBAL is training."""

    TRAIN = 1
    EVAL = 2
    PREDICT = 3
    GLOBAL = 4


modes = ModeKeys


class StepState(enum.Enum):
    """What is known of a step: it is not there, it is there, it may still come."""

    UNAVAILABLE = 0
    AVAILABLE = 1
    NOT_YET_AVAILABLE = 2


class SMDebugError(Exception):
    """The base of what the original raises."""


class SMDebugCustomerError(SMDebugError):
    """What the user of a rule did wrong."""


class SMDebugTypeError(SMDebugError, TypeError):
    """A value of a wrong type."""


class SMDebugRuntimeError(SMDebugError, RuntimeError):
    """It cannot be done now."""


class SMDebugValueError(SMDebugError, ValueError):
    """A wrong value."""


class SMDebugNotImplementedError(SMDebugError, NotImplementedError):
    """What has no meaning here; its message names what to use instead."""


class InvalidCollectionConfiguration(SMDebugError):
    """A collection that has neither names nor patterns."""

    def __init__(self, c_name: str) -> None:
        super().__init__(f"Collection {c_name} has neither tensor names nor patterns")
        self.c_name = c_name


class MissingCollectionFiles(SMDebugError):
    """The training ended and left no collections."""

    def __init__(self) -> None:
        super().__init__("The training ended without all of its collections")


class IndexReaderException(SMDebugError):
    """What was recorded cannot be read."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class StepUnavailable(SMDebugError):
    """That step was not recorded, or is no longer remembered."""

    def __init__(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> None:
        super().__init__(
            f"Step {step} of mode {mode.name} was not recorded, or is no longer remembered"
        )
        self.step = step
        self.mode = mode


class StepNotYetAvailable(SMDebugError):
    """That step is still to come."""

    def __init__(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> None:
        super().__init__(f"Step {step} of mode {mode.name} is still to come")
        self.step = step
        self.mode = mode


class TensorUnavailable(SMDebugError):
    """No tensor of that name was recorded."""

    def __init__(self, tname: str) -> None:
        super().__init__(f"{tname}: no such tensor was recorded")
        self.tname = tname


class TensorUnavailableForStep(SMDebugError):
    """That step has no value, or no such number, of the tensor."""

    def __init__(
        self,
        tname: str,
        step: int,
        mode: ModeKeys = ModeKeys.GLOBAL,
        has_reductions: bool = False,
        wanted: str = "",
    ) -> None:
        at = f"at step {step} of mode {mode.name}"
        if wanted:
            text = f"{tname}: no {wanted} {at}"
        elif has_reductions:
            text = (
                f"{tname}: not kept as a whole {at}; ask for it with --raw or `raw = True`, "
                "or for a reduction"
            )
        else:
            text = f"{tname}: nothing of it was recorded {at}"
        super().__init__(text)
        self.tname = tname
        self.step = step
        self.mode = mode
        self.has_reductions = has_reductions


class ShapeUnavailableForStep(SMDebugError):
    """The tensor's shape at that step is not known."""

    def __init__(self, tname: str, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> None:
        super().__init__(f"{tname}: its shape at step {step} of mode {mode.name} is not known")
        self.tname = tname
        self.step = step
        self.mode = mode


class InvalidWorker(SMDebugError):
    """No such worker: a trial here is of one."""

    def __init__(self, worker: str) -> None:
        super().__init__(
            f"{worker}: is not the worker of this trial; each worker is judged by a rule of its own"
        )
        self.worker = worker


class NoMoreData(SMDebugError):
    """There is no further step."""

    def __init__(self, step: int, mode: ModeKeys, last_step: int) -> None:
        self.msg = (
            f"Step {step} of mode {mode.name} will not come: the training ended, "
            f"and its last step is {last_step}"
        )
        super().__init__(self.msg)
        self.step = step
        self.mode = mode
        self.last_step = last_step


class NoMoreProfilerData(SMDebugError):
    """There are no further measurements of the machine."""

    def __init__(self, timestamp: int) -> None:
        self.msg = f"There is nothing after {timestamp}"
        super().__init__(self.msg)
        self.timestamp = timestamp


class InsufficientInformationForRuleInvocation(SMDebugError):
    """The rule has nothing to judge."""

    def __init__(self, rule_name: str, message: str) -> None:
        super().__init__(f"{rule_name}: {message}")
        self.rule_name = rule_name
        self.message = message


class RuleEvaluationConditionMet(SMDebugError):
    """The rule's condition holds."""

    def __init__(self, rule_name: str, step: int, end_of_rule: bool = False) -> None:
        super().__init__(
            f"Evaluation of the rule {rule_name} at step {step} resulted in the condition being met"
        )
        self.rule_name = rule_name
        self.step = step
        self.end_of_rule = end_of_rule
