"""Each mistake of the digits example is found, told apart from the others, and can stop it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from forked import Server
from trainings import DIGITS, Outcome, run_plain, run_training, traindbg, traindbg_json

# Fault to (rules that must fire, the cause that must stand first, further arguments).
FAULTS: dict[str, tuple[set[str], str, tuple[str, ...]]] = {
    "learning_rate": ({"exploding_gradient"}, "learning_rate_too_high", ()),
    "sigmoid_stack": ({"saturated_activation"}, "poor_weight_init", ()),
    "dead_relu": ({"dead_relu"}, "dead_relu", ()),
    "one_class": ({"class_imbalance"}, "single_class_labels", ()),
    "no_zero_grad": ({"gradients_not_cleared"}, "gradients_not_cleared", ()),
    "shuffled_labels": ({"overfit"}, "label_misalignment", ("--epochs", "60")),
}
REAL = "learning_rate"  # in a process of its own; the others are forked


def train_with(
    fault: str, forked: Server, runs: Path, *arguments: str, options: tuple[str, ...] = ()
) -> Outcome:
    run = run_training if fault == REAL else forked.run
    return run(runs, DIGITS, "--fault", fault, *arguments, options=options)


@pytest.fixture(scope="module", params=FAULTS)
def faulty(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, forked: Server
) -> tuple[str, Outcome]:
    """A training with a fault, run to its own end."""
    fault = str(request.param)
    runs = tmp_path_factory.mktemp(fault)
    return fault, train_with(fault, forked, runs, *FAULTS[fault][2])


def test_a_healthy_training_ends_clean_with_a_report(healthy: Outcome) -> None:
    assert healthy.code == 0, healthy.stderr
    assert healthy.rules_fired() == set()
    assert healthy.end["exit_code"] == 0
    assert "<html" in healthy.report
    accuracy = float(re.findall(r"val accuracy\s+([0-9.]+)%", healthy.stdout)[-1])
    assert accuracy > 95


def test_a_healthy_training_prints_what_it_prints_without_traindbg(healthy: Outcome) -> None:
    assert healthy.stdout == run_plain(DIGITS).stdout


@pytest.mark.parametrize("seed", [1, 2])
def test_other_seeds_of_a_healthy_training_are_clean_too(
    tmp_path: Path, forked: Server, seed: int
) -> None:
    outcome = forked.run(tmp_path, DIGITS, "--seed", seed)
    assert outcome.code == 0
    assert outcome.rules_fired() == set()


def test_every_rule_says_that_it_judged_or_why_not(healthy: Outcome) -> None:
    rules = traindbg_json("rules", "list")["rules"]
    known = {rule["name"] for rule in rules if rule["on_by_default"]}
    outcomes = {outcome["rule"]: outcome for outcome in healthy.verdict["rules"]}
    assert set(outcomes) == known
    for outcome in outcomes.values():
        if outcome["state"] == "not_checked":
            assert outcome["reason"]
        else:
            assert outcome["steps_judged"] > 0


def test_a_fault_is_found_and_its_cause_stands_first(faulty: tuple[str, Outcome]) -> None:
    fault, outcome = faulty
    rules, cause, _ = FAULTS[fault]
    assert outcome.code == 0, outcome.stderr  # the script itself succeeds
    assert rules <= outcome.rules_fired()
    assert outcome.verdict["causes"][0]["name"] == cause
    assert "<html" in outcome.report


def test_findings_name_place_step_numbers_and_fix(faulty: tuple[str, Outcome]) -> None:
    _, outcome = faulty
    said = " ".join(outcome.stderr.split())  # lines are wrapped
    for finding in outcome.verdict["findings"]:
        assert re.search(r"[0-9]", finding["message"]), finding
        assert finding["fix"]
        assert finding["evidence"]
        assert finding["first_step"] <= finding["step"] <= finding["last_step"]
        assert finding["rule"] in said
        assert finding["message"] in said


def test_offline_check_gives_the_findings_of_the_live_run(faulty: tuple[str, Outcome]) -> None:
    _, outcome = faulty
    stored = traindbg_json("check", outcome.run, codes=(0, 1))
    live = outcome.verdict
    assert stored["findings"] == live["findings"]
    assert stored["rules"] == live["rules"]
    assert stored["causes"] == live["causes"]


def test_offline_check_of_the_healthy_run_is_clean(healthy: Outcome) -> None:
    result = traindbg("check", healthy.run, "--json")
    assert result.returncode == 0, result.stdout
    assert json.loads(result.stdout)["findings"] == healthy.verdict["findings"]


@pytest.mark.parametrize("fault", FAULTS)
def test_on_finding_stop_ends_a_faulty_training_early(
    tmp_path: Path, forked: Server, fault: str
) -> None:
    epochs = FAULTS[fault][2] or ("--epochs", "60")
    outcome = train_with(fault, forked, tmp_path, *epochs, options=("--on-finding", "stop"))
    assert outcome.code == 90, outcome.stderr
    assert outcome.end["exit_code"] == 90
    assert outcome.end["stopped_by_rule"] is True
    assert outcome.stdout.count("epoch") < 60
    assert "<html" in outcome.report


def test_on_finding_stop_leaves_a_healthy_training_alone(tmp_path: Path) -> None:
    outcome = run_training(tmp_path, DIGITS, options=("--on-finding", "stop"))
    assert outcome.code == 0, outcome.stderr
    assert outcome.stdout.count("epoch") == 15


def test_fail_on_makes_a_finding_an_exit_code(tmp_path: Path) -> None:
    outcome = run_training(
        tmp_path, DIGITS, "--fault", "dead_relu", options=("--fail-on", "warning")
    )
    assert outcome.code == 1
