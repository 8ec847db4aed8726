"""The section that the measure of the gallery writes, and the file that it goes on from."""

from __future__ import annotations

import json
import os

import pytest
from made_outcomes import MEASURE, ODD, PROGRAM, finding, outcome, quiet
from measure import recording, report, results
from measure.conditions import Conditions
from measure.errors import MeasureError
from measure.journal import Journal
from measure.outcomes import DEFAULT, ORIGINAL, Task

BEGIN, END = "<!-- gallery begins: diagnosis.py --write -->", "<!-- gallery ends -->"
GIVEN = Conditions(
    date="2026-11-24",
    version="0.1.0",
    commit="abc1234",
    command="diagnosis.py --seeds 0 4 --beside --write",
    rules=61,
    original_rules=20,
    seeds=(0, 4),
    jobs=2,
    seconds=754.2,
    machine="A machine, 2 CPUs",
    python="3.11.7",
    torch="2.13.0",
)


def _outcomes():
    return [
        outcome(PROGRAM, [finding("x", layer="fc1", step=7)]),
        outcome(PROGRAM, [finding("a", layer="fc1")], seed=4),
        quiet(),
        quiet(seed=4),
        quiet(ODD),
        outcome(ODD, [finding("a", severity="warning")], faulty=False, seed=4),
        outcome(PROGRAM, [finding("Confusion")], rules=ORIGINAL),
        outcome(PROGRAM, [finding("Confusion")], faulty=False, rules=ORIGINAL),
        outcome(ODD, error="ended by SIGALRM", faulty=False, seed=5),
    ]


def _page(path, between):
    path.write_bytes(f"# A\r\n\n{BEGIN}{between}{END}\n\n## B\nlast, without an end".encode())
    return results.part_of(path)


def test_the_part_is_replaced_and_nothing_else(tmp_path):
    part = _page(tmp_path / "R.md", "\n\nold\n\n")
    part.write("new\n")
    once = part.path.read_bytes()
    assert once == f"# A\r\n\n{BEGIN}\n\nnew\n\n{END}\n\n## B\nlast, without an end".encode()
    part.write("new")
    assert part.path.read_bytes() == once


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no marks", "begins: diagnosis.py --write --> must be there once, not 0 times"),
        (BEGIN, "ends --> must be there once, not 0 times"),
        (f"{BEGIN}{BEGIN}{END}", "must be there once, not 2 times"),
        (f"{END}{BEGIN}", "comes before"),
    ],
)
def test_a_page_without_its_marks_is_left_alone_and_named(tmp_path, text, why):
    page = tmp_path / "R.md"
    page.write_text(text)
    with pytest.raises(MeasureError, match=why) as told:
        results.part_of(page).write("new")
    assert str(told.value).startswith(str(page))
    assert page.read_text() == text


def test_the_section_tells_conditions_measures_and_what_is_wrong():
    section = results.section(_outcomes(), GIVEN)
    words = " ".join(section.split())
    for expected in (
        "`diagnosis.py --seeds 0 4 --beside --write`, 2026-11-24, traindbg 0.1.0 at commit abc1234",
        "61 default rules, and 20 of SageMaker Debugger",
        "1 faulty programs of 1 kinds, each with its healthy twin, and 1 healthy trainings",
        "seeds 0, 4; 9 trainings in 12 min 34 s, 2 at a time (A machine, 2 CPUs,",
        "| faulty programs detected | ≥ 95 % | 100.0 % (2/2) | yes | 100.0 % (1/1) | 0.0 % (0/1) |",
        "| right kind named first | ≥ 80 % | 50.0 % (1/2) | no | 0.0 % (0/1) | 0.0 % (0/1) |",
        "| x | 1 | 2/2 | 2/2 | 1/2 | 1/2 | 1/2 | 2/2 | 8 | 1/1 | 0/1 | 0/1 | 0/1 |",
        "| x | 1 | 8 |",
        "| healthy/odd | a | warning | 4 |",
        "| x_y | x | 4 | a |",
        "| healthy/odd | healthy | 5 | default | ended by SIGALRM |",
        "Of 1 healthy runs, rules of the original fire on: Confusion 1.",
    ):
        assert expected in words


def test_without_the_original_no_column_is_its():
    ours = report.judged_by(_outcomes(), DEFAULT)
    section = results.section(ours, GIVEN)
    assert "original" not in section
    assert "SageMaker" not in section
    assert "Not measured" not in section


def test_healthy_trainings_alone_have_no_table_of_kinds_or_steps():
    section = results.section([quiet(ODD)], GIVEN)
    assert "| kind" not in section
    assert "| steps" not in section
    assert "| healthy runs with a finding above info | ≤ 3 % | 0.0 % (0/1) | yes |" in " ".join(
        section.split()
    )


def test_the_json_has_all_that_the_section_tells():
    whole = json.loads(json.dumps(results.whole(_outcomes(), GIVEN)))
    assert whole["conditions"]["seeds"] == [0, 4]
    first = next(m for m in whole["measures"]["default"] if m["name"] == "first")
    assert (first["hits"], first["of"], first["is_reached"], first["bar"]) == (
        1,
        2,
        False,
        "≥ 80 %",
    )
    assert whole["kinds"]["default"]["x"]["steps"] == {"median": 8, "found": 1, "latest": 8}
    assert whole["kinds"]["original"]["x"]["pairs_any"] == {"hits": 0, "of": 1}
    assert len(whole["outcomes"]) == 9


