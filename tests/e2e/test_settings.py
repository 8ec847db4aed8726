"""Where options come from beside the command line, and captures with schedules of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from forked import Server
from trainings import PROGRAM, SECONDS, clean_environment, traindbg, traindbg_json

import traindbg as td
from traindbg.errors import InvalidArgument

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


def test_steps_of_which_none_is_due_are_refused(tmp_path: Path) -> None:
    steps = ("--first-step", "10", "--end-step", "20", "--every", "100")
    for verb in ("run", "explain-plan"):
        done = subprocess.run(
            [str(PROGRAM), verb, "--collect", "gradients", *steps, "--", *NOTHING],
            cwd=tmp_path,
            env=clean_environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        assert done.returncode == 2
        assert "--first-step 10, --end-step 20, --every 100: no step is due" in done.stderr
        assert done.stderr.count("\n") == 1


def test_steps_of_nothing_are_refused_and_told_of_a_file(tmp_path: Path) -> None:
    done = run(tmp_path, "--every", "5")
    assert done.returncode == 2
    assert done.stderr.startswith("traindbg: --every: counts nothing")
    assert "--collect weights,gradients" in done.stderr
    assert not (tmp_path / "run").exists()
    done = run(tmp_path, "--quiet", TRAINDBG_EVERY="5")
    assert done.returncode == 0
    assert "TRAINDBG_EVERY: every: counts nothing" in done.stderr


def test_a_hook_configuration_of_no_step_is_told(tmp_path: Path) -> None:
    parameters = {"start_step": "9", "end_step": "3"}
    entry = {"CollectionName": "weights", "CollectionParameters": parameters}
    (tmp_path / "hook.json").write_text(json.dumps({"CollectionConfigurations": [entry]}))
    done = run(tmp_path, "--hook-config", "hook.json")
    assert done.returncode == 0
    assert done.stderr.count("end_step 3 is not after start_step 9") == 1


def test_a_variable_that_nothing_reads_is_told_with_the_nearest(tmp_path: Path) -> None:
    done = run(tmp_path, TRAINDBG_EVRY="5")
    assert done.returncode == 0
    assert done.stderr.count("TRAINDBG_EVRY") == 1
    assert "did you mean 'TRAINDBG_EVERY'?" in done.stderr


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


EVERYTHING = """
collect = ["weights", "gradients"]
raw = "losses"
histograms = "heads"
at-steps = [0, 7]
every-seconds = 30
first-step = 1
end-step = 500
capture-in = "every"
compiled = "skip"
micro-batches = "all"
budget = "2.5%"
flight-recorder = 12
flight-collect = ["gradients", "heads"]
flight-raw = "biases"
overflow = "block_for"
block-for = "0.2s"
arena = "64MiB"
keep-last = 100
thin = 10
keep-tensors = 5
quota = "1GiB"
no-rule = "overfit"
fail-on = "error"
on-finding = "stop"

[rule.vanishing_gradient]
ratio = 1e-5

[collection]
heads = "^weight"
blocks = {include = ["block"], exclude = ["bias$"]}

[[capture]]
collection = "outputs"
what = "raw"
mode = "eval"
seconds = 60
"""
BY_HAND = """
import torch, traindbg as td
model = torch.nn.Linear(2, 1)
td.watch(model, run_dir="run", settings="traindbg.toml", supervise=False).detach()
"""


@pytest.mark.parametrize("text", [EVERYTHING, "collect = 'weights'\n", "[collection]\na = 'x'\n"])
def test_a_script_that_watches_by_hand_has_the_plan_of_the_program(
    tmp_path: Path, forked: Server, text: str
) -> None:
    (tmp_path / "traindbg.toml").write_text(text)
    by_program = plan_of(tmp_path, "--fail-on", "never")  # nothing is judged
    (tmp_path / "train.py").write_text(BY_HAND)
    done = subprocess.run(
        [*forked.python(), "train.py"],
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert ("fail-on" in done.stderr) == ("fail-on" in text)
    by_hand = json.loads((tmp_path / "run" / "plan.json").read_text())
    for plan in (by_program, by_hand):
        plan.pop("crc32c", None)
        plan["requirements"].sort(key=json.dumps)
    assert by_hand == by_program


STOPPED = """
import time, torch, traindbg as td

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
td.watch(model, optimizer, run_dir="run", settings="traindbg.toml")
end = time.monotonic() + 120
while time.monotonic() < end:
    optimizer.zero_grad()
    (model(torch.ones(1, 2)).sum() * float("nan")).backward()
    optimizer.step()
    time.sleep(0.005)
