"""Findings that must last: pending, then firing, and the same live and from the record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from trainings import DIGITS, traindbg

if TYPE_CHECKING:
    from pathlib import Path

    from forked import Server
    from trainings import Outcome

LONG = ("--hold", "1000000")


def states(verdict: dict[str, Any]) -> set[str]:
    return {finding["state"] for finding in verdict["findings"]}


def checked(run: Path, *options: object) -> tuple[int, dict[str, Any]]:
    done = traindbg("check", run, "--json", *options)
    return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory, forked: Server) -> Outcome:
    """A training that would be stopped at once, were its findings not held back."""
    return forked.run(
        tmp_path_factory.mktemp("held"), DIGITS, "--fault", "learning_rate",
        options=(*LONG, "--on-finding", "stop", "--fail-on", "warning", "--no-report"),
    )  # fmt: skip


def test_nothing_is_done_about_what_is_pending(held: Outcome) -> None:
    assert held.code == 0, held.stderr
    assert states(held.verdict) == {"pending"}
    assert held.verdict["causes"] == []
    assert not (held.run / "actions.jsonl").exists()
    assert "fired" not in {rule["state"] for rule in held.verdict["rules"]}
    count = len(held.verdict["findings"])
    assert f"{count} finding{'' if count == 1 else 's'} " in held.stderr
    assert "pending" in held.stderr


def test_the_record_is_judged_with_the_same_hold(held: Outcome) -> None:
    code, verdict = checked(held.run)
    assert code == 0
    assert verdict["findings"] == held.verdict["findings"]
    assert verdict["rules"] == held.verdict["rules"]


def test_processes_that_judge_hold_it_as_well(held: Outcome) -> None:
    for options in ((), ("--hold", "7"), ("--hold", "0.02s")):
        one = traindbg("check", held.run, "--json", *options)
        assert (
            traindbg("check", held.run, "--json", *options, "--processes", 3).stdout == one.stdout
        )


def test_it_fires_when_it_has_lasted(held: Outcome) -> None:
    code, at_once = checked(held.run, "--hold", "0")
    assert code == 1
    assert "firing" in states(at_once)
    assert at_once["causes"][0]["evidence_for"]
    code, later = checked(held.run, "--hold", "5")
    assert code == 1
    steps = {(each["rule"], each["key"]): each["step"] for each in at_once["findings"]}
    fired = [each for each in later["findings"] if each["state"] == "firing" and each["times"] == 1]
    assert fired
    ended = max(each["last_step"] for each in later["findings"])
    for each in fired:
        # One that a rule speaks of at the end does not wait.
        waited = each["step"] - steps[each["rule"], each["key"]]
        assert waited >= 5 or each["step"] == ended, each


def test_one_rule_may_have_its_own(held: Outcome) -> None:
    rule = held.verdict["findings"][0]["rule"]
    _, verdict = checked(held.run, "--rule", f"{rule}.hold=0")
    assert {each["rule"] for each in verdict["findings"] if each["state"] != "pending"} == {rule}