def _task(folder, source="pass\n", seed=0):
    script = folder / "x_y.py"
    script.write_text(source)
    return Task(PROGRAM._replace(path=script), True, seed)


def test_outcomes_are_known_again(tmp_path):
    task = _task(tmp_path)
    made = outcome(task.program, [finding("x")], nan_step=2, wall=3.0)
    Journal(tmp_path / "new" / "j", "as today").add(made)
    known = Journal(tmp_path / "new" / "j", "as today")
    assert known.find(task) == made
    assert known.find(task._replace(seed=1)) is None
    assert known.find(task._replace(is_faulty=False)) is None
    assert known.find(task._replace(rules=ORIGINAL)) is None


def test_outcomes_of_another_program_data_or_traindbg_are_not(tmp_path):
    task = _task(tmp_path)
    Journal(tmp_path / "j", "as today").add(outcome(task.program))
    assert Journal(tmp_path / "j", "as tomorrow").find(task) is None
    assert Journal(tmp_path / "j", "as today").find(_task(tmp_path, "print()\n")) is None
    task = _task(tmp_path)
    assert Journal(tmp_path / "j", "as today").find(task) is not None
    (tmp_path / "data.py").write_text("")
    assert Journal(tmp_path / "j", "as today").find(task) is None


def test_a_training_that_failed_runs_again(tmp_path):
    task = _task(tmp_path)
    Journal(tmp_path / "j", "").add(outcome(task.program, error="ended by SIGALRM"))
    assert Journal(tmp_path / "j", "").find(task) is None


def test_a_line_that_was_cut_off_costs_only_itself(tmp_path):
    file = tmp_path / "j"
    tasks = [_task(tmp_path, seed=seed) for seed in range(3)]
    for task in tasks[:2]:
        Journal(file, "").add(outcome(task.program, seed=task.seed))
    os.truncate(file, file.stat().st_size - 9)
    Journal(file, "").add(outcome(tasks[2].program, seed=2))
    assert [bool(Journal(file, "").find(task)) for task in tasks] == [True, False, True]


def test_what_the_journal_knows_is_not_run(tmp_path, monkeypatch):
    task = _task(tmp_path)
    journal = Journal(tmp_path / "j", "")
    journal.add(outcome(task.program, [finding("x")]))
    monkeypatch.setattr(recording, "start", None)
    known = recording.run_all([task], 1, 60, journal=Journal(tmp_path / "j", ""))
    assert [o.kinds for o in known] == [["x"]]


def test_directories_of_both_judgements_differ(tmp_path):
    task = Task(PROGRAM, True, 3)
    assert recording.directory_of(task, tmp_path).name == "faults-x_y-faulty-3"
    other = recording.directory_of(task._replace(rules=ORIGINAL), tmp_path)
    assert other.name == "faults-x_y-faulty-3-original"


def test_times_are_told_in_minutes():
    assert [recording.clock(s) for s in (7.4, 59.6, 754.2)] == ["7 s", "1 min 00 s", "12 min 34 s"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--write", "--only", "overfit_*"], "tells of the whole gallery"),
        (["--again", "x", "--resume", "y"], "neither --keep nor --resume"),
        (["--keep", "x", "--resume", "y"], "not with --resume"),
        (["--only", "no_such"], "no program is called no_such"),
        (["--again", "no_such", "--seeds", "9"], "no_such lacks"),
        (["--check", "no_such.md"], "no_such.md: No such file"),
        (["--write", "no_such.md", "--only", "overfit_*"], "no_such.md: No such file"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_runs(
    tmp_path, monkeypatch, capsys, arguments, why
):
    import diagnosis

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(MEASURE), *arguments])
    monkeypatch.setattr(diagnosis, "run_all", None)
    assert diagnosis.main() == 2
    assert why in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_command_in_the_section_names_no_files():
    import diagnosis

    options = diagnosis.parser_of_options().parse_args(
        ["--beside", "--seeds", "0", "1", "--write", "/a/R.md", "--json", "/b", "--only", "x_*"]
    )
    assert diagnosis.command_of(options) == (
        "diagnosis.py --only 'x_*' --seeds 0 1 --beside --write"
    )


def test_both_judgements_of_a_training_follow_each_other():
    import diagnosis

    options = diagnosis.parser_of_options().parse_args(["--beside", "--seeds", "0"])
    tasks = diagnosis.tasks_of([PROGRAM, ODD], options)
    assert [(t.program.name, t.form, t.rules) for t in tasks] == [
        ("faults/x_y", "faulty", "default"),
        ("faults/x_y", "faulty", "original"),
        ("faults/x_y", "healthy", "default"),
        ("faults/x_y", "healthy", "original"),
        ("healthy/odd", "healthy", "default"),
        ("healthy/odd", "healthy", "original"),
    ]