"""


def test_a_script_that_watches_by_hand_is_stopped_where_the_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "traindbg.toml").write_text('on-finding = "stop"\nrules = "non_finite"\n')
    done = subprocess.run(
        [sys.executable, "-c", STOPPED],
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 90, done.stderr


def test_a_script_that_watches_by_hand_knows_every_option_of_the_program(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    sections = traindbg("run", "--help").stdout.split("\n\n")
    titles = ("Upload:", "When a rule fires:", "Rules:", "Capture:", "Storage:")
    settable = [section for section in sections if section.startswith(titles)]
    assert len(settable) == len(titles)
    options = set(re.findall(r"^  --([a-z-]+)", "\n".join(settable), re.MULTILINE))
    file = tmp_path / "x.toml"
    for option in options - {"rule", "collection"}:  # tables in a file
        file.write_text(f"{option} = []\n")
        with pytest.raises(InvalidArgument, match=f"x.toml:1: {option}: expected a value"):
            td.watch(torch.nn.Linear(2, 1), run_dir=tmp_path / "run", settings=file)


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


def test_captures_come_at_the_steps_that_they_name(tmp_path: Path, forked: Server) -> None:
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
    done = run(tmp_path, command=[*forked.python(), "train.py"])
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


def test_a_hook_configuration_of_the_original(tmp_path: Path, forked: Server) -> None:
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
    done = run(tmp_path, *arguments, command=[*forked.python(), "train.py"])
    assert done.returncode == 0, done.stderr
    recorded = td.Run(tmp_path / "run")
    assert recorded["weight/0.weight"].raw_steps().tolist() == [0, 10, 20]
    assert recorded["bias/2.bias"].series("l2").steps.tolist() == [0, 10, 20]
    assert "activation/1" in recorded.names()
    done = run(tmp_path, "--hook-config", "absent.json")
    assert done.returncode == 2
    assert "absent.json" in done.stderr


def test_channels_and_digests_from_a_file_to_the_terminal(tmp_path: Path, forked: Server) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    (tmp_path / "more.toml").write_text(
        '[[capture]]\ncollection = ["weights", "activations"]\nwhat = ["channels", "digest"]\n'
        "steps = [0, 7]\n"
    )
    for name in ("one", "two"):
        arguments = ("--rules", "overfit", "--config", "more.toml")
        done = run(tmp_path, *arguments, command=[*forked.python(), "train.py"])
        assert done.returncode == 0, done.stderr
        (tmp_path / "run").rename(tmp_path / name)
    told = {}
    for name in ("one", "two"):
        digests = traindbg_json("get", tmp_path / name, "weight/0.weight", "--stat", "fingerprint")
        told[name] = digests["workers"][0]["points"]
        assert [point["step"] for point in told[name]] == [0, 7]
        assert all(re.fullmatch("[0-9a-f]{16}", point["value"]) for point in told[name])
    assert told["one"] == told["two"]
    lines = traindbg("get", tmp_path / "one", "weight/0.weight", "--stat", "fingerprint", "--csv")
    assert f"0,train,7,{told['one'][1]['value']}" in lines.stdout.splitlines()
    product = traindbg_json("get", tmp_path / "one", "weight/0.weight", "--stat", "product")
    values = [point["value"] for point in product["workers"][0]["points"]]
    assert values == td.Run(tmp_path / "one")["weight/0.weight"].values("product").tolist()
    csv = traindbg(
        "export", tmp_path / "one", "--format", "csv", "--table", "channels", "--to", "-"
    )
    rows = [line.split(",") for line in csv.stdout.splitlines()]
    assert rows[0][-4:] == ["channel", "min", "max", "zero"]
    channels = td.Run(tmp_path / "one")["activation/1"].channels(7)
    of_relu = [row for row in rows if row[2] == "7" and row[4] == "activation/1"]
    assert [float(row[-2]) for row in of_relu] == pytest.approx(channels.max.tolist())
    merged = traindbg_json(
        "get", tmp_path / "one", "weight/0.weight", "--stat", "fingerprint", "--merge-workers"
    )["merged"]
    assert merged == {"workers": [0], "points": told["one"], "steps_left_out": 0}
    plan = " ".join(traindbg("explain-plan", tmp_path / "one").stdout.split())
    assert "statistics, channels, digests" in plan
    assert re.search(r"histograms at \S+ \S+, channels at \S+ \S+, digests at \S+ \S+, whole", plan)
    assert traindbg("show", tmp_path / "one", "--tensors").returncode == 0
    assert traindbg("verify", tmp_path / "one").returncode == 0


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
    with pytest.raises(InvalidArgument, match=said):
        td.watch(
            torch.nn.Linear(2, 2), run_dir=tmp_path / "run", supervise=False, capture=[capture]
        )


ASKS_LATE = """
import torch
import traindbg as td
from traindbg.errors import InvalidArgument

