"""Rules compatible with SageMaker Debugger: chosen, shown whole tensors, live and stored."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from forked import Server
from trainings import PROGRAM, SECONDS, clean_environment

TRAINING = """
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(6, 5),
    torch.nn.Tanh(),
    torch.nn.Linear(5, 5),
    torch.nn.ReLU(),
    torch.nn.Linear(5, 2),
)
model[0].weight.requires_grad_(False)  # stands still
with torch.no_grad():
    model[0].weight.mul_(1000)  # tanh at its ends
    model[2].bias.fill_(-100)  # dead units
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.01)
for step in range(30):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(torch.randn(64, 6)), torch.arange(64) % 2).backward()
    optimizer.step()
"""


def traindbg(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PROGRAM), *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
        env=clean_environment(),
    )


def verdict(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "traindbg-runs/one/verdict.json").read_text()))


def fired(verdict: dict[str, Any]) -> dict[str, tuple[str, int]]:
    return {each["rule"]: (each["tensor"], each["first_step"]) for each in verdict["findings"]}


def test_rule_configurations_of_the_original_judge_a_run_live_and_stored(tmp_path: Path) -> None:
    configurations = [
        {"RuleConfigurationName": name.lower(), "RuleParameters": {"rule_to_invoke": name, **more}}
        for name, more in {
            "DeadRelu": {"threshold_layer": "90"},
            "SaturatedActivation": {},
            "UnchangedTensor": {"collection_names": "weights", "num_steps": "2"},
            "WeightUpdateRatio": {"num_steps": "5"},
            "Confusion": {},
            "ExplodingTensor": {"only_nan": "True"},
        }.items()
    ]
    (tmp_path / "rules.json").write_text(json.dumps({"DebugRuleConfigurations": configurations}))
    (tmp_path / "train.py").write_text(TRAINING)
    done = traindbg(
        tmp_path, "run", "--name", "one", "--rules-json", "rules.json", "--rules", "non_finite",
        "--raw", "weights", "--every", 5, "--", sys.executable, "train.py",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    live = verdict(tmp_path)
    found = fired(live)
    assert found["DeadRelu"] == ("activation/3", 0)
    assert found["SaturatedActivation"] == ("activation/1", 0)
    assert found["UnchangedTensor"] == ("weight/0.weight", 5)
    assert found["WeightUpdateRatio"] == ("weight/0.weight", 5)
    assert "Confusion" in found
    outcomes = {each["rule"]: each["state"] for each in live["rules"]}
    assert outcomes["ExplodingTensor"] == "clean"
    assert len(outcomes) == len(configurations) + 1
    # The same rules again, with the same parameters, on what was stored.
    again = traindbg(tmp_path, "check", "one", "--json")
    stored = json.loads(again.stdout)
    assert fired(stored) == found
    assert {each["rule"]: each["state"] for each in stored["rules"]} == outcomes


def test_a_rule_is_configured_several_times(tmp_path: Path, forked: Server) -> None:
    configurations = [
        {
            "RuleConfigurationName": name,
            "RuleParameters": {"rule_to_invoke": "UnchangedTensor", **more},
        }
        for name, more in {
            "weights": {"collection_names": "weights"},
            "last": {"tensor_regex": "bias/4"},
            "metrics": {"collection_names": "metrics"},
        }.items()
    ]
    (tmp_path / "rules.json").write_text(json.dumps(configurations))
    (tmp_path / "train.py").write_text(TRAINING)
    done = traindbg(
        tmp_path, "run", "--name", "one", "--rules-json", "rules.json", "--rules", "non_finite",
        "--rule", "UnchangedTensor:last.num_steps=4", "--raw", "weights,biases", "--every", 5,
        "--fail-on", "warning", "--", *forked.python(), "train.py",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "UnchangedTensor:weights" in done.stderr
    live = verdict(tmp_path)
    assert fired(live) == {"UnchangedTensor:weights": ("weight/0.weight", 10)}
    outcomes = {each["rule"]: each["state"] for each in live["rules"]}
    assert outcomes == {
        "non_finite": "clean",
        "UnchangedTensor:weights": "fired",
        "UnchangedTensor:last": "clean",
        "UnchangedTensor:metrics": "not_checked",
    }
    # Known by their names later, in several processes, too.
    for more in ([], ["--processes", 2]):
        stored = json.loads(traindbg(tmp_path, "check", "one", "--json", *more).stdout)
        assert fired(stored) == fired(live)
        assert {each["rule"]: each["state"] for each in stored["rules"]} == outcomes


def test_collections_beside_a_configuration_are_captured(tmp_path: Path, forked: Server) -> None:
    configuration = {
        "DebugRuleConfiguration": {
            "RuleConfigurationName": "loss",
            "RuleParameters": {"rule_to_invoke": "LossNotDecreasing"},
        },
        "CollectionConfigurations": [
            {"CollectionName": "losses", "CollectionParameters": {"train.save_interval": "7"}}
        ],
    }
    (tmp_path / "rules.json").write_text(json.dumps([configuration]))
    (tmp_path / "train.py").write_text(TRAINING.replace("lr=0.01", "lr=1e-12"))
    done = traindbg(
        tmp_path, "run", "--name", "one", "--rules-json", "rules.json",
        "--rules", "LossNotDecreasing", "--", *forked.python(), "train.py",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (outcome,) = verdict(tmp_path)["rules"]
    assert outcome["state"] != "not_checked"
    assert outcome["steps_judged"] == 2  # at steps 14 and 28: every seventh is recorded


def test_what_only_writes_a_report_is_left_out_and_the_others_judge(
    tmp_path: Path, forked: Server
) -> None:
    rules = ["CreateXgboostReport", "LossNotDecreasing"]
    configurations = [{"RuleParameters": {"rule_to_invoke": rule}} for rule in rules]
    (tmp_path / "rules.json").write_text(json.dumps(configurations))
    (tmp_path / "train.py").write_text(TRAINING)
    done = traindbg(
        tmp_path, "run", "--name", "one", "--rules-json", "rules.json",
        "--rules", "LossNotDecreasing", "--", *forked.python(), "train.py",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "rules.json: CreateXgboostReport is left out: it writes a report" in done.stderr
    assert [each["rule"] for each in verdict(tmp_path)["rules"]] == ["LossNotDecreasing"]


def test_a_wrong_configuration_is_named_before_anything_starts(tmp_path: Path) -> None:
    wrong = [{"RuleConfigurationName": "a", "RuleParameters": {"rule_to_invoke": "DeadRely"}}]
    (tmp_path / "rules.json").write_text(json.dumps(wrong))
    done = traindbg(tmp_path, "run", "--rules-json", "rules.json", "--", "false")
    assert done.returncode == 2
    assert "rules.json: a" in done.stderr
    assert "DeadRelu" in done.stderr


TWICE = """
import sys

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(40):
    if step == int(sys.argv[1]):
        torch.manual_seed(1)  # other data from here on
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(torch.randn(64, 6)), torch.arange(64) % 2).backward()
    optimizer.step()
