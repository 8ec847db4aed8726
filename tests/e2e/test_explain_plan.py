"""`traindbg explain-plan`: what would be captured, before anything is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from forked import Server
from trainings import DIGITS, PROGRAM, SECONDS, Outcome, clean_environment

TRAINING = """
import sys
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
print("the script's own word")
try:
    for step in range(100000):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(torch.randn(8, 6)), torch.randn(8, 1)).backward()
        optimizer.step()
finally:
    open(__file__ + ".left", "w").write("in good order")
"""


def explain(folder: Path, *arguments: object, **extra: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PROGRAM), "explain-plan", *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
        env=clean_environment(TMPDIR=str(folder), **extra),
    )


def explained(folder: Path, *arguments: object) -> Any:
    result = explain(folder, "--json", *arguments)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def script(
    folder: Path, text: str = TRAINING, python: tuple[str, ...] = (sys.executable,)
) -> list[object]:
    (folder / "train.py").write_text(text)
    return ["--", *python, "train.py"]


def test_the_digits_example_is_explained_and_leaves_nothing_behind(tmp_path: Path) -> None:
    result = explain(tmp_path, "--", sys.executable, DIGITS)
    assert result.returncode == 0, result.stderr
    for words in ("gradients", "vanishing_gradient", "1000 steps", "idle steps", "measured"):
        assert words in result.stdout, result.stdout
    assert not list(tmp_path.glob("traindbg*"))  # PyTorch leaves a folder of its own in TMPDIR
    told = explained(tmp_path, "--", sys.executable, DIGITS)
    names = {tensor["name"]: tensor for tensor in told["tensors"]}
    weight = next(tensor for name, tensor in names.items() if name.startswith("weight/"))
    assert weight["shape"]
    assert weight["dtype"] == "float32"
    assert told["probe"]
    assert 0 < told["captured_steps"] <= 1000
    assert told["bytes"] > 0
    assert 0 < told["nanos"] < 1000 * told["step_nanos"] * 10


def test_what_is_told_is_what_a_run_then_records(tmp_path: Path, forked: Server) -> None:
    options = ("--rules", "exploding_gradient", "--collect", "gradients", "--every", "4")
    command = script(tmp_path, TRAINING.replace("100000", "40"), forked.python())
    told = explained(tmp_path, "--steps", "40", *options, *command)
    runs = tmp_path / "runs"
    run = forked.run(runs, tmp_path / "train.py", options=options).run
    recorded = explained(tmp_path, "--steps", "40", run)
    assert [(g["collection"], g["when"], g["for"]) for g in recorded["groups"]] == [
        (g["collection"], g["when"], g["for"]) for g in told["groups"]
    ]
    for seen, said in zip(recorded["groups"], told["groups"], strict=True):
        # Some facts of the loop come of looking at inputs, which the probe does at each step.
        more = 2 if said["collection"] == "loop" else 0
        assert seen["tensors"] <= said["tensors"] <= seen["tensors"] + more, said
    assert recorded["captured_steps"] == told["captured_steps"]
    assert abs(recorded["bytes"] - told["bytes"]) <= 0.05 * told["bytes"]


def test_the_script_is_stopped_in_good_order_and_its_words_go_to_standard_error(
    tmp_path: Path,
) -> None:
    result = explain(tmp_path, *script(tmp_path))
    assert result.returncode == 0, result.stderr
    assert "the script's own word" in result.stderr
    assert "the script's own word" not in result.stdout
    assert (tmp_path / "train.py.left").read_text() == "in good order"
    assert not list(tmp_path.glob("traindbg*"))


def test_settings_collections_and_what_nothing_matches(tmp_path: Path, forked: Server) -> None:
    (tmp_path / "traindbg.toml").write_text(
        "on-finding = 'stop'\nrules = ['plateau']\nraw = 'weights'\nat-steps = [5, 50]\n"
        "[collection]\nhead = '^gradient/2'\nnone = 'no such thing'\n"
        "[[capture]]\ncollection = ['head', 'none']\nevery = 10\n"
    )
    told = explained(tmp_path, *script(tmp_path, python=forked.python()))
    groups = {(g["collection"], g["what"]): g for g in told["groups"] if g["for"] == ["user"]}
    weights = groups["weights", "statistics, whole tensors"]
    assert weights["when"] == "at steps 5, 50"
    assert weights["tensors"] == 2
    assert weights["bytes"] >= 4 * (30 + 5)
    assert groups["gradients", "statistics"]["tensors"] == 2
    assert any(each["what"] == "none, for user" for each in told["not_captured"])
    (gradient,) = [t for t in told["tensors"] if t["name"] == "gradient/2.weight"]
    assert gradient["collections"] == ["gradients", "head"]
    assert 21 in told["idle_of_first_100"]
    assert 5 not in told["idle_of_first_100"]
    assert 50 not in told["idle_of_first_100"]
    everything = explain(tmp_path, "--tensors", *script(tmp_path, python=forked.python()))
    assert "gradient/2.weight" in everything.stdout


def test_a_run_is_explained_with_what_is_asked_for_beside(healthy: Outcome, tmp_path: Path) -> None:
    plain = explained(tmp_path, healthy.run)
    assert not plain["probe"]
    more = explained(tmp_path, "--raw", "weights", "--every", "1", healthy.run)
    assert more["bytes"] > plain["bytes"] * 10
    assert more["nanos"] > plain["nanos"]
    assert not list(healthy.run.glob("plan-*"))
    assert "healthy" not in explain(tmp_path, healthy.run, "--json").stdout


def test_what_goes_wrong_is_said(tmp_path: Path, forked: Server) -> None:
    waiting = TRAINING.replace("        optimizer.step()", "        __import__('time').sleep(600)")
    for text, options, words in (
        ("print('no training')", (), "ended with code 0"),
        ("import torch\nraise SystemExit(7)", (), "ended with code 7"),
        (TRAINING, ("--collect", "gradient"), "did you mean 'gradients'"),
        (TRAINING, ("--config", "missing.toml"), "missing.toml"),
        (waiting, ("--within", "5"), "--within"),
    ):
        # What hangs is a process of its own.
        python = (sys.executable,) if text is waiting else forked.python()
        result = explain(tmp_path, *options, *script(tmp_path, text, python))
        assert result.returncode == 2, (words, result.stdout, result.stderr)
        assert words in result.stderr
        assert not list(tmp_path.glob("traindbg-plan*"))
    assert explain(tmp_path, "no-such-command").returncode == 127
    result = explain(tmp_path, "last")
    assert result.returncode == 2
    assert "there is no run" in result.stderr
    assert explain(tmp_path).returncode == 2
