"""Probes under `traindbg run`: asked for in each place, and the training is the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from trainings import PROGRAM, ROOT, SECONDS, clean_environment

import traindbg as td

SCRIPT = ROOT / "examples" / "faults" / "samples_mixed_gait_view_for_transpose.py"


def start(directory: Path, *before: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, sys.executable, str(SCRIPT)],
        cwd=directory,
        env=clean_environment(**variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def findings(directory: Path) -> dict[str, str]:
    run = td.Run(directory / "run")
    return {found["rule"]: found["layer"] for found in run.findings}


@pytest.mark.parametrize("where", ["option", "file", "environment"])
def test_probes_are_asked_for_in_each_place(where: str, tmp_path: Path) -> None:
    plain = start(tmp_path)
    options, variables = [], {}
    if where == "option":
        options = ["--probe"]
    elif where == "file":
        (tmp_path / "traindbg.toml").write_text("probe = true\n")
    else:
        variables = {"TRAINDBG_PROBE": "true"}
    probed = start(tmp_path, str(PROGRAM), "run", "--run-dir", "run", *options, "--", **variables)
    assert (plain.returncode, probed.returncode) == (0, 0), probed.stderr
    assert plain.stdout == probed.stdout
    assert findings(tmp_path)["samples_mixed"].startswith("encoder.layers.0")


def test_without_it_nothing_is_probed_and_the_rule_says_so(tmp_path: Path) -> None:
    run = start(tmp_path, str(PROGRAM), "run", "--run-dir", "run", "--")
    assert run.returncode == 0, run.stderr
    assert "samples_mixed" not in findings(tmp_path)
    outcomes = {each["rule"]: each for each in td.Run(tmp_path / "run").outcomes}
    assert outcomes["samples_mixed"]["state"] == "not_checked"
    assert "--probe" in outcomes["samples_mixed"]["reason"]