model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)  # from here on traindbg run records
watcher = td.watch(model, settings="mine.toml", histograms="weights", every=1, budget=0.5)
for step in range(8):
    if step == 4:
        assert td.watch(model, raw="biases", every=1) is watcher
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(torch.randn(8, 6)), torch.randn(8, 1)).backward()
    optimizer.step()
"""


def test_what_a_script_asks_for_under_the_program_is_captured(tmp_path, forked):
    (tmp_path / "train.py").write_text(ASKS_LATE)
    (tmp_path / "mine.toml").write_text(
        '[collection]\nfirst = "^(weight|gradient)/0"\n\n'
        '[[capture]]\ncollection = "first"\nwhat = ["digest"]\nevery = 2\n'
    )
    options = ("--collect", "losses", "--rules", "loss_not_decreasing")
    done = run(tmp_path, *options, command=[*forked.python(), "train.py"])
    assert done.returncode == 0, done.stderr
    assert "budget of this call is ignored" in done.stderr
    seen = td.Run(tmp_path / "run")
    bins = pa.table(seen.table("histograms")).to_pandas()
    assert set(bins["name"]) == {"weight/0.weight", "weight/2.weight"}
    assert set(bins["step"]) == set(range(8))
    digests = pa.table(seen.table("digests")).to_pandas()
    assert set(digests["name"]) == {"weight/0.weight", "gradient/0.weight", "gradient/0.bias"}
    assert set(digests["step"]) == {0, 2, 4, 6}
    assert seen["bias/0.bias"].raw_steps().tolist() == [4, 5, 6, 7]
    changes = [event["data"] for event in seen.events if event["kind"] == "plan_changed"]
    assert [change["step"] for change in changes] == [0, 4]
    (finished,) = json.loads(traindbg("set", str(tmp_path / "run"), "--json").stdout)["workers"]
    assert finished["state"] == "in_effect"


@pytest.mark.parametrize("wrong", ["collect='no_such'", "settings='no_such.toml'"])
def test_a_mistake_of_a_script_under_the_program_is_named(wrong, tmp_path, forked):
    script = ASKS_LATE.replace('settings="mine.toml"', wrong)
    (tmp_path / "train.py").write_text(script)
    done = run(tmp_path, command=[*forked.python(), "train.py"])
    assert done.returncode == 1
    assert "no_such" in done.stderr
