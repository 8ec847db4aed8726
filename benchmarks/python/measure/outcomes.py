"""What became of one training: what was found, and whether that is right."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from measure.programs import Program

# Where a fault has no layer: a finding of a right kind is at the right place.
WORDS_OF_PLACES = ("loop", "loader", "optimizer", "rank")
# What says nothing where the kind is wrong: every complaint about a loss names that loss.
VAGUE_PLACES = ("", "*", "loss*")

# Who judges: traindbg's default rules, or SageMaker Debugger's documented ones.
DEFAULT, ORIGINAL = "default", "original"
# Which kinds a rule of the original is the name of.
ORIGINALS = {
    "CheckInputImages": "input_not_normalized",
    "ClassImbalance": "class_imbalance",
    "DeadRelu": "dead_relu",
    "ExplodingTensor": "exploding_gradient",
    "Overfit": "overfit",
    "PoorWeightInitialization": "poor_weight_init",
    "SaturatedActivation": "saturated_activation",
    "VanishingGradient": "vanishing_gradient",
}
# Those whose defaults fit few trainings, so that somebody who chose the rules would leave them out.
LOUD_ORIGINALS = frozenset(
    {
        "CheckInputImages",
        "ClassImbalance",
        "Confusion",
        "LossNotDecreasing",
        "Overfit",
        "Overtraining",
        "PoorWeightInitialization",
    }
)


class Task(NamedTuple):
    program: Program
    is_faulty: bool
    seed: int
    rules: str = DEFAULT  # or ORIGINAL

    @property
    def form(self) -> str:
        return "faulty" if self.is_faulty else "healthy"


class Outcome(NamedTuple):
    """What became of a training. `error` is empty when it ran and was judged."""

    task: Task
    error: str
    said: str  # the training's own last line
    seconds: float
    findings: list[dict[str, Any]]
    causes: list[dict[str, Any]]
    not_checked: dict[str, str]  # rule: reason
    nan_step: int | None = None  # the first step whose recorded loss is not finite
    wall: float = 0.0  # its part of the time that all took, where several run at once

    @property
    def alarms(self) -> list[dict[str, Any]]:
        return [f for f in self.findings if f["severity"] != "info"]

    @property
    def has_error(self) -> bool:
        return any(f["severity"] == "error" for f in self.findings)

    @property
    def kinds(self) -> list[str]:
        """In the order in which a reader meets them, each once."""
        kinds = [cause["name"] for cause in self.causes] if self.alarms else []
        return list(dict.fromkeys(kinds + [kind_of(finding) for finding in self.alarms]))

    @property
    def right_kinds(self) -> set[str]:
        return {self.task.program.kind, *self.task.program.accept}

    @property
    def right_finding(self) -> dict[str, Any] | None:
        """The earliest alarm of a right kind, else the earliest that a right cause explains."""
        alarms = sorted(self.alarms, key=lambda finding: finding["step"])
        for finding in alarms:
            if kind_of(finding) in self.right_kinds:
                return finding
        for cause in self.causes:
            if cause["name"] in self.right_kinds:
                for finding in alarms:
                    if finding["rule"] in cause["rules"]:
                        return finding
        return None

    @property
    def steps(self) -> int | None:
        """Steps that were taken when the first right finding fired, the last of them included."""
        right = self.right_finding
        return None if right is None else int(right["step"]) + 1

    @property
    def steps_after_nan(self) -> int | None:
        """The same from the first step on whose loss is not finite; 0 where it was told before."""
        if self.steps is None or self.nan_step is None:
            return None
        return max(0, self.steps - self.nan_step)

    @property
    def is_right(self) -> bool:
        return bool(self.right_kinds & set(self.kinds))

    @property
    def is_place_right(self) -> bool:
        if not self.alarms:
            return False
        right = self.right_finding
        if right is not None and any(place in WORDS_OF_PLACES for place in self.task.program.place):
            return True
        finding = right or self.alarms[0]
        layer, tensor = finding.get("layer") or "", finding.get("tensor") or ""
        if tensor.startswith("loss/"):
            tensor = "loss"  # of this function
        return any(
            fnmatch.fnmatchcase(layer, place) or (tensor and fnmatch.fnmatchcase(tensor, place))
            for place in self.task.program.place
            if right is not None or place not in VAGUE_PLACES
        )

    def without(self, rules: frozenset[str]) -> Outcome:
        """As if these rules had not been asked."""
        return self._replace(
            findings=[f for f in self.findings if f["rule"] not in rules],
            causes=[c for c in self.causes if not set(c["rules"]) <= rules],
        )


def kind_of(finding: dict[str, Any]) -> str:
    return ORIGINALS.get(finding["rule"]) or str(finding.get("kind") or finding["rule"])


def as_json(o: Outcome) -> dict[str, Any]:
    right = o.right_finding if o.task.is_faulty else None
    return {
        "program": o.task.program.name,
        "kind": o.task.program.kind,
        "is_faulty": o.task.is_faulty,
        "seed": o.task.seed,
        "rules": o.task.rules,
        "error": o.error,
        "said": o.said,
        "seconds": round(o.seconds, 3),
        "wall": round(o.wall, 3),
        "kinds": o.kinds,
        "is_detected": bool(o.alarms),
        "is_right": o.is_right if o.task.is_faulty else None,
        "is_place_right": o.is_place_right if o.task.is_faulty else None,
        "right_step": right["step"] if right else None,
        "nan_step": o.nan_step,
        "findings": o.findings,
        "causes": o.causes,
        "not_checked": o.not_checked,
    }


def from_json(values: dict[str, Any], task: Task) -> Outcome:
    return Outcome(
        task,
        values["error"],
        values["said"],
        values["seconds"],
        values["findings"],
        values["causes"],
        values["not_checked"],
        values["nan_step"],
        values["wall"],
    )
