"""Every mode of training is bit for bit the same with traindbg and without, and is recorded."""

from __future__ import annotations

import pytest
import same
import table_of_modes  # noqa: F401  (fills same.MODES)

import traindbg as td

SETTINGS = {"everything": same.EVERYTHING, "seldom": same.SELDOM}


@pytest.mark.parametrize("name", same.MODES)
def test_a_training_is_the_same_and_recorded(name, tmp_path):
    mode = same.MODES[name]
    plain = same.run(name, tmp_path / "plain", None)
    assert not [told["raised"] for told in plain.told if "raised" in told]
    for what, settings in SETTINGS.items():
        if mode.is_slow and what != "everything":
            continue
        watched = same.run(name, tmp_path / what, settings)
        assert not [told["raised"] for told in watched.told if "raised" in told], what
        assert plain.what_differs(watched) == {}, what
    check_record(mode, td.Run(tmp_path / "everything"))


def check_record(mode: same.Mode, run: td.Run) -> None:
    assert run.workers == list(range(mode.ranks))
    assert not run.verify()
    for rank in run.workers:
        if mode.steps is not None:
            steps = [step.step for step in run.iter_steps(worker=rank)]
            assert steps == list(range(mode.steps))
    empty = [each for each in mode.holds if not run.names(collection=each)]
    assert not empty
    assert not [event for event in run.events if event["kind"] == "hook_error"]
    said = [event["data"]["what"] for event in run.events if event["kind"] == "not_captured"]
    known = ("attention maps", *mode.said)  # all models are asked for those
    unexpected = [what for what in said if not what.startswith(known)]
    assert not unexpected
    missing = [begin for begin in mode.said if not any(what.startswith(begin) for what in said)]
    assert not missing
