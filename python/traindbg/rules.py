"""Rules of your own: ways in which your trainings go wrong, and how to see them.

    from traindbg.rules import Finding, Need, Parameter, Rule

    class LossAboveLimit(Rule):
        summary = "The loss is above a limit."
        parameters = (Parameter("limit", 100.0, "the limit", minimum=0, maximum=1e30),)

        def needs(self):
            return [Need("losses")]

        def on_step(self, step, sink):
            for loss in step.of("losses"):
                if loss.value > self.parameter("limit"):
                    sink.fire(Finding(f"The loss is {loss.value:.3g}.", key=loss.name))
                else:
                    sink.clear(loss.name)

Run with `traindbg run --rule-python FILE.py -- python train.py`, or on a run that is there with
`traindbg check --rule-python FILE.py RUN`; the findings are the same. Each rule runs in a process
of its own, with limits for time and memory: one that raises, hangs or crashes is reported as not
checked, and neither the training nor another rule notices. `traindbg rules new NAME` writes a whole
one with its tests; docs/custom-rules.md explains all of it.

Rules of the form that the SageMaker Debugger client has, with `invoke_at_step(step)`, are taken,
too: see `traindbg.original_rules`.

This module needs neither NumPy (but for whole tensors) nor the native half of traindbg.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "ChannelStatistics",
    "ClassCounts",
    "Digest",
    "Finding",
    "HistogramBin",
    "Need",
    "Parameter",
    "Rule",
    "Sink",
    "Statistics",
    "Step",
    "Tensor",
    "Units",
]

Value = float | bool | str


@dataclass(frozen=True)
class Parameter:
    """What a user may set of a rule: `--rule NAME.PARAMETER=VALUE`.

    Its type is that of `default`: a number (a whole one where the default is an `int`), a flag or a
    text. `minimum` and `maximum` bound numbers.
    """

    name: str
    default: Value
    meaning: str = ""
    unit: str = ""
    minimum: float = -1e300
    maximum: float = 1e300


@dataclass(frozen=True)
class Need:
    """What a rule wants captured: a collection, at every `every`-th step (0: none by interval).

    `what` is any of "statistics", "raw" (every value), "histogram", "channels", "digest", "units"
    (of activations) and "classes" (of that collection). `dense_until`: and at every step below that
    one; `start` and `end` bound the steps. `mode` is "train", "eval" or "predict", or "global" for
    all of them. The collections are those of `--collect`: "losses", "metrics", "weights", "biases",
    "gradients", "inputs", "outputs", "activations", ..., and those that the user defines.
    """

    collection: str
    what: str | Sequence[str] = "statistics"
    mode: str = "train"
    every: int = 1
    dense_until: int = 0
    start: int = 0
    end: int | None = None


@dataclass(frozen=True)
class Finding:
    """What a rule found, in one sentence with the numbers, and what to change.

    `key` tells this fault from others of the same rule; it is the same at every step. `tensor` and
    `layer` are the worst place, `places` how many tensors show it. `first_step` is where the fault
    began, if that was earlier than now. `evidence` holds (name, value) or (name, value, how to read
    the next, reference); `plots` (tensor, statistic) that a report should show.
    """

    message: str
    key: str = ""
    severity: str = "warning"
    fix: str = ""
    tensor: str = ""
    layer: str = ""
    places: int = 1
    first_step: int | None = None
    kind: str = ""
    evidence: Sequence[tuple[str, float] | tuple[str, float, str, float]] = ()
    plots: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Statistics:
    """What one pass over a tensor tells: counts of elements, and moments of the finite ones."""

    count: int
    nan: int
    positive_infinite: int
    negative_infinite: int
    zero: int
    min: float
    max: float
    mean: float
    std: float
    l1: float
    l2: float


class Units(NamedTuple):
    """What an activation's units (channels) do: how many were never above 0 in this batch.

    `low` and `high` count elements at the flat ends of a tanh or a sigmoid.
    """

    units: int
    inactive: int
    low: int
    high: int


class ClassCounts(NamedTuple):
    """How often each class was the label, the prediction, and both."""

    labels: list[int]
    predictions: list[int]
    hits: list[int]


@dataclass(frozen=True)
class HistogramBin:
    """`count` values from `lower` to `upper`."""

    lower: float
    upper: float
    count: int


class ChannelStatistics(NamedTuple):
    """Of each channel: its extremes, and the share of its elements that are 0."""

    min: list[float]
    max: list[float]
    zero: list[float]


class Digest(NamedTuple):
    """What tells a tensor apart: equal ones have equal fingerprints (16 hexadecimal digits)."""

    fingerprint: str
    product: float


@dataclass
class Tensor:
    """A tensor, and what one step has of it, of what the rule needs; None: it has none of that."""

    name: str
    role: str
    collection: str
    module: str
    module_type: str
    activation: str
    layer: int
    dtype: str
    shape: tuple[int, ...]
    collections: tuple[str, ...] = ()
    statistics: Statistics | None = None
    value: float | None = None
    units: Units | None = None
    classes: ClassCounts | None = None
    histogram: list[HistogramBin] | None = None
    channels: ChannelStatistics | None = None
    digest: Digest | None = None
    raw: NDArray[np.generic] | None = None
    original_name: str = ""
    """What the SageMaker Debugger client calls it, and in which of its collections it is."""
    original_collections: tuple[str, ...] = ()

    def is_in(self, collection: str) -> bool:
        """Whether it is in a collection, built in or defined by the user."""
        return collection == self.collection or collection in self.collections


@dataclass
class Step:
    """One recorded step of one worker, with what the rule needs of it.

    `training` says what the worker said of itself: `model_type`, `parameters`, `optimizers` (each
    `type` and `settings`), `framework`, ...
    """

    worker: int
    mode: str
    step: int
    wall_nanos: int
    tensors: list[Tensor]
    training: Mapping[str, Any]

    def of(self, collection: str) -> list[Tensor]:
        """The tensors of a collection, in the order in which the training made them."""
        return [tensor for tensor in self.tensors if tensor.is_in(collection)]

    def tensor(self, name: str) -> Tensor | None:
        """The tensor of this name, where the step has it."""
        return next((tensor for tensor in self.tensors if tensor.name == name), None)


@dataclass
class Sink:
    """Where findings go."""

    events: list[Finding | str] = field(default_factory=list)

    def fire(self, finding: Finding) -> None:
        """The fault is there, at this step. To be said at every step at which it is.

        Of one key, traindbg makes one finding, with the step at which it began.
        """
        self.events.append(finding)

    def clear(self, key: str = "") -> None:
        """The fault of this key is over."""
        self.events.append(key)


class Rule:
    """A rule: one object judges the steps of one worker, in the order in which they were recorded.

    The class says what the rule is; every attribute has a default, made from the class' name. What
    the object has to remember it keeps in itself, made in `__init__(self)`, which may ask for
    parameters already.
    """

    name: ClassVar[str] = ""
    """Named after the fault: letters, digits and '_'. Default: `LossTooHigh` is `loss_too_high`."""
    title: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    """One sentence: what is wrong when it fires. Default: the first line of the docstring."""
    when: ClassVar[str] = ""
    why: ClassVar[str] = ""
    fix: ClassVar[str] = ""
    healthy: ClassVar[str] = ""
    severity: ClassVar[str] = "warning"
    """The most severe that it gives: "info", "warning" or "error"."""
    parameters: ClassVar[Sequence[Parameter]] = ()

    why_not_judged: str = ""
    """Why no step could be judged, where `on_step` gave False at each."""

    _values: Mapping[str, Value]

    def parameter(self, name: str) -> Any:
        """What a parameter is set to. KeyError: there is none of that name."""
        return self._values[name]

    def needs(self) -> Iterable[Need | str]:
        """What is to be captured, and when; a text is a collection, at every step.

        The rule is shown the steps at which something of that was recorded, and of them nothing
        else. It may depend on parameters.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say what it needs: def needs")

    def on_step(self, step: Step, sink: Sink) -> bool | None:
        """Judges a step. False: it gave nothing to judge."""
        raise NotImplementedError(f"{type(self).__name__} does not judge: def on_step")

    def on_end(self, sink: Sink) -> None:
        """The training is over: the last word of a rule that judges a whole run."""


def rule_name(rule: type[Any]) -> str:
    """What a rule's class says, or by default is called: `LossTooHigh`, `loss_too_high`."""
    given = rule.__dict__.get("name")
    if given:
        return str(given)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", rule.__name__).lower()
