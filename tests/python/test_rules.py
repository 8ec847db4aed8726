"""Rules of users: what does not need a process; tests/e2e/test_custom_rules.py has the rest."""

from __future__ import annotations

import numpy as np
import pytest

from traindbg import original_rules as original
from traindbg.rules import Finding, Parameter, Rule, Sink, Statistics, Step, Tensor, rule_name

VALUES = np.array([[-3.0, 1.0, 0.5], [2.0, -0.25, 0.0]])


def tensor(name: str = "gradient/fc1.weight", role: str = "gradient", **more: object) -> Tensor:
    return Tensor(name, role, role + "s", name, "Linear", "none", 0, "float64", (2, 3), **more)


def statistics(values: np.ndarray) -> Statistics:
    return Statistics(
        values.size, 0, 0, 0, int((values == 0).sum()), values.min(), values.max(), values.mean(),
        values.std(), np.abs(values).sum(), np.sqrt(np.square(values).sum()),
    )  # fmt: skip


def step(number: int, *tensors: Tensor, mode: str = "train") -> Step:
    return Step(0, mode, number, 0, list(tensors), {"model_type": "Net"})


def test_names_follow_from_classes() -> None:
    class LossTooHigh(Rule):
        pass

    class Named(LossTooHigh):
        name = "other"

    class MLPDead(Named):
        pass

    assert [rule_name(each) for each in (LossTooHigh, Named, MLPDead)] == [
        "loss_too_high", "other", "mlp_dead",
    ]  # fmt: skip


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("name", ["max", "mean", "std", "sum", "l1", "l2", "variance"])
def test_reductions_of_statistics_are_those_of_the_values(name: str, absolute: bool) -> None:
    trial = original.Trial()
    trial.take(step(0, tensor(statistics=statistics(VALUES))))
    trial.take(step(1, tensor(raw=VALUES)))
    known = trial.tensor("gradient/fc1.weight")
    found = [known.reduction_value(at, name, abs=absolute) for at in (0, 1)]
    assert found[0] == pytest.approx(found[1])


def test_what_statistics_do_not_tell_is_unavailable() -> None:
    trial = original.Trial()
    trial.take(step(0, tensor(statistics=statistics(VALUES))))
    known = trial.tensor("gradient/fc1.weight")
    assert known.reduction_value(0, "min") == -3
    for name, absolute in (("median", False), ("prod", False), ("min", True)):
        with pytest.raises(original.TensorUnavailableForStep):
            known.reduction_value(0, name, abs=absolute)
    with pytest.raises(original.TensorUnavailableForStep):
        known.value(0)
    with pytest.raises(original.StepNotYetAvailable):
        known.reduction_value(1, "min")
    with pytest.raises(original.TensorUnavailable):
        trial.tensor("gradient/fc2.weight")


def test_a_trial_forgets_and_finds_by_both_names() -> None:
    trial = original.Trial()
    for number in range(1005):
        trial.take(step(number, tensor(statistics=statistics(VALUES))))
    trial.take(step(0, tensor("loss/cross_entropy", "loss", value=2.0), mode="eval"))
    assert trial.steps() == list(range(5, 1005))
    with pytest.raises(original.StepUnavailable):
        trial.tensor("gradient/fc1.weight").reduction_value(4, "min")
    assert trial.tensor("gradient/Net_fc1.weight").name == "gradient/fc1.weight"
    assert trial.tensor_names(regex="Net_fc1") == ["gradient/fc1.weight"]
    assert trial.tensor_names(collection="gradients") == ["gradient/fc1.weight"]
    assert trial.modes() == [original.modes.TRAIN, original.modes.EVAL]
    loss = trial.tensor("Linear_output_0")
    assert loss.value(0, mode=original.modes.EVAL) == 2.0
    assert loss.steps() == []


def test_whole_tensors_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(original, "_MOST_RAW_BYTES", 3 * VALUES.nbytes)
    trial = original.Trial()
    for number in range(10):
        trial.take(step(number, tensor(raw=VALUES)))
    known = trial.tensor("gradient/fc1.weight")
    assert list(known.values()) == [7, 8, 9]
    assert known.steps() == list(range(10))


def test_an_original_rule_fires_clears_and_ends() -> None:
    class Rising(original.Rule):
        def __init__(self, base_trial, action_str, limit=3, label="x", exact=True, other=None):
            super().__init__(base_trial, action_str)
            self.limit = limit
            assert (label, exact, other) == ("x", True, None)

        def invoke_at_step(self, step):
            if step == 5:
                raise original.RuleEvaluationConditionMet("Rising", step, end_of_rule=True)
            return step == self.limit

    parameters = original.parameters_of(Rising)
    assert [(each.name, each.default) for each in parameters] == [
        ("limit", 3), ("label", "x"), ("exact", True), ("other", ""),
    ]  # fmt: skip
    invoker = original.Invoker(Rising, {each.name: each.default for each in parameters})
    sink = Sink()
    for number in (2, 3, 4, 5, 6):
        assert invoker.on_step(step(number, tensor()), sink)
    kinds = [isinstance(each, Finding) for each in sink.events]
    assert kinds == [False, True, False, True]
    assert not invoker.on_step(step(0, tensor(), mode="eval"), sink)


def test_parameters_have_types_of_their_defaults() -> None:
    from traindbg._rule_host import _parameter

    kinds = [_parameter(Parameter("a", default))["type"] for default in (1.0, 1, True, "b")]
    assert kinds == ["number", "whole number", "flag", "text"]
    with pytest.raises(TypeError, match="parameter a"):
        _parameter(Parameter("a", None))  # type: ignore[arg-type]