"""


def test_runs_are_compared_from_the_first_step_at_which_they_part(
    tmp_path: Path, forked: Server
) -> None:
    (tmp_path / "train.py").write_text(TWICE)
    for name, part in (("base", 100), ("same", 100), ("other", 25)):
        done = traindbg(
            tmp_path, "run", "--name", name, "--rules", "non_finite", "--collect",
            "weights,gradients", "--every", 10, "--raw", "biases", "--no-report", "--",
            *forked.python(), "train.py", part,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def compared(run: str, other: str, *more: object) -> dict[str, Any]:
        done = traindbg(
            tmp_path, "check", run, "--json", "--rules", "SimilarAcrossRuns",
            "--rule", f"SimilarAcrossRuns.other_trials={other}", *more,
        )  # fmt: skip
        return dict(json.loads(done.stdout))

    (same,) = compared("same", "base")["rules"]
    assert (same["state"], same["steps_judged"]) == ("clean", 40)
    parted = compared("other", "base")
    (finding,) = parted["findings"]
    assert finding["first_step"] == 25
    assert finding["tensor"].startswith("loss")
    assert "differs from base" in finding["message"]
    # Recorded at every tenth step, biases whole. By the names of the original, too.
    for pattern, first in (("^gradient/", 30), ("^Sequential_0.weight", 30), ("^bias/", 30)):
        (finding,) = compared(
            "other", "base", "--rule", f"SimilarAcrossRuns.tensor_regex={pattern}"
        )["findings"]
        assert finding["first_step"] == first, pattern
    # A path does as well; in processes, too, where the runs may lie elsewhere.
    (tmp_path / "elsewhere").mkdir()
    done = traindbg(
        tmp_path / "elsewhere", "check", "other", "--runs", tmp_path / "traindbg-runs", "--json",
        "--rules", "SimilarAcrossRuns,non_finite", "--processes", 2,
        "--rule", "SimilarAcrossRuns.other_trials=base",
    )  # fmt: skip
    assert json.loads(done.stdout)["findings"] == parted["findings"]
    path = tmp_path / "traindbg-runs" / "base"
    assert compared("other", str(path))["findings"][0]["first_step"] == 25
    # As a rule configuration of the original.
    configuration = {
        "RuleConfigurationName": "a",
        "RuleParameters": {"rule_to_invoke": "SimilarAcrossRuns", "other_trials": str(path)},
    }
    (tmp_path / "rules.json").write_text(json.dumps([configuration]))
    done = traindbg(
        tmp_path, "check", "other", "--json", "--rules", "SimilarAcrossRuns",
        "--rules-json", "rules.json",
    )  # fmt: skip
    assert json.loads(done.stdout)["findings"][0]["first_step"] == 25
    # Without the other run nothing is clean.
    (missing,) = compared("same", "nowhere")["rules"]
    assert missing["state"] == "not_checked"
    assert "nowhere" in missing["reason"]
