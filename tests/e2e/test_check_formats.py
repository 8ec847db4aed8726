"""The verdict for other programs, read by readers that are not ours."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from junitparser import Failure, JUnitXml, Skipped
from sarif_pydantic import Sarif
from trainings import DIGITS, traindbg

if TYPE_CHECKING:
    from forked import Server
    from trainings import Outcome


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory, forked: Server) -> Outcome:
    runs = tmp_path_factory.mktemp("runs")
    return forked.run(runs, DIGITS, "--fault", "learning_rate", options=("--quiet",))


def check(run: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return traindbg("check", run, *options)


def test_sarif_is_what_its_standard_says(faulty: Outcome) -> None:
    done = check(faulty.run, "--format", "sarif")
    assert done.returncode == 1, done.stderr
    log = Sarif.model_validate_json(done.stdout)
    (run,) = log.runs
    assert run.tool.driver.name == "traindbg"
    results = run.results or []
    exploding = next(result for result in results if result.rule_id == "exploding_gradient")
    assert exploding.level is not None
    assert exploding.level.value == "error"
    assert exploding.locations
    place = exploding.locations[0].physical_location
    assert place is not None
    assert place.artifact_location is not None
    assert (place.artifact_location.uri or "").endswith("digits/train.py")
    assert place.region is not None
    assert place.region.start_line is not None
    code = DIGITS.read_text().splitlines()[place.region.start_line - 1]
    assert "torch.optim." in code, "where the learning rate is"
    described = {rule.id for rule in run.tool.driver.rules or []}
    assert {result.rule_id for result in results} <= described


def test_junit_has_a_case_for_each_rule(faulty: Outcome, tmp_path: Path) -> None:
    done = check(faulty.run, "--format", "junit")
    assert done.returncode == 1, done.stderr
    (tmp_path / "junit.xml").write_text(done.stdout)
    (suite,) = JUnitXml.fromfile(str(tmp_path / "junit.xml"))
    results = {case.name: list(case.result) for case in suite}
    assert isinstance(results["exploding_gradient"][0], Failure)
    assert isinstance(results["saturated_activation"][0], Skipped)
    assert results["gradients_not_cleared"] == []
    assert suite.failures == sum(
        isinstance(result, Failure) for found in results.values() for result in found
    )
    calm = check(faulty.run, "--format", "junit", "--fail-on", "never")
    assert calm.returncode == 0
    assert "<failure" not in calm.stdout


def test_what_stands_behind_a_finding_is_told_on_request(faulty: Outcome) -> None:
    plain, explained = check(faulty.run), check(faulty.run, "--explain")
    assert plain.returncode == explained.returncode == 1
    assert "why it matters: " in explained.stdout
    assert "why it matters: " not in plain.stdout


def test_another_form_is_refused_with_those_that_there_are(faulty: Outcome) -> None:
    done = check(faulty.run, "--format", "xml")
    assert done.returncode == 2
    assert "sarif" in done.stderr
