"""Where options come from beside the command line, and captures with schedules of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from trainings import PROGRAM, SECONDS, clean_environment

import traindbg as td

NOTHING = [sys.executable, "-c", "pass"]
TRAINING = """
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(30):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(torch.randn(8, 6)), torch.randn(8, 1)).backward()
    optimizer.step()
    if step % 5 == 4:
        model.eval()
        with torch.no_grad():
            torch.nn.functional.mse_loss(model(torch.randn(8, 6)), torch.randn(8, 1))
        model.train()
"""


def run(
    directory: Path, *arguments: str, command: list[str] | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """`traindbg run` in a working directory of its own."""
    return subprocess.run(
        [
            str(PROGRAM),
            "run",
            "--run-dir",
            "run",
            "--no-report",
            *arguments,
            "--",
            *(command or NOTHING),
        ],
        cwd=directory,
        env=clean_environment(**environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def plan_of(directory: Path, *arguments: str, **environment: str) -> Any:
    done = run(directory, *arguments, **environment)
    assert done.returncode == 0, done.stderr
    plan = json.loads((directory / "run" / "plan.json").read_text())
    for file in sorted((directory / "run").rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    return plan


def wishes_in(plan: Any) -> list[Any]:
    return [each for each in plan["requirements"] if each["for"] == "user"]


def asked_by(plan: Any) -> set[str]:
    return {each["for"] for each in plan["requirements"]}


def test_the_command_line_comes_before_the_environment_and_that_before_the_file(
    tmp_path: Path,
) -> None:
    (tmp_path / "traindbg.toml").write_text(
        'collect = ["weights", "gradients"]\nevery = 20\nquota = "1GiB"\n'
        'rules = ["vanishing_gradient"]\n[rule.vanishing_gradient]\nratio = 1e-5\n'
    )
    plan = plan_of(tmp_path)
    assert [(w["collection"], w["schedule"]) for w in wishes_in(plan)] == [
        ("weights", {"every": 20}),
        ("gradients", {"every": 20}),
    ]
    assert plan["retention"]["quota_bytes"] == 2**30
    assert asked_by(plan) == {"user", "vanishing_gradient"}

    plan = plan_of(tmp_path, TRAINDBG_COLLECT="biases,losses", TRAINDBG_EVERY="7")
    assert {(w["collection"], w["schedule"]["every"]) for w in wishes_in(plan)} == {
        ("biases", 7),
        ("losses", 7),
    }
    plan = plan_of(tmp_path, "--every", "3", TRAINDBG_COLLECT="biases", TRAINDBG_EVERY="7")
    assert [(w["collection"], w["schedule"]["every"]) for w in wishes_in(plan)] == [("biases", 3)]
    assert wishes_in(plan_of(tmp_path, "--config", "none")) == []
    assert wishes_in(plan_of(tmp_path, TRAINDBG_CONFIG="none")) == []

    (tmp_path / "other.toml").write_text("histograms = 'gradients'\n")
    for arguments, environment in (
        (("--config", "other.toml"), {}),
        ((), {"TRAINDBG_CONFIG": "other.toml"}),
        (("--config", "other.toml"), {"TRAINDBG_CONFIG": "missing.toml"}),
    ):
        (wish,) = wishes_in(plan_of(tmp_path, *arguments, **environment))
        assert wish["what"] == ["statistics", "histogram"]


def test_a_pyproject_is_read_where_it_has_our_table(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text("[project]\nname = 'x'\n")
    assert wishes_in(plan_of(tmp_path)) == []
    file.write_text("[project]\nname = 'x'\n[tool.traindbg]\ncollect = 'weights'\n")
    assert [w["collection"] for w in wishes_in(plan_of(tmp_path))] == ["weights"]
    file.write_text(
        "[tool.traindbg]\nevery = 3\n[[tool.traindbg.capture]]\ncolection = 'weights'\n"
    )
    done = run(tmp_path)
    assert done.returncode == 2
    assert "pyproject.toml:4" in done.stderr
    file.write_text("[project\n")  # for its own tools to tell
    assert wishes_in(plan_of(tmp_path)) == []
    (tmp_path / "traindbg.toml").write_text("collect = 'biases'\n")
    assert [w["collection"] for w in wishes_in(plan_of(tmp_path))] == ["biases"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("evry = 3\n", ("traindbg.toml:1", "'evry'", "'every'")),
        ("\nevery = 'x'\n", ("traindbg.toml:2", "every", "not a whole number")),
        ("on-finding = 'stopp'\n", ("traindbg.toml:1", "on-finding", "'stop'")),
        ("collect = 'weight'\n", ("collect", "weights")),
        ("name = 'x'\n", ("unknown key 'name'",)),
        ("[rule.vanishing_gradiant]\nratio = 1\n", ("vanishing_gradient",)),
        ("[rule.vanishing_gradient]\nrato = 1\n", ("ratio",)),
        ("[collection]\na = '('\n", ("collection a",)),
        ("[collection]\nweights = 'x'\n", ("weights", "another name")),
        ("[[capture]]\ncollection = 'gradient'\n", ("capture", "gradients")),
        ("[[capture\n", ("traindbg.toml:1",)),
    ],
)
def test_a_mistake_is_named_and_nothing_starts(
    tmp_path: Path, text: str, said: tuple[str, ...]
) -> None:
    (tmp_path / "traindbg.toml").write_text(text)
    done = run(tmp_path, command=[sys.executable, "-c", "open('ran', 'w')"])
    assert done.returncode == 2
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "run").exists()
    for part in said:
        assert part in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_a_bad_value_in_the_environment_and_a_file_that_is_not_there_are_named(
    tmp_path: Path,
) -> None:
    done = run(tmp_path, TRAINDBG_EVERY="often")
    assert done.returncode == 2
    assert "TRAINDBG_EVERY" in done.stderr
    for arguments, environment in (
        (("--config", "x.toml"), {}),
        ((), {"TRAINDBG_CONFIG": "x.toml"}),
    ):
        done = run(tmp_path, *arguments, **environment)
        assert done.returncode == 2
        assert "x.toml" in done.stderr


def test_captures_come_at_the_steps_that_they_name(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    (tmp_path / "traindbg.toml").write_text(
        """
