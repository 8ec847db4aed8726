"""The counts of the measure of the gallery, on outcomes that tell each from its neighbours."""

from __future__ import annotations

import pytest
from made_outcomes import ODD, PROGRAM, finding, outcome, quiet
from measure.bars import MEASURES, told
from measure.outcomes import LOUD_ORIGINALS, as_json, from_json
from measure.scores import Steps, score

RIGHT = finding("x", layer="fc1", step=7)
WRONG = finding("a", layer="fc1")


def _told(outcomes, name):
    return str(getattr(score(outcomes), name))


def test_kinds_are_those_of_causes_first_each_once():
    made = outcome(
        PROGRAM,
        [finding("a"), finding("note", severity="info"), finding("b", kind="z")],
        [{"name": "z", "rules": ["b"]}],
    )
    assert made.kinds == ["z", "a"]
    assert made.is_right


def test_a_cause_counts_only_beside_a_finding_above_info():
    made = outcome(PROGRAM, [finding("a", severity="info")], [{"name": "x", "rules": ["a"]}])
    assert made.kinds == []
    assert _told([made], "detected") == "0/1"


def test_detected_is_above_info_whatever_the_kind():
    outcomes = [
        outcome(PROGRAM, [WRONG]),
        outcome(PROGRAM, [finding("x", severity="warning")], seed=1),
        outcome(PROGRAM, [finding("x", severity="info")], seed=2),
        outcome(PROGRAM, seed=3),
        quiet(),
    ]
    assert _told(outcomes, "detected") == "2/4"


def test_a_pair_needs_a_right_kind_and_a_quiet_twin():
    right, wrong = outcome(PROGRAM, [RIGHT]), outcome(PROGRAM, [WRONG])
    loud = outcome(PROGRAM, [finding("a", severity="warning")], faulty=False)
    assert _told([right, quiet()], "pairs") == "1/1"
    assert _told([right, loud], "pairs") == "0/1"
    assert _told([wrong, quiet()], "pairs") == "0/1"
    assert _told([wrong, quiet()], "pairs_any") == "1/1"
    assert _told([wrong, loud], "pairs_any") == "0/1"
    assert _told([right, quiet(seed=1)], "pairs") == "-", "that is another seed's twin"


def test_first_and_first_three_count_kinds_in_their_order():
    others = [finding(name) for name in ("a", "b", "c")]
    assert _told([outcome(PROGRAM, [RIGHT, *others])], "first") == "1/1"
    assert _told([outcome(PROGRAM, [others[0], RIGHT])], "first") == "0/1"
    assert _told([outcome(PROGRAM, [*others[:2], RIGHT])], "first_three") == "1/1"
    assert _told([outcome(PROGRAM, [*others, RIGHT])], "first_three") == "0/1"
    assert _told([outcome(PROGRAM)], "first") == "0/1", "what is not found is not named"


def test_a_place_is_that_of_the_right_finding():
    elsewhere = finding("a", layer="fc1")
    here = finding("x", layer="fc2", step=9)
    assert not outcome(PROGRAM, [elsewhere, here]).is_place_right
    assert outcome(PROGRAM, [elsewhere]).is_place_right
    vague = PROGRAM._replace(place=("", "loss*"))
    assert not outcome(vague, [finding("a", tensor="loss/mse_loss")]).is_place_right
    assert outcome(vague, [finding("x", tensor="loss/mse_loss")]).is_place_right
    in_the_loop = PROGRAM._replace(place=("loop",))
    assert outcome(in_the_loop, [elsewhere, here]).is_place_right
    assert not outcome(in_the_loop, [elsewhere]).is_place_right


def test_places_are_counted_among_the_detected():
    assert _told([outcome(PROGRAM, [RIGHT]), outcome(PROGRAM, seed=1)], "place") == "1/1"


def test_silent_and_exact_are_of_programs_that_say_so():
    silent = PROGRAM._replace(silent=True, exact=False)
    outcomes = [outcome(PROGRAM, [RIGHT]), outcome(silent, [WRONG]), outcome(silent, seed=1)]
    assert _told(outcomes, "silent") == "1/2"
    assert _told(outcomes, "exact") == "1/1"
    assert _told([outcome(PROGRAM, [WRONG])], "exact") == "0/1", "by a right kind"


def test_healthy_runs_are_twins_and_odd_trainings():
    inexact = PROGRAM._replace(name="faults/x_z", exact=False)
    outcomes = [
        outcome(PROGRAM, [RIGHT]),
        outcome(PROGRAM, [finding("a", severity="warning")], faulty=False),
        outcome(inexact, [finding("a", severity="warning")], faulty=False),
        outcome(ODD, [finding("a", severity="error")], faulty=False),
        quiet(ODD, seed=1),
    ]
    assert _told(outcomes, "healthy_alarms") == "3/4"
    assert _told(outcomes, "healthy_errors") == "1/4"
    assert _told(outcomes, "twin_alarms") == "2/2"
    assert _told(outcomes, "training_alarms") == "1/2"
    assert _told(outcomes, "exact_alarms") == "1/1"
    assert _told(outcomes, "quiet") == "0/2"


