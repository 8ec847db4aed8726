"""Starting whole trainings under the installed `traindbg` program, and what they leave behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits" / "train.py"
PROGRAM = Path(os.environ.get("TRAINDBG_EXE") or Path(sys.executable).parent / "traindbg")
SECONDS = 240  # a training that takes longer hangs


def clean_environment(**extra: str) -> dict[str, str]:
    """Our environment without settings that would change what a training or traindbg does."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TRAINDBG_")}
    environment.update({"OMP_NUM_THREADS": "1", "NO_COLOR": "1", **extra})
    return environment


@dataclass
class Outcome:
    """What a `traindbg run` left behind."""

    code: int
    stdout: str
    stderr: str
    runs: Path

    @property
    def run(self) -> Path:
        """The directory of the one run that was made."""
        found = [entry for entry in self.runs.iterdir() if (entry / "RUN.json").is_file()]
        assert len(found) == 1, f"expected one run below {self.runs}, found {found}\n{self.stderr}"
        return found[0]

    @property
    def verdict(self) -> dict[str, Any]:
        return json.loads((self.run / "verdict.json").read_text())

    @property
    def end(self) -> dict[str, Any]:
        return json.loads((self.run / "END.json").read_text())

    @property
    def report(self) -> str:
        return (self.run / "report.html").read_text()

    def rules_fired(self, at_least: str = "warning") -> set[str]:
        """Names of the rules with a finding of this severity or above."""
        order = ["info", "warning", "error"]
        wanted = order[order.index(at_least) :]
        return {f["rule"] for f in self.verdict["findings"] if f["severity"] in wanted}

    def steps(self) -> int:
        """TRAIN steps in the stored run."""
        return int(traindbg_json("show", self.run)["steps"]["train"])


def traindbg(*arguments: object, **extra: str) -> subprocess.CompletedProcess[str]:
    """One command of the program, to its end."""
    return subprocess.run(
        [str(PROGRAM), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
        env=clean_environment(**extra),
    )


def traindbg_json(*arguments: object, codes: tuple[int, ...] = (0,)) -> Any:
    """What a read command prints with --json."""
    result = traindbg(*arguments, "--json")
    assert result.returncode in codes, f"exit {result.returncode}\n{result.stdout}{result.stderr}"
    return json.loads(result.stdout)


def run_training(
    runs: Path,
    script: Path,
    *arguments: object,
    options: tuple[str, ...] = (),
    python: tuple[str, ...] = (sys.executable,),
    **extra: str,
) -> Outcome:
    """`traindbg run OPTIONS -- python SCRIPT ARGUMENTS`, to its end."""
    command = ["run", *options, "--", *python, script, *arguments]
    result = traindbg(*command, TRAINDBG_RUNS=str(runs), **extra)
    return Outcome(result.returncode, result.stdout, result.stderr, runs)


def watched(outcome: Outcome, runs: Path, *options: str, **extra: str) -> Outcome:
    """`traindbg watch` of a copy of that run, made below `runs`: its findings are told again."""
    run = runs / outcome.run.name
    shutil.copytree(outcome.run, run)
    result = traindbg("watch", run, "--quiet", *options, **extra)
    return Outcome(result.returncode, result.stdout, result.stderr, runs)


def run_plain(
    script: Path, *arguments: object, python: tuple[str, ...] = (sys.executable,), **extra: str
) -> subprocess.CompletedProcess[str]:
    """The same training without traindbg."""
    return subprocess.run(
        [*python, str(script), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
        env=clean_environment(**extra),
    )