rules = ["overfit"]
[collection]
first = {include = ['/0\\.'], exclude = ['bias']}
[[capture]]
collection = "first"
what = "histogram"
steps = [0, 7, 25]
[[capture]]
collection = "biases"
every = 10
start = 5
end = 25
[[capture]]
collection = "activations"
mode = "eval"
every = 2
[[capture]]
collection = "outputs"
seconds = 10000
"""
    )
    done = run(tmp_path, command=[sys.executable, "train.py"])
    assert done.returncode == 0, done.stderr
    recorded = td.Run(tmp_path / "run")

    def steps_of(name: str, mode: str = "train") -> list[int]:
        return [int(step) for step in recorded[name].series("mean", mode).steps]

    assert steps_of("weight/0.weight") == [0, 7, 25]
    assert steps_of("gradient/0.weight") == [0, 7, 25]
    histograms = pa.table(recorded.table("histograms", names=r"^weight/0\.weight$"))
    assert set(histograms["step"].to_pylist()) == {0, 7, 25}
    assert steps_of("bias/0.bias") == [10, 20]
    assert steps_of("activation/1", "eval") == [0, 2, 4]
    assert steps_of("output/2") == [0]


def test_options_say_the_same(tmp_path: Path) -> None:
    (wish,) = wishes_in(
        plan_of(
            tmp_path, "--collect", "weights", "--at-steps", "9,3", "--every-seconds", "1.5",
            "--first-step", "2", "--end-step", "50", "--capture-in", "every",
        )
    )  # fmt: skip
    assert wish["mode"] == "global"
    assert wish["schedule"] == {
        "every": 0,
        "start": 2,
        "end": 50,
        "steps": [3, 9],
        "every_ms": 1500,
    }
    done = run(tmp_path, "--first-step", "5", "--end-step", "5")
    assert done.returncode == 2
    assert "--end-step" in done.stderr


def test_a_hook_configuration_of_the_original(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    (tmp_path / "hook.json").write_text(
        json.dumps(
            {
                "LocalPath": "/nowhere",
                "HookParameters": {"save_interval": "10", "eval.save_interval": "2"},
                "CollectionConfigurations": [
                    {"CollectionName": "weights"},
                    {
                        "CollectionName": "relu_output",
                        "CollectionParameters": {"reductions": "min,max", "train.save_steps": "3"},
                    },
                    {
                        "CollectionName": "second",
                        "CollectionParameters": {"include_regex": r"/2\.bias", "reductions": ""},
                    },
                ],
            }
        )
    )
    arguments = ("--rules", "overfit", "--hook-config", "hook.json")
    done = run(tmp_path, *arguments, command=[sys.executable, "train.py"])
    assert done.returncode == 0, done.stderr
    recorded = td.Run(tmp_path / "run")
    assert recorded["weight/0.weight"].raw_steps().tolist() == [0, 10, 20]
    assert recorded["bias/2.bias"].series("l2").steps.tolist() == [0, 10, 20]
    assert "activation/1" in recorded.names()
    done = run(tmp_path, "--hook-config", "absent.json")
    assert done.returncode == 2
    assert "absent.json" in done.stderr


def test_watch_takes_captures(tmp_path: Path) -> None:
    script = TRAINING.replace(
        "optimizer = ",
        "import traindbg as td\ntd.watch(model, run_dir='run', rules=[], supervise=False, capture=["
        "{'collection': 'weights', 'what': 'raw', 'steps': [4, 2]}, "
        "{'collection': ['biases'], 'every': 20}])\noptimizer = ",
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    recorded = td.Run(tmp_path / "run")
    assert recorded["weight/0.weight"].raw_steps().tolist() == [2, 4]
    assert recorded["bias/0.bias"].series("l2").steps.tolist() == [0, 20]


@pytest.mark.parametrize(
    ("capture", "said"),
    [
        ({"collection": "weights", "evry": 3}, "did you mean 'every'"),
        ({"every": 3}, "'collection' is missing"),
        ({"collection": "weights", "mode": "test"}, "'test'"),
        ({"collection": "wieghts"}, "weights"),
        ({"collection": "weights", "what": "mean"}, "mean"),
        ({"collection": "weights", "seconds": 0}, "seconds"),
    ],
)
def test_watch_names_what_is_wrong_with_a_capture(capture: Any, said: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    os.environ.pop("TRAINDBG_RUN_DIR", None)
    with pytest.raises(td.errors.InvalidArgument, match=said):
        td.watch(
            torch.nn.Linear(2, 2), run_dir=tmp_path / "run", supervise=False, capture=[capture]
        )
