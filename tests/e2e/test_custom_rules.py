"""Rules of users: in Python, in a process with limits, and as plugins; live and stored."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from forked import Server
from trainings import PROGRAM, ROOT, SECONDS, clean_environment

EXAMPLES = ROOT / "examples" / "plugins"
SMALL = EXAMPLES / "python_rules" / "small_gradients.py"

TRAINING = """
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(6, 8),
    torch.nn.Tanh(),
    torch.nn.Linear(8, 8),
    torch.nn.Tanh(),
    torch.nn.Linear(8, 2),
)
with torch.no_grad():
    model[2].weight.mul_(1e-9)  # nearly nothing gets through to the first layer
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(60):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(torch.randn(64, 6)), torch.arange(64) % 2).backward()
    optimizer.step()
print("trained")
"""

LOSSES = """
from traindbg.rules import Finding, Parameter, Rule
import numpy


class {name}(Rule):
    summary = "A rule of the tests."
    parameters = (Parameter("at", 3, "the step at which it happens", minimum=0, maximum=1e6),)

    def needs(self):
        return ["losses"]

    def on_step(self, step, sink):
        if step.step == self.parameter("at"):
{body}
        return True
"""


def traindbg(folder: Path, *arguments: object, **extra: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PROGRAM), *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
        env=clean_environment(**{"TRAINDBG_PYTHON": sys.executable, **extra}),
    )


def rule_file(folder: Path, name: str, body: str) -> Path:
    """A rule whose `body` runs at step 3."""
    path = folder / f"{name}.py"
    indented = "\n".join(" " * 12 + line for line in body.splitlines())
    path.write_text(LOSSES.format(name=name.title().replace("_", ""), body=indented))
    return path


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, forked: Server) -> Path:
    """A folder with a recorded run called `one`, of which nothing may be changed."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "train.py").write_text(TRAINING)
    done = traindbg(
        folder, "run", "--name", "one", "--collect", "gradients", "--raw", "weights", "--every", 5,
        "--no-report", "--", *forked.python(), "train.py",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def check(folder: Path, *arguments: object, code: int | None = None) -> dict[str, Any]:
    done = traindbg(folder, "check", "one", "--json", *arguments)
    if code is not None:
        assert done.returncode == code, done.stdout + done.stderr
    return {**json.loads(done.stdout), "stderr": done.stderr}


def outcome(verdict: dict[str, Any], rule: str) -> dict[str, Any]:
    return next(each for each in verdict["rules"] if each["rule"] == rule)


def findings(verdict: dict[str, Any], *rules: str) -> list[dict[str, Any]]:
    return [each for each in verdict["findings"] if each["rule"] in rules]


# Rules in Python.


def test_both_forms_find_the_same_live_and_stored(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    done = traindbg(
        tmp_path, "run", "--name", "one", "--rule-python", SMALL,
        "--rule", "small_gradients.limit=1e-8", "--rule", "original_small_gradients.limit=1e-8",
        "--", sys.executable, "train.py",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "small_gradients, step 0" in done.stderr
    live = json.loads((tmp_path / "traindbg-runs/one/verdict.json").read_text())
    ours, theirs = findings(live, "small_gradients", "original_small_gradients")
    assert ours["first_step"] == theirs["first_step"] == 0
    assert ours["last_step"] == theirs["last_step"]
    assert ours["tensor"] in {"gradient/0.weight", "gradient/0.bias"}
    assert ours["places"] == 2
    plan = json.loads((tmp_path / "traindbg-runs/one/plan.json").read_text())
    asked = [each for each in plan["requirements"] if "small_gradients" in each.get("for", "")]
    # One of the original's form is shown all modes.
    assert sorted(
        (each["collection"], each["mode"], each["schedule"]["every"]) for each in asked
    ) == [
        ("gradients", "global", 10),
        ("gradients", "train", 10),
    ]
    # Stored: with the parameters of the run, and the same findings; of all rules.
    stored = check(tmp_path, "--rule-python", SMALL)
    assert stored["findings"] == live["findings"]
    assert stored["rules"] == live["rules"]
    # Without the file it says what is missing.
    assert (
        "small_gradients, original_small_gradients, which is not here" in check(tmp_path)["stderr"]
    )


@pytest.mark.parametrize(
    ("name", "body", "why"),
    [
        (
            "raises",
            "raise ValueError('no such thing')",
            "ValueError: no such thing (raises.py, line 15)",
        ),
        ("hangs", "while True: pass", "took longer than 1 s and was ended"),
        ("sleeps", "import time; time.sleep(1000)", "took longer than 1 s and was ended"),
        (
            "crashes",
            "import ctypes; print('so long', flush=True); ctypes.string_at(0)",
            "signal 11 (SIGSEGV)",
        ),
        ("exits", "import os; os._exit(7)", "its process ended with code 7"),
        ("leaves", "raise SystemExit(3)", "SystemExit: 3"),
        ("eats", "self.x = bytearray(2 << 30)", "MemoryError"),
        ("eats_arrays", "self.x = numpy.ones(1 << 28)", "MemoryError"),
        ("babbles", "import os; os.write(3, b'Traceback (most recent call last)')", "answered"),
        ("no_finding", "sink.fire('a text')\nsink.events.append(7)", "AttributeError"),
        ("no_message", "sink.fire(Finding(''))", "a finding without a message"),
        ("odd_severity", "sink.fire(Finding('m', severity='fatal'))", "severity 'fatal'"),
    ],
)
def test_a_bad_rule_harms_nothing(
    recorded: Path, tmp_path: Path, name: str, body: str, why: str
) -> None:
    bad = rule_file(tmp_path, name, body)
    good = rule_file(tmp_path, "good", "sink.fire(Finding('here'))")
    verdict = check(
        recorded, "--rule-python", bad, "--rule-python", good, "--rule-timeout", 1, code=1
    )
    failed = outcome(verdict, name)
    assert failed["state"] == "not_checked"
    assert "failed at train step 3" in failed["reason"]
    assert why in failed["reason"]
    assert [each["first_step"] for each in findings(verdict, "good")] == [3]
    assert outcome(verdict, "non_finite")["state"] != "not_checked"


def test_a_rule_that_hangs_leaves_the_training_alone(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    bad = rule_file(tmp_path, "hangs", "while True: print('busy' * 1000)")
    good = rule_file(tmp_path, "good", "sink.fire(Finding('here'))")
    done = traindbg(
        tmp_path, "run", "--name", "one", "--rule-python", bad, "--rule-python", good,
        "--rule-timeout", 1, "--", sys.executable, "train.py",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "trained\n"
    assert "rule hangs: failed at train step 3: took longer than 1 s and was ended" in done.stderr
    verdict = json.loads((tmp_path / "traindbg-runs/one/verdict.json").read_text())
    assert outcome(verdict, "hangs")["state"] == "not_checked"
    assert [each["first_step"] for each in findings(verdict, "good")] == [3]


def test_what_is_wrong_with_a_file_is_told_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "syntax.py").write_text("def f(:\n")
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "imports.py").write_text("import nowhere_to_be_found\n")
    rule_file(tmp_path, "overfit", "pass")
    text = (tmp_path / "overfit.py").read_text()
    (tmp_path / "typo.py").write_text(text.replace("losses", "lozzes").replace("Overfit", "Typo"))
    (tmp_path / "no_needs.py").write_text(
        text.replace("def needs", "def wants").replace("Overfit", "N")
    )
    for source, why in {
        "nothing.py": "nothing.py: FileNotFoundError: there is no such file",
        "nobody": "no installed package has an entry point of that name",
        "syntax.py": "SyntaxError: invalid syntax (syntax.py, line 1)",
        "empty.py": "empty.py: has no rule",
        "empty.py:Missing": "has no rule Missing",
        "imports.py": "No module named 'nowhere_to_be_found' (imports.py, line 1)",
        "overfit.py": "there is a rule called overfit already; give this one another name (in a "
        'class of Python with `name = "my_overfit"`)',
        "typo.py": "rule typo: no collection 'lozzes' (did you mean 'losses'",
        "no_needs.py": "does not say what it needs",
    }.items():
        done = traindbg(tmp_path, "run", "--rule-python", source, "--", "touch", "started")
        assert done.returncode == 2, (source, done.stderr)
        assert why in done.stderr, (source, done.stderr)
    done = traindbg(
        tmp_path,
        "run",
        "--rule-python",
        "no_needs.py",
        "--",
        "true",
        TRAINDBG_PYTHON="/nowhere/python",
    )
    assert "/nowhere/python: cannot be started" in done.stderr
    assert not (tmp_path / "started").exists()


def test_a_rule_is_shown_what_it_asked_for(recorded: Path, tmp_path: Path) -> None:
    (tmp_path / "shown.py").write_text("""
import numpy as np
from traindbg.rules import Finding, Need, Rule

class Shown(Rule):
    def __init__(self):
        self.steps = []

    def needs(self):
        return ["losses", Need("weights", ["raw"], every=5)]

    def on_step(self, step, sink):
        assert {tensor.collection for tensor in step.tensors} <= {"losses", "weights"}
        assert all(loss.statistics is None and loss.value > 0 for loss in step.of("losses"))
        weights = step.of("weights")
        if weights:
            self.steps.append(step.step)
            assert all(each.statistics is None and each.value is None for each in weights)
            first = step.tensor("weight/0.weight").raw
            assert first.dtype == np.float32 and first.shape == (8, 6) and 0.1 < first.std() < 1
        assert step.training["model_type"] == "Sequential"
        assert step.training["optimizers"][0]["type"] == "SGD"

    def on_end(self, sink):
        evidence = [("steps", len(self.steps)), ("last", self.steps[-1], "limit", float("inf"))]
        sink.fire(Finding("All of it was shown.", evidence=evidence))
""")
    verdict = check(recorded, "--rule-python", tmp_path / "shown.py", "--rules", "shown", code=1)
    assert outcome(verdict, "shown") == {"rule": "shown", "state": "fired", "steps_judged": 60}
    (finding,) = findings(verdict, "shown")
    assert [each["value"] for each in finding["evidence"]] == [12, 55]


def test_an_original_rule_of_whole_tensors_and_steps_before(recorded: Path, tmp_path: Path) -> None:
    """As in the original's documents, but for `super().__init__` without an action, as there."""
    (tmp_path / "original.py").write_text("""
from smdebug.exceptions import TensorUnavailableForStep
from smdebug.rules.rule import Rule
from smdebug.trials import modes

class LossRises(Rule):
    def __init__(self, base_trial, action_str, times="2", mode=None):
        super().__init__(base_trial, action_str)
        self.times = float(times)
        assert mode is None and action_str == ""

    def invoke_at_step(self, step):
        for name in self.base_trial.tensor_names(regex="^loss/"):
            loss = self.base_trial.tensor(name)
            before = loss.prev_steps(step, 2)
            if len(before) == 2:
                assert before == [step - 1, step]
                if loss.value(step) > self.times * loss.value(before[0]):
                    return True
        assert self.base_trial.tensor("Sequential_0.weight").value(0).shape == (8, 6)
        self.base_trial.tensor("gradient/Sequential_0.weight").value(step)  # not kept as a whole

    def unused(self):
        raise TensorUnavailableForStep
""")
    # It sees all that is recorded.
    verdict = check(recorded, "--rule-python", tmp_path / "original.py", "--rules", "loss_rises")
    reason = outcome(verdict, "loss_rises")["reason"]
    assert "TensorUnavailableForStep: gradient/0.weight: " in reason, reason
    verdict = check(
        recorded, "--rule-python", tmp_path / "original.py", "--rules", "loss_rises",
        "--rule", "loss_rises.times=0.1",
    )  # fmt: skip
    (finding,) = findings(verdict, "loss_rises")
    assert finding["message"].startswith("The condition of LossRises holds")


def test_an_entry_point_of_an_installed_package(recorded: Path, tmp_path: Path) -> None:
    package = tmp_path / "site"
    package.mkdir()
    rule_file(package, "team_rules", "sink.fire(Finding('here'))")
    info = package / "team_rules-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: team-rules\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[traindbg.rules]\nours = team_rules\n")
    done = traindbg(
        recorded, "check", "one", "--json", "--rule-python", "ours", PYTHONPATH=str(package)
    )
    assert [each["first_step"] for each in findings(json.loads(done.stdout), "team_rules")] == [
        3
    ], done.stderr


# Rules that were written for the original.

EVALUATED = """
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
judge = torch.nn.CrossEntropyLoss()
inputs, classes = torch.randn(60, 6), torch.arange(60) % 3
others, of_others = torch.randn(30, 6), torch.arange(30) % 3  # nothing can be learned for these
for step in range(60):
    optimizer.zero_grad()
    judge(model(inputs), classes).backward()
    optimizer.step()
    if step % 20 == 19:
        model.eval()
        with torch.no_grad():
            judge(model(others), of_others)
        model.train()
"""

ORIGINALS = """
from smdebug.core.logger import get_logger
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import RuleEvaluationConditionMet, TensorUnavailableForStep
from smdebug.rules.req_tensors import RequiredTensors
from smdebug.rules.rule import Rule
from smdebug.rules.rule_invoker import invoke_rule
from smdebug.trials import create_trial
from smdebug.pytorch import CollectionKeys

import numpy as np


class GradientTooSmall(Rule):
    collections = (CollectionKeys.GRADIENTS,)
    every = 10

    def __init__(self, base_trial, action_str="", threshold="1e3", other_trials=None):
        super().__init__(base_trial, action_str, other_trials=other_trials)
        self.threshold = float(threshold)
        self.logger = get_logger()
        assert isinstance(self.req_tensors, RequiredTensors)

    def set_required_tensors(self, step):
        for name in self.base_trial.collection("gradients").tensor_names:
            self.req_tensors.add(name, steps=[step])

    def invoke_at_step(self, step):
        assert len(self.req_tensors.get_names()) == 4
        for tensor in self.req_tensors.get():
            assert tensor.workers(step) == self.base_trial.workers()
            told = tensor.reduction_values(step)
            mean = tensor.reduction_value(step, "mean", abs=True)
            assert told["mean", True] == mean
            self.logger.info("%s: %g", tensor.name, mean)
            if mean < self.threshold:
                return True
        return False


class ConfusedClasses(Rule):
    collections = ("labels", "predictions")
    every = 20
    raw = True

    def __init__(self, base_trial, action_str, min_right=0.99):
        super().__init__(base_trial, action_str)
        self.min_right = float(min_right)

    def set_required_tensors(self, step):
        for name in self.base_trial.tensor_names(regex=["^labels$", ".*predictions"]):
            self.req_tensors.add(name, steps=[step])

    def invoke_at_step(self, step):
        assert len(self.req_tensors.get()) == 2
        (labels,) = self.base_trial.labels(step)
        (predictions,) = self.base_trial.predictions(step)
        assert np.array_equal(self.base_trial.tensor("labels").value(step), labels)
        assert self.base_trial.tensor("predictions").original_name == "predictions"
        confusion = np.zeros((3, 3), int)
        np.add.at(confusion, (labels, predictions.argmax(axis=1)), 1)
        return np.trace(confusion) < self.min_right * confusion.sum()


class Overfits(Rule):
    collections = ("losses",)
    every = 1

    def __init__(self, base_trial, action_str, ratio=0.5):
        super().__init__(base_trial, action_str)
        self.ratio = ratio

    def invoke_at_step(self, step):
        assert self.base_trial.mode(step) == ModeKeys.TRAIN
        for name in self.base_trial.tensor_names(collection="losses", mode=ModeKeys.EVAL):
            loss = self.base_trial.tensor(name)
            evaluated = loss.steps(mode=ModeKeys.EVAL)[-1]
            train = loss.value(step, mode=ModeKeys.TRAIN)
            if loss.value(evaluated, mode=ModeKeys.EVAL) - train > self.ratio * train:
                raise RuleEvaluationConditionMet(self.rule_name, step, end_of_rule=True)
        return False


class OfTheLastEvaluation(Rule):
    collections = ("losses",)
    every = 1

    def invoke_at_step(self, step):
        return len(self.base_trial.steps(mode=ModeKeys.EVAL)) == 3


class FindsByNamesOfTheOriginal(Rule):
    # Without `collections`: it is shown all that is recorded.

    def invoke_at_step(self, step):
        trial = self.base_trial
        (loss,) = trial.tensor_names(regex=r".*[Ll]oss_output_0", step=step)
        assert trial.tensor_names(regex="[Ll]oss_(?!input).*output", step=step) == [loss]
        assert trial.tensor("CrossEntropyLoss_output_0").name == loss == "loss/cross_entropy"
        weights = trial.tensor_names(regex=r"^(?!gradient).*weight")
        assert weights == trial.tensor_names(collection="weights")
        ours = trial.tensor_names(regex="^(loop|optimizer_state|update_ratio)/")
        assert ours and not set(ours) & set(trial.tensor_names())
        return len(weights) == 2 and trial.tensor(loss).value(step) > 0


class KnowsThatThereAreSteps(Rule):
    collections = ("losses",)
    every = 1

    def invoke_at_step(self, step):
        return self.base_trial.steps()[-1] != step


class LooksForWhatIsNotThere(Rule):
    collections = ("losses",)
    every = 1

    def invoke_at_step(self, step):
        return any(
            self.base_trial.tensor(name).value(step).any()
            for name in self.base_trial.tensor_names(regex="relu_input")
        )


if __name__ == "__main__":
    invoke_rule(GradientTooSmall(create_trial("/opt/ml/output/tensors")))
"""


def test_rules_of_the_original_judge_live_and_stored(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(EVALUATED)
    (tmp_path / "originals.py").write_text(ORIGINALS)
    done = traindbg(
        tmp_path, "run", "--name", "one", "--rule-python", "originals.py", "--no-report",
        "--", sys.executable, "train.py",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    live = json.loads((tmp_path / "traindbg-runs/one/verdict.json").read_text())
    names = (
        "gradient_too_small", "confused_classes", "overfits", "of_the_last_evaluation",
        "finds_by_names_of_the_original",
    )  # fmt: skip
    found = {each["rule"]: each for each in findings(live, *names)}
    assert set(found) == set(names), [outcome(live, name) for name in names]
    assert found["gradient_too_small"]["last_step"] == 50
    assert found["confused_classes"]["first_step"] == 0
    assert 20 <= found["overfits"]["first_step"] < 60
    # The last evaluation is behind the last step of training.
    assert found["of_the_last_evaluation"]["first_step"] == 59
    for name in ("looks_for_what_is_not_there", "knows_that_there_are_steps"):
        missing = outcome(live, name)
        assert missing["state"] == "not_checked"
        assert "looked at nothing that was recorded" in missing["reason"]
    stored = check(tmp_path, "--rule-python", tmp_path / "originals.py")
    assert stored["findings"] == live["findings"]
    assert stored["rules"] == live["rules"]


NOT_FINITE = """
import torch

torch.manual_seed(0)
model = torch.nn.Linear(6, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
inputs, classes = torch.randn(60, 6), torch.arange(60) % 3
for step in range(20):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs), classes).backward()
    if step == 10:
        model.weight.grad[0, 0] = float("nan")
    if step == 12:
        model.bias.grad[0] = float("-inf")
    optimizer.step()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.nan_to_num_(0.1, 1, -1)
"""

FINITE = """
import numpy as np
from smdebug.rules.rule import Rule

class Base(Rule):
    collections = "gradients"
    every = 1

class FromStatistics(Base):
    def __init__(self, base_trial, threshold=10):
        super().__init__(base_trial)
        assert threshold == 0.5

    def invoke_at_step(self, step):
        for name in self.base_trial.tensor_names(collection="gradients"):
            tensor = self.base_trial.tensor(name)
            told = [tensor.reduction_value(step, each, abs=True) for each in ("mean", "max", "l2")]
            if not np.isfinite(told).all():
                return True
        return False

class FromValues(FromStatistics):
    raw = True
"""


def test_gradients_that_are_not_finite_are_seen_by_reductions(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(NOT_FINITE)
    (tmp_path / "finite.py").write_text(FINITE)
    done = traindbg(
        tmp_path, "run", "--name", "one", "--rule-python", "finite.py", "--no-report",
        "--rule", "from_statistics.threshold=0.5", "--rule", "from_values.threshold=0.5",
        "--", sys.executable, "train.py",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    verdict = json.loads((tmp_path / "traindbg-runs/one/verdict.json").read_text())
    assert "base" not in [each["rule"] for each in verdict["rules"]]
    for name in ("from_statistics", "from_values"):
        found = findings(verdict, name)
        assert [each["first_step"] for each in found][:1] == [10], outcome(verdict, name)
        assert found[-1]["last_step"] == 12


def test_what_of_the_original_is_not_there_says_what_is(recorded: Path, tmp_path: Path) -> None:
    rule = """
class Uses(Rule):
    def invoke_at_step(self, step):
        {}
"""
    for line, why in {
        "from smdebug.profiler import TraceEvent": "smdebug.profiler is not there for rules of "
        "traindbg: there are smdebug, smdebug.analysis",
        "from smdebug.core.utils import ensure_dir": "smdebug.core.utils.ensure_dir is not there "
        "for rules of traindbg: smdebug.core.utils has flatten",
    }.items():
        head = f"from smdebug.rules import Rule\n{line}\n"
        (tmp_path / "uses.py").write_text(head + rule.format("return False"))
        done = traindbg(recorded, "check", "one", "--rule-python", tmp_path / "uses.py")
        assert done.returncode == 2
        assert why in done.stderr
        assert "(uses.py, line 2)" in done.stderr
    head = "from smdebug.rules import Rule\nfrom smdebug import trials, modes, SaveConfig\n"
    for line, why in {
        "trials.create_trial('/elsewhere')": "read with traindbg.Run(PATH)",
        "SaveConfig(save_interval=3)": "--collect, --every and --raw",
        "self.base_trial.global_step(modes.EVAL, 3)": "with `mode=`",
    }.items():
        (tmp_path / "uses.py").write_text(head + rule.format(line))
        verdict = check(recorded, "--rule-python", tmp_path / "uses.py", "--rules", "uses")
        reason = outcome(verdict, "uses")["reason"]
        assert "SMDebugNotImplementedError" in reason
        assert why in reason


# What a rule does before the first step.


@pytest.mark.parametrize(
    ("name", "where", "body", "why"),
    [
        ("hangs", "__init__", "while True: pass", "took longer than 1 s and was ended"),
        ("hangs", "needs", "import time; time.sleep(1000)", "took longer than 1 s and was ended"),
        ("eats", "__init__", "self.x = bytearray(2 << 30)", "MemoryError"),
        ("crashes", "needs", "import ctypes; ctypes.string_at(0)", "signal 11 (SIGSEGV)"),
    ],
)
def test_a_rule_that_cannot_begin_is_not_checked(
    recorded: Path, tmp_path: Path, name: str, where: str, body: str, why: str
) -> None:
    """Beside others in its file and elsewhere, and with parameters of its own."""
    both = rule_file(tmp_path, name, "pass")
    text = both.read_text()
    bad = text + f"\n    def {where}(self):\n        {body}\n"
    beside = text[text.index("class") :].replace(f"class {name.title()}", "class Beside")
    both.write_text(bad + beside.replace("pass", "sink.fire(Finding('here'))"))
    good = rule_file(tmp_path, "good", "sink.fire(Finding('here'))")
    options = ("--rule-python", both, "--rule-python", good, "--rule-timeout", 1)
    for more in ((), ("--rule", f"{name}.at=4")):
        verdict = check(recorded, *options, *more, code=1)
        failed = outcome(verdict, name)
        assert failed["state"] == "not_checked"
        assert f"failed before the first step, in its `{where}`: " in failed["reason"]
        assert why in failed["reason"]
        assert [each["first_step"] for each in findings(verdict, "good", "beside")] == [3, 3]


def test_a_rule_of_the_original_that_cannot_begin_is_not_checked(
    recorded: Path, tmp_path: Path
) -> None:
    rule = """
from smdebug.rules import Rule

class Begins(Rule):
    def __init__(self, base_trial, limit):
        {}

    def invoke_at_step(self, step):
        return False
"""
    for line, why in {
        "while True: pass": "took longer than 1 s and was ended",
        "float(limit)": "ValueError: could not convert string to float: 'x'",
    }.items():
        (tmp_path / "begins.py").write_text(rule.format(line))
        verdict = check(
            recorded, "--rule-python", tmp_path / "begins.py", "--rules", "begins",
            "--rule-timeout", 1, "--rule", "begins.limit=x",
        )  # fmt: skip
        failed = outcome(verdict, "begins")
        assert failed["state"] == "not_checked"
        assert failed["reason"].startswith("failed before the first step, in its `__init__`: ")
        assert why in failed["reason"]


def test_an_argument_that_a_rule_demands_is_asked_for_before_the_start(tmp_path: Path) -> None:
    (tmp_path / "demands.py").write_text("""
from smdebug.rules import Rule

class Demands(Rule):
    def __init__(self, base_trial, path):
        super().__init__(base_trial)

    def invoke_at_step(self, step):
        return False
""")
    options = ("--rule-python", "demands.py")
    done = traindbg(tmp_path, "run", *options, "--", "touch", "started")
    assert done.returncode == 2
    assert (
        "ValueError: path: Demands has no default for it; --rule demands.path=VALUE" in done.stderr
    )
    assert not (tmp_path / "started").exists()
    done = traindbg(tmp_path, "rules", "explain", "demands", *options)
    assert done.returncode == 0, done.stderr
    done = traindbg(
        tmp_path, "run", *options, "--rule", "demands.path=/here", "--", "touch", "started"
    )
    assert (tmp_path / "started").exists(), done.stderr


def test_a_rule_that_cannot_begin_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    bad = rule_file(tmp_path, "hangs", "pass")
    bad.write_text(bad.read_text() + "\n    def __init__(self):\n        while True: pass\n")
    good = rule_file(tmp_path, "good", "sink.fire(Finding('here'))")
    done = traindbg(
        tmp_path, "run", "--name", "one", "--rule-python", bad, "--rule-python", good,
        "--rule-timeout", 1, "--no-report", "--", sys.executable, "train.py",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "trained\n"
    assert "rule hangs: failed before the first step, in its `__init__`: took" in done.stderr
    verdict = json.loads((tmp_path / "traindbg-runs/one/verdict.json").read_text())
    assert outcome(verdict, "hangs")["state"] == "not_checked"
    assert [each["first_step"] for each in findings(verdict, "good")] == [3]


# Plugins.


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, built as its README says."""
    build = tmp_path_factory.mktemp("plugin")
    for command in (
        ["cmake", "-S", EXAMPLES / "cpp_rule", "-B", build, f"-DTRAINDBG={PROGRAM}"],
        ["cmake", "--build", build],
        ["ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error"],
    ):
        done = subprocess.run(
            list(map(str, command)), capture_output=True, text=True, check=False, timeout=SECONDS,
            env=clean_environment(),
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    return build / "libquiet_layer.so"


def test_a_plugin_judges_live_and_stored(plugin: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    done = traindbg(
        tmp_path, "run", "--name", "one", "--rule-plugin", plugin, "--rule", "quiet_layer.patience=3",
        "--", sys.executable, "train.py",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "quiet_layer, step 2" in done.stderr
    live = json.loads((tmp_path / "traindbg-runs/one/verdict.json").read_text())
    (finding,) = findings(live, "quiet_layer")
    assert finding["tensor"] == "gradient/0.weight"
    assert finding["first_step"] == 2
    stored = check(tmp_path, "--rule-plugin", plugin)
    assert stored["findings"] == live["findings"]
    assert stored["rules"] == live["rules"]


def test_custom_rules_are_listed_and_explained(plugin: Path, tmp_path: Path) -> None:
    options = ("--rule-plugin", plugin, "--rule-python", SMALL)
    listed = traindbg(tmp_path, "rules", "list", *options).stdout
    assert f"Your own, of {plugin}:\nquiet_layer " in listed
    assert f"Your own, of {SMALL}:\nsmall_gradients " in listed
    entries = json.loads(traindbg(tmp_path, "rules", "list", "--json", *options).stdout)["rules"]
    (entry,) = [each for each in entries if each["name"] == "quiet_layer"]
    assert entry["origin"] == str(plugin)
    assert [each["name"] for each in entry["parameters"]] == ["share", "patience", "biases", "skip"]
    explained = traindbg(tmp_path, "rules", "explain", "quiet_layer", *options).stdout
    assert "--rule quiet_layer.patience=5" in explained
    wrong = traindbg(tmp_path, "run", *options, "--rule", "quiet_layer.patients=3", "--", "true")
    assert wrong.returncode == 2
    assert "no parameter is called 'patients' (did you mean 'patience'" in wrong.stderr


def test_a_plugin_may_be_written_in_c(recorded: Path, tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    (tmp_path / "rule.c").write_text("""
#include <traindbg/plugin.h>

static void needs(const traindbg_rule* self, const traindbg_host* host, const traindbg_parameters* parameters,
                  traindbg_needs* needs) {
    (void)self, (void)parameters;
    host->need(needs, "losses", TRAINDBG_STATISTICS, TRAINDBG_TRAIN, 1, 0);
}
static void* create(const traindbg_rule* self, const traindbg_host* host, const traindbg_parameters* parameters,
                    traindbg_sink* sink) {
    (void)self, (void)host, (void)parameters, (void)sink;
    return NULL;
}
static int on_step(void* state, const traindbg_host* host, const traindbg_step* step, traindbg_sink* sink) {
    traindbg_finding finding = {sizeof finding};
    (void)state;
    if (host->index(step) != 3) return TRAINDBG_JUDGED;
    finding.message = "here";
    finding.first_step = TRAINDBG_THIS_STEP;
    host->fire(sink, &finding);
    return TRAINDBG_JUDGED;
}
static const traindbg_rule rules[] = {
    {.size = sizeof(traindbg_rule), .name = "in_c", .needs = needs, .create = create, .on_step = on_step}};
static const traindbg_plugin plugin = {TRAINDBG_PLUGIN_ABI, 1, rules};
const traindbg_plugin* traindbg_plugin_describe(void) { return &plugin; }
""")
    done = subprocess.run(
        [compiler, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wno-missing-field-initializers", "-Werror",
         "-shared", "-fPIC", f"-I{ROOT / 'include'}", "-o", "rule.so", "rule.c"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    verdict = check(recorded, "--rule-plugin", tmp_path / "rule.so")
    assert [each["first_step"] for each in findings(verdict, "in_c")] == [3]


def test_a_plugin_of_another_version_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "old.cc").write_text(
        'extern "C" const void* traindbg_plugin_describe(void) {\n'
        "    static const unsigned plugin[8] = {7};\n    return plugin;\n}\n"
    )
    subprocess.run(["c++", "-shared", "-fPIC", "-o", "old.so", "old.cc"], cwd=tmp_path, check=True)
    done = traindbg(tmp_path, "run", "--rule-plugin", "old.so", "--", "touch", "started")
    assert done.returncode == 2
    assert "old.so: is a plugin for version 7 of the interface" in done.stderr
    assert not (tmp_path / "started").exists()


# Scaffolds.


def test_a_new_rule_in_python_works(recorded: Path, tmp_path: Path) -> None:
    done = traindbg(tmp_path, "rules", "new", "stale_norm")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "stale_norm"
    scenarios = sorted(map(str, (folder / "scenarios").glob("*.txt")))
    tested = traindbg(folder, "rules", "test", "--rule-python", "stale_norm.py", *scenarios)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert tested.stdout.count("ok ") == 3
    verdict = check(recorded, "--rule-python", folder / "stale_norm.py")
    assert outcome(verdict, "stale_norm")["state"] == "clean"
    # A scenario that comes out otherwise is told.
    loud = Path(scenarios[0]).read_text().replace("severity=warning", "severity=error")
    (folder / "loud.txt").write_text(loud)
    failed = traindbg(folder, "rules", "test", "--rule-python", "stale_norm.py", "loud.txt")
    assert failed.returncode == 1
    assert "no such finding of stale_norm" in failed.stdout
    # Nothing is overwritten.
    before = (folder / "stale_norm.py").read_text()
    again = traindbg(tmp_path, "rules", "new", "stale_norm", "--cpp")
    assert again.returncode == 2
    assert "nothing is overwritten" in again.stderr
    assert (folder / "stale_norm.py").read_text() == before


def test_a_new_rule_in_cpp_builds_and_passes(recorded: Path, tmp_path: Path) -> None:
    done = traindbg(tmp_path, "rules", "new", "stale_norm", "--cpp", "--out", "deep/er")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "deep" / "er"
    for command in (
        ["cmake", "-B", "build", f"-DTRAINDBG={PROGRAM}"],
        ["cmake", "--build", "build"],
        ["ctest", "--test-dir", "build", "--output-on-failure", "--no-tests=error"],
    ):
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS,
            env=clean_environment(),
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    assert "100% tests passed, 0 tests failed out of 3" in done.stdout
    verdict = check(recorded, "--rule-plugin", folder / "build/libstale_norm.so")
    assert outcome(verdict, "stale_norm")["state"] == "clean"
