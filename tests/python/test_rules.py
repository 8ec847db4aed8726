"""Rules of users: what does not need a process; tests/e2e/test_custom_rules.py has the rest."""

from __future__ import annotations

import gc
import importlib.util
import pickle
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from traindbg import _original_modules, _rule_host, original_trials
from traindbg import original_errors as errors
from traindbg import original_rules as original
from traindbg.rules import Finding, Parameter, Rule, Sink, Statistics, Step, Tensor, rule_name

if TYPE_CHECKING:
    from collections.abc import Iterator

VALUES = np.array([[-3.0, 1.0, 0.5], [2.0, -0.25, 0.0]])


def tensor(name: str = "gradient/fc1.weight", role: str = "gradient", **more: object) -> Tensor:
    more.setdefault("original_collections", ("all", "default"))
    return Tensor(name, role, role + "s", name, "Linear", "none", 0, "float64", (2, 3), **more)


def statistics(values: np.ndarray) -> Statistics:
    """As the core takes them: moments are of the finite values, 0 where there are none."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        finite = np.zeros(1)
    return Statistics(
        values.size, int(np.isnan(values).sum()), int(np.isposinf(values).sum()),
        int(np.isneginf(values).sum()), int((values == 0).sum()), finite.min(), finite.max(),
        finite.mean(), finite.std(), np.abs(finite).sum(), np.sqrt(np.square(finite).sum()),
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


@pytest.mark.parametrize(
    "bad",
    [
        [np.nan], [np.nan, np.inf], [np.nan, np.inf, -np.inf], [np.inf], [-np.inf],
        [np.inf, -np.inf],
    ],
)  # fmt: skip
@pytest.mark.parametrize("good", [[], [-3.0, 1.0], [0.5, 2.0]])
def test_reductions_of_what_is_not_finite_are_those_of_numpy(
    bad: list[float], good: list[float]
) -> None:
    values = np.array(good + bad)
    of_numpy = {
        "min": np.min, "max": np.max, "mean": np.mean, "std": np.std, "sum": np.sum,
        "variance": np.var, "l1": lambda v: np.abs(v).sum(),
        "l2": lambda v: np.sqrt(np.square(v).sum()),
    }  # fmt: skip
    trial = original.Trial()
    trial.take(step(0, tensor(statistics=statistics(values))))
    trial.take(step(1, tensor(raw=values)))
    known = trial.tensor("gradient/fc1.weight")
    for name, function in of_numpy.items():
        for absolute in (False, True):
            with np.errstate(all="ignore"):
                expected = function(np.abs(values) if absolute else values)
            for at in (0, 1):
                is_told = at == 1 or np.isnan(values).any() or good != [-3.0, 1.0]
                if (name, absolute) == ("min", True) and not is_told:
                    continue  # of finite values with both signs
                found = known.reduction_value(at, name, abs=absolute)
                np.testing.assert_equal(found, expected, f"{name} {absolute} {at}")


def test_reductions_of_whole_tensors_do_not_overflow() -> None:
    def of(values: np.ndarray, name: str, **more: object) -> float:
        trial = original.Trial()
        trial.take(step(0, tensor(raw=values)))
        return trial.tensor("gradient/fc1.weight").reduction_value(0, name, **more)

    half = np.full(100, 30000, np.float16)
    assert of(half, "sum") == of(half, "l1") == 3e6
    assert of(half, "l2") == pytest.approx(3e5)
    assert of(np.full(100, 200, np.uint8), "l2") == pytest.approx(2000)
    assert of(np.array([-128], np.int8), "max", abs=True) == 128
    both = np.array([3 + 4j, 0])
    assert (of(both, "l1"), of(both, "max", abs=True)) == (5, 5)
    with pytest.raises(original.TensorUnavailableForStep):
        of(both, "max")


def test_whole_tensors_are_reduced_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(original_trials, "_PART", 4)
    values = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    trial = original.Trial()
    trial.take(step(0, tensor(raw=values)))
    known = trial.tensor("gradient/fc1.weight")
    wide = values.astype(np.float64)
    for name in ("min", "max", "mean", "sum", "std", "prod", "median"):
        assert known.reduction_value(0, name) == pytest.approx(getattr(np, name)(wide)), name
        of_absolutes = known.reduction_value(0, name, abs=True)
        assert of_absolutes == pytest.approx(getattr(np, name)(np.abs(wide))), name


def test_a_loss_is_a_tensor_of_one_value() -> None:
    trial = original.Trial()
    trial.take(step(0, tensor("loss", "loss", value=-2.0)))
    loss = trial.tensor("loss")
    names = ("min", "median", "prod", "std", "variance")
    assert [loss.reduction_value(0, name) for name in names] == [-2, -2, -2, 0, 0]
    assert loss.reduction_values(0)["l2", False] == 2


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
    gradient = tensor(statistics=statistics(VALUES), original_name="gradient/Net_fc1.weight")
    for number in range(1005):
        trial.take(step(number, gradient))
    loss = tensor(
        "loss/cross_entropy", "loss", value=2.0, original_name="CrossEntropyLoss_output_0"
    )
    trial.take(step(0, loss, mode="eval"))
    assert trial.steps() == list(range(5, 1005))
    with pytest.raises(original.StepUnavailable):
        trial.tensor("gradient/fc1.weight").reduction_value(4, "min")
    assert trial.tensor("gradient/Net_fc1.weight").name == "gradient/fc1.weight"
    assert trial.tensor_names(regex="Net_fc1") == ["gradient/fc1.weight"]
    assert trial.tensor_names(collection="gradients") == ["gradient/fc1.weight"]
    assert trial.modes() == [original.modes.TRAIN, original.modes.EVAL]
    loss = trial.tensor("CrossEntropyLoss_output_0")
    assert loss.value(0, mode=original.modes.EVAL) == 2.0
    assert loss.steps() == []


# What the original has of a training, and what we have beside.
NAMES = {
    "weight/fc1.weight": ("weight", "Net_fc1.weight"),
    "bias/fc1.bias": ("bias", "Net_fc1.bias"),
    "gradient/fc1.weight": ("gradient", "gradient/Net_fc1.weight"),
    "gradient/fc1.bias": ("gradient", "gradient/Net_fc1.bias"),
    "activation/relu1": ("activation", "relu1_output_0"),
    "loss/cross_entropy": ("loss", "CrossEntropyLoss_output_0"),
    "loop/loss_is_of_weights_alone": ("loop", ""),
    "optimizer_state/fc1.weight.exp_avg": ("optimizer_state", ""),
    "weight_update/fc1.weight": ("weight_update", ""),
    "update_ratio/fc1.weight": ("weight_update", ""),
}


def trial_of_names(**more: object) -> original.Trial:
    trial = original.Trial(**more)
    trial.take(
        step(
            0,
            *(
                tensor(
                    name, role, original_name=theirs,
                    original_collections=("all", "default") if theirs else (),
                )
                for name, (role, theirs) in NAMES.items()
            ),
        )
    )  # fmt: skip
    return trial


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        # The original's own, of its default collections.
        (r"^(?!gradient).*weight", ["weight/fc1.weight"]),
        (r"^(?!gradient).*bias", ["bias/fc1.bias"]),
        (r"^gradient", ["gradient/fc1.bias", "gradient/fc1.weight"]),
        (r"[Ll]oss_(?!input).*output", ["loss/cross_entropy"]),
        (r".*[Ll]oss_output_0", ["loss/cross_entropy"]),
        (r"relu\d_output", ["activation/relu1"]),
        # Written for ours.
        (r"^gradient/fc1", ["gradient/fc1.bias", "gradient/fc1.weight"]),
        (r"^(weight|bias)/", ["bias/fc1.bias", "weight/fc1.weight"]),
        (r"optimizer_state/.*weight", ["optimizer_state/fc1.weight.exp_avg"]),
    ],
)
def test_patterns_find_what_they_do_in_the_original(pattern: str, found: list[str]) -> None:
    assert trial_of_names().tensor_names(regex=pattern) == found


def test_what_we_alone_have_is_found_where_it_is_asked_for() -> None:
    trial = trial_of_names()
    theirs = sorted(name for name, (_, original_name) in NAMES.items() if original_name)
    assert trial.tensor_names() == trial.tensor_names(step=0) == theirs
    assert trial.tensor_names(mode=original.modes.TRAIN) == theirs
    assert trial.tensor_names(collection="weight_updates") == [
        "update_ratio/fc1.weight", "weight_update/fc1.weight",
    ]  # fmt: skip
    assert trial.has_tensor("optimizer_state/fc1.weight.exp_avg")
    assert trial.tensor("update_ratio/fc1.weight").name == "update_ratio/fc1.weight"
    asked = trial_of_names(asked=["optimizer_states"])
    assert "optimizer_state/fc1.weight.exp_avg" in asked.tensor_names()


def test_what_is_no_mode_is_refused() -> None:
    trial = trial_of_names()
    for mode in ("EVAL", None, 2):
        for ask in (trial.steps, trial.tensor("loss/cross_entropy").steps, trial.tensor_names):
            with pytest.raises(errors.SMDebugValueError, match=r"is no mode.*ModeKeys\.EVAL"):
                ask(mode=mode)


def test_whole_tensors_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(original_trials, "_MOST_RAW_BYTES", 3 * VALUES.nbytes)
    trial = original.Trial()
    for number in range(10):
        trial.take(step(number, tensor(raw=VALUES)))
    known = trial.tensor("gradient/fc1.weight")
    assert list(known.values()) == [7, 8, 9]
    assert known.steps() == list(range(10))


def test_memory_for_whole_tensors_is_one_of_all_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()
    monkeypatch.setattr(original_trials, "_MOST_RAW_BYTES", 4 * VALUES.nbytes)
    trials = [original.Trial(worker=worker) for worker in range(2)]

    def kept(trial: original.Trial) -> list[int]:
        return list(trial.tensor("gradient/fc1.weight").values())

    for number in range(5):
        for trial in trials:
            trial.take(step(number, tensor(raw=VALUES)))
    assert [kept(trial) for trial in trials] == [[3, 4], [3, 4]]
    # A step that comes again, as of another training, counts once.
    for _ in range(5):
        trials[0].take(step(4, tensor(raw=VALUES)))
    assert [kept(trial) for trial in trials] == [[3, 4], [3, 4]]
    del trials[1], trial
    for number in range(5, 8):
        trials[0].take(step(number, tensor(raw=VALUES)))
    assert kept(trials[0]) == [4, 5, 6, 7]


def test_an_original_rule_fires_clears_and_ends() -> None:
    class Rising(original.Rule):
        def __init__(self, base_trial, action_str, limit=3, label="x", exact=True, other=None):
            super().__init__(base_trial, action_str)
            self.limit = limit
            assert (label, exact, other) == ("x", True, None)

        def invoke_at_step(self, step):
            assert self.base_trial.tensor("gradient/fc1.weight").shape(step) == (2, 3)
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


def invoked(rule: type, *steps: Step) -> tuple[original.Invoker, Sink, list[bool], bool]:
    """A rule that was shown these steps and the end."""
    invoker = original.Invoker(rule, {})
    sink = Sink()
    judged = [invoker.on_step(each, sink) for each in steps]
    return invoker, sink, judged, invoker.on_end(sink)


def test_a_rule_that_looked_at_nothing_is_not_clean() -> None:
    class LooksFor(original.Rule):
        def invoke_at_step(self, step):
            for name in self.base_trial.tensor_names(regex="nowhere"):
                self.base_trial.tensor(name).value(step)
            return False

    invoker, _, judged, _ = invoked(LooksFor, step(0, tensor(raw=VALUES)))
    assert judged == [False]
    assert invoker.why_not_judged.startswith("LooksFor looked at nothing that was recorded")


def test_steps_of_training_alone_are_nothing_to_judge_by() -> None:
    class Looks(original.Rule):
        def invoke_at_step(self, step):
            known = self.base_trial.tensor("gradient/fc1.weight")
            assert self.base_trial.steps() == known.steps() == [step]
            assert known.prev_steps(step) == [step]
            self.base_trial.has_passed_step(step)
            self.base_trial.has_passed_step(step, original.modes.EVAL)
            assert known.reduction_values(step) == {}
            return False

    class LooksAtEvaluation(original.Rule):
        def invoke_at_step(self, step):
            return len(self.base_trial.steps(mode=original.modes.EVAL)) > 1

    assert invoked(Looks, step(0, tensor()))[2] == [False]
    steps = [step(0, tensor()), step(0, tensor(), mode="eval"), step(1, tensor())]
    assert invoked(LooksAtEvaluation, *steps)[2] == [False, False, True]


def test_the_last_evaluation_is_judged_at_the_end() -> None:
    class EvalLoss(original.Rule):
        def invoke_at_step(self, step):
            loss = self.base_trial.tensor("loss")
            steps = loss.steps(mode=original.modes.EVAL)
            return bool(steps) and loss.value(steps[-1], mode=original.modes.EVAL) > 1

    def loss(value: float) -> Tensor:
        return tensor("loss/cross_entropy", "loss", value=value, original_name="loss")

    steps = [step(0, loss(0.1)), step(1, loss(0.1)), step(0, loss(5.0), mode="eval")]
    _, sink, judged, at_the_end = invoked(EvalLoss, *steps)
    # Of evaluation there was nothing yet.
    assert judged == [False, False, False]
    assert at_the_end
    (finding,) = [each for each in sink.events if isinstance(each, Finding)]
    assert finding.first_step == 1
    invoker, _, _, at_the_end = invoked(EvalLoss, step(0, loss(5.0), mode="eval"))
    assert not at_the_end
    assert "of training, at whose steps it judges" in invoker.why_not_judged


def test_a_trial_answers_what_the_originals_does() -> None:
    trial = original.Trial(worker=2)
    labels = [
        tensor(f"label/{name}", "label", raw=np.array([number]), original_name="labels")
        for number, name in enumerate(("b_2", "a_10", "c_1"))
    ]
    gradient = tensor(
        statistics=statistics(VALUES), collections=("heads",), original_collections=("all",)
    )
    for number in (0, 2):
        trial.take(step(number, *labels, gradient))
    trial.take(step(0, *labels[:1], mode="eval"))
    modes, state = original.modes, errors.StepState
    assert [each.item() for each in trial.labels(2)] == [2, 0, 1]
    assert [each.item() for each in trial.labels(0, mode=modes.EVAL)] == [0]
    assert trial.predictions(2) == trial.inputs(2) == []
    assert trial.tensor("labels").name == "label/b_2"
    assert trial.tensor("label/a_10").original_name == "labels"
    assert trial.tensor_names(regex="labels$") == ["label/a_10", "label/b_2", "label/c_1"]
    assert trial.tensor_names(mode=modes.EVAL) == ["label/b_2"]
    assert trial.tensor_names(mode=modes.PREDICT) == []
    assert trial.mode_modestep(2) == (trial.mode(2), trial.mode_step(2)) == (modes.TRAIN, 2)
    assert trial.mode_modestep(1) == (None, None)
    assert (trial.global_step(modes.TRAIN, 2), trial.global_step(modes.TRAIN, 1)) == (2, None)
    with pytest.raises(errors.SMDebugNotImplementedError, match="with `mode=`"):
        trial.global_step(modes.EVAL, 0)
    with pytest.raises(errors.SMDebugNotImplementedError, match=r"Trial\.index_reader") as raised:
        _ = trial.index_reader
    assert type(raised.value).__name__ == "SMDebugNotImplementedError"
    assert not hasattr(trial, "cache")
    assert getattr(trial.collection("weights"), "include_regex", None) is None
    assert [trial.has_passed_step(each) for each in (1, 2, 3)] == [
        state.UNAVAILABLE, state.AVAILABLE, state.NOT_YET_AVAILABLE,
    ]  # fmt: skip
    for wanted, error in ((1, errors.StepUnavailable), (3, errors.StepNotYetAvailable)):
        with pytest.raises(error):
            trial.wait_for_steps([2, wanted])
    trial.loaded_all_steps = True
    with pytest.raises(errors.NoMoreData, match="its last step is 2"):
        trial.wait_for_steps([3])
    assert (trial.workers(), trial.num_workers, trial.last_complete_step) == (["worker_2"], 1, 2)
    assert trial.collection("gradients").tensor_names == {"gradient/fc1.weight"}
    assert trial.collection("heads").tensor_names == {"gradient/fc1.weight"}
    assert trial.collection("nowhere").tensor_names == set()
    assert {"default", "weights", "labels", "heads"} <= set(trial.collections())
    trial.refresh_data()


def test_a_tensor_answers_what_the_originals_does() -> None:
    trial = original.Trial()
    trial.take(step(0, tensor(statistics=statistics(VALUES))))
    trial.take(step(1, tensor(raw=VALUES)))
    known = trial.tensor("gradient/fc1.weight")
    told = known.reduction_values(0)
    assert told["mean", True] == pytest.approx(np.abs(VALUES).mean())
    assert ("median", False) not in told
    assert known.reduction_values(1)["mean", False] == VALUES.mean()
    assert ("median", False) not in known.reduction_values(1)
    assert known.reduction_value(1, "median") == np.median(VALUES)
    assert known.workers(0) == ["worker_0"]
    assert known.value(1, worker="worker_0").shape == (2, 3)
    with pytest.raises(errors.InvalidWorker):
        known.value(1, worker="worker_1")
    with pytest.raises(errors.TensorUnavailableForStep) as raised:
        known.value(0)
    assert (raised.value.tname, raised.value.step) == (known.name, 0)
    assert raised.value.has_reductions
    assert known.prev_steps(1, 1) == [1]
    assert known.prev_steps(1, 0) == []


def test_whether_the_training_ended_is_known_of_trials() -> None:
    trial = original.Trial(name="this one")
    assert not original_trials.has_training_ended(trial.path)
    trial.loaded_all_steps = True
    assert original_trials.has_training_ended(trial.path)
    with pytest.raises(errors.SMDebugNotImplementedError, match="/elsewhere"):
        original_trials.has_training_ended("/elsewhere")
    equal = original.Trial(name="this one")
    assert equal == trial
    assert not original_trials.has_training_ended(trial.path)


def test_required_tensors_have_their_steps() -> None:
    trial = original.Trial()
    trial.take(step(0, tensor(raw=VALUES), tensor("weight/fc1.weight", "weight", raw=VALUES)))
    trial.take(step(1, tensor(raw=VALUES)))
    required = original.RequiredTensors(trial)
    required.add("weight$", [0], should_match_regex=True)
    required.add("gradient/fc1.weight", [1], trial=trial)
    assert [each.name for each in required.get()] == required.get_names()
    assert required.get_tensor_steps("gradient/fc1.weight") == [0, 1]
    required.fetch()
    with pytest.raises(errors.TensorUnavailable):
        required.add("nowhere", [0])
    required.add("gradient/fc1.weight", [2])
    with pytest.raises(errors.StepNotYetAvailable):
        required.fetch()


def test_a_rule_is_invoked_over_a_trial_of_ones_own() -> None:
    class From(original.Rule):
        def invoke_at_step(self, step):
            if step >= 2:
                raise original.RuleEvaluationConditionMet("From", step, end_of_rule=step == 3)
            return False

    trial = original.Trial()
    for number in (0, 2, 3):
        trial.take(step(number, tensor(raw=VALUES)))
    trial.loaded_all_steps = True
    rule = From(trial, "")
    original.invoke_rule(rule)
    assert rule.report["RuleTriggered"] == 2
    with pytest.raises(original.RuleEvaluationConditionMet):
        original.invoke_rule(rule, raise_eval_cond=True)
    with pytest.raises(original.NoMoreData):
        original.invoke_rule(rule, start_step=4)


def test_all_lent_modules_have_their_packages() -> None:
    seen: set[str] = set()
    for name in _original_modules.MODULES:
        parent = name.rpartition(".")[0]
        assert not parent or parent in seen, name
        seen.add(name)


@pytest.fixture
def smdebug() -> Iterator[Any]:
    """What is lent of it, in this process, until the test ends."""
    names = _original_modules.MODULES
    before = {name: sys.modules[name] for name in names if name in sys.modules}
    finders = list(sys.meta_path)
    _original_modules.lend()
    yield sys.modules["smdebug"]
    for name in names:
        del sys.modules[name]
    sys.modules.update(before)
    sys.meta_path[:] = finders


def test_lent_modules_can_be_asked_what_they_are(smdebug: Any) -> None:
    assert not hasattr(smdebug, "x")
    assert getattr(smdebug.core, "y", 3) == 3
    with pytest.raises(AttributeError, match=r"smdebug\.x is not there for rules of traindbg"):
        _ = smdebug.x
    assert importlib.util.find_spec("smdebug.rules") is smdebug.rules.__spec__
    with pytest.raises(ImportError) as raised:
        from smdebug.core.utils import ensure_dir  # noqa: F401
    words = _original_modules.words_of(raised.value)
    assert words.startswith("smdebug.core.utils.ensure_dir is not there for rules of traindbg: ")
    # It goes through all modules.
    assert pickle.loads(pickle.dumps(smdebug.core.utils.flatten)) is smdebug.core.utils.flatten


def test_bases_of_rules_are_no_rules() -> None:
    class Base(original.Rule):
        pass

    class Of(Base):
        def invoke_at_step(self, step):
            return False

    assert not _rule_host._is_rule(Base)
    assert _rule_host._is_rule(Of)


def test_arguments_of_an_original_rule() -> None:
    class Takes(original.Rule):
        collections = "gradients"

        def __init__(self, base_trial, limit=10, needed=None, name_of="x"):
            super().__init__(base_trial)
            self.limit = limit

        def invoke_at_step(self, step):
            return False

    class Demands(Takes):
        def __init__(self, base_trial, path):
            super().__init__(base_trial)

    described = _rule_host._describe(Takes, "Takes")
    assert not described["everything"]
    assert described["parameters"][0]["type"] == "number"
    for given in (0.5, 3.0):
        assert _rule_host._typed(Takes, {"limit": given})["limit"] == given
    assert isinstance(_rule_host._typed(Takes, {"limit": 3.0})["limit"], int)
    assert [each.collection for each in _rule_host._make(Takes, {}).needs()] == ["gradients"]
    with pytest.raises(
        ValueError, match=r"path: Demands has no default for it; --rule demands\.path"
    ):
        _rule_host._make(Demands, {}).needs()
    assert _rule_host._make(Demands, {"path": "/here"}).needs()


def test_parameters_have_types_of_their_defaults() -> None:
    kinds = [
        _rule_host._parameter(Parameter("a", default))["type"] for default in (1.0, 1, True, "b")
    ]
    assert kinds == ["number", "whole number", "flag", "text"]
    with pytest.raises(TypeError, match="parameter a"):
        _rule_host._parameter(Parameter("a", None))  # type: ignore[arg-type]