def test_steps_are_counted_from_one_and_of_early_faults():
    late = PROGRAM._replace(early=False, exact=False)
    inexact = PROGRAM._replace(exact=False)
    outcomes = [
        outcome(PROGRAM, [finding("x", step=0)]),
        outcome(inexact, [finding("a", step=1), finding("x", step=4), finding("z", step=9)]),
        outcome(late, [finding("x", step=50)]),
        outcome(PROGRAM, [WRONG], seed=1),
    ]
    assert score(outcomes).steps == Steps((1, 5))
    assert score(outcomes).exact_steps == Steps((1,))
    assert score(outcomes).steps.median == 3


def test_steps_about_nan_are_from_the_start_and_from_the_first_bad_loss():
    program = PROGRAM._replace(kind="nan_input", early=False)
    outcomes = [
        outcome(program, [finding("nan_input", step=31)], nan_step=31),
        outcome(program, [finding("nan_input", step=0)], nan_step=2, seed=1),
        outcome(program, [finding("nan_input", step=6)], nan_step=4, seed=2),
        outcome(program, [finding("nan_input", step=6)], seed=3),
        outcome(PROGRAM, [RIGHT], nan_step=0),
    ]
    total = score(outcomes)
    assert total.nan_steps == Steps((32, 1, 7, 7))
    assert total.nan_steps_after == Steps((1, 0, 3))
    assert str(total.nan_steps_after.within(1)) == "2/3"
    assert total.nan_steps_after.latest == 3


def test_what_was_not_measured_is_in_no_count():
    broken = [
        outcome(PROGRAM, [RIGHT], error="ended by SIGALRM"),
        outcome(PROGRAM, [WRONG], seed=1),
    ]
    assert _told(broken, "detected") == "1/1"
    assert _told([outcome(PROGRAM, [RIGHT]), quiet(error="no verdict")], "pairs") == "-"


def test_rules_of_the_original_are_left_out_as_if_not_asked():
    made = outcome(
        PROGRAM,
        [finding("Confusion"), finding("DeadRelu")],
        [{"name": "x", "rules": ["Confusion"]}, {"name": "y", "rules": ["Confusion", "DeadRelu"]}],
    )
    left = made.without(LOUD_ORIGINALS)
    assert [f["rule"] for f in left.findings] == ["DeadRelu"]
    assert left.kinds == ["y", "dead_relu"]


@pytest.mark.parametrize(
    ("name", "hits", "of", "is_reached"),
    [
        ("detected", 95, 100, True),
        ("detected", 949, 1000, False),
        ("healthy_alarms", 3, 100, True),
        ("healthy_alarms", 31, 1000, False),
        ("healthy_errors", 0, 1000, True),
        ("healthy_errors", 1, 1000, False),
        ("pairs", 899, 1000, False),
        ("first", 80, 100, True),
        ("first_three", 91, 100, False),
        ("place", 88, 100, True),
        ("silent", 89, 100, False),
        ("exact", 999, 1000, False),
        ("exact_alarms", 1, 1000, False),
        ("detected", 0, 0, None),
    ],
)
def test_shares_are_held_against_their_bars(name, hits, of, is_reached):
    measure = next(m for m in MEASURES if m.name == name)
    total = score([])
    value = total.detected._replace(hits=hits, of=of)
    assert measure.is_reached(total._replace(**{name: value})) is is_reached


@pytest.mark.parametrize(
    ("name", "values", "is_reached"),
    [
        ("steps", (10, 10, 99), True),
        ("steps", (1, 11, 11), False),
        ("exact_steps", (3,), True),
        ("exact_steps", (3, 4), False),
        ("nan_steps", (1, 1, 30), True),
        ("nan_steps", (2,), False),
        ("steps", (), None),
    ],
)
def test_medians_are_held_against_their_bars(name, values, is_reached):
    measure = next(m for m in MEASURES if m.name == name)
    assert measure.is_reached(score([])._replace(**{name: Steps(values)})) is is_reached


def test_each_measure_of_a_score_is_told():
    total = score([outcome(PROGRAM, [RIGHT]), quiet()])
    assert told(MEASURES[0].of(total)) == "100.0 % (1/1)"
    assert {type(m.of(total)).__name__ for m in MEASURES} == {"Count", "Steps"}


def test_an_outcome_comes_back_from_json():
    made = outcome(PROGRAM, [RIGHT], [{"name": "x", "rules": ["x"]}], nan_step=4, wall=0.5)
    assert from_json(as_json(made), made.task) == made
