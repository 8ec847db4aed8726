"""The gallery of faults and the measure that runs it (benchmarks/python/diagnosis.py)."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys

import pytest
from made_outcomes import MEASURE
from measure import faults_page, results
from measure.programs import constants_of, gallery, packages_missing

GALLERY = gallery()
FAULTS = [program for program in GALLERY if program.kind]
HEALTHY = [program for program in GALLERY if not program.kind]


def _mistakes(program):
    """What is wrong with how a program tells of itself."""
    words = re.compile(r"[a-z][a-z0-9_]*\Z")
    doc, _ = constants_of(program.path)
    source = program.path.read_text()
    yield "no first sentence", program.title.endswith(".") and len(program.title) < 200
    yield "does not read its options", "arguments(__doc__)" in source
    yield "knows of its debugger", "traindbg" not in source
    if program.kind:
        names = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
        yield "no healthy twin", "healthy" in names
        yield "kind is no word", all(words.match(kind) for kind in (program.kind, *program.accept))
        yield "kind is accepted twice", program.kind not in program.accept
        yield "name without the kind", program.path.stem.startswith(program.kind + "_")
        yield "no place", program.place and all(isinstance(p, str) for p in program.place)
        yield "the docstring names no place", "place" in doc
        yield "silent in the docstring only", program.silent or "(silent)" not in doc


def test_each_program_says_what_it_is():
    mistakes = [(p.name, what) for p in GALLERY for what, right in _mistakes(p) if not right]
    assert mistakes == []


def test_most_kinds_have_two_programs_of_each():
    kinds = {program.kind for program in FAULTS}
    alone = [kind for kind in kinds if sum(p.kind == kind for p in FAULTS) < 2]
    assert len(kinds) >= 50
    assert len(alone) <= 4
    assert len(HEALTHY) >= 30


def test_constants_are_read_without_running(tmp_path):
    script = tmp_path / "x.py"
    script.write_text('"""One.\n\nTwo."""\nKIND = "a_b"\nimport no_such_module\nraise SystemExit\n')
    assert constants_of(script) == ("One.\n\nTwo.", {"KIND": "a_b"})


def test_programs_whose_packages_are_missing_are_left_out(tmp_path):
    head = '"""One."""\nimport data, os\nfrom torch import nn\n'
    header = 'KIND = "a"\nACCEPT = ()\nPLACE = ()\nSILENT = False\nEXACT = False\nEARLY = False\n'
    (tmp_path / "faults").mkdir()
    (tmp_path / "faults" / "data.py").write_text("")
    for name, more in (("a_one", ""), ("a_two", "def f():\n    import no_such_package.part\n")):
        (tmp_path / "faults" / f"{name}.py").write_text(head + header + more)
    one, two = gallery(tmp_path)
    assert packages_missing(one) == set()
    assert packages_missing(two) == {"no_such_package"}
    run = _run(MEASURE, "--gallery", str(tmp_path), "--only", "a_two")
    assert run.returncode == 2
    assert (
        "1 programs left out, such as faults/a_two: not installed are no_such_package" in run.stderr
    )


def test_the_page_has_the_table_of_all_programs():
    page = faults_page.PAGE.path.read_text()
    missing = [p.name for p in GALLERY if f"[{p.path.stem}](" not in page]
    assert missing == [], "write it with benchmarks/python/diagnosis.py --write-docs"


def _run(script, *arguments):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, str(script), *arguments], capture_output=True, text=True, env=environment
    )


def test_the_results_have_the_marks_to_write_between():
    results.part_of(results.RESULTS).check()


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def x(:\n", "line 1: invalid syntax"),
        ("KIND = 'a' + b()\n", "KIND is computed"),
        ("KIND = 'a'\n", "ACCEPT is missing"),
        ("\xff", "can't decode"),
    ],
)
def test_a_program_that_cannot_be_read_is_named(tmp_path, source, why):
    script = tmp_path / "faults" / "x_y.py"
    script.parent.mkdir()
    script.write_bytes(source.encode("latin-1"))
    done = _run(MEASURE, "--gallery", str(tmp_path), "--list")
    assert done.returncode == 2
    assert f"{script}: " in done.stderr
    assert why in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["loss_shape_broadcast_houses", "nan_input_missing_values"])
def test_twins_run_as_scripts(name):
    program = next(p for p in FAULTS if p.path.stem == name)
    faulty = _run(program.path, "--seed", "1")
    healthy = _run(program.path, "--healthy", "--seed", "1")
    assert (faulty.returncode, healthy.returncode) == (0, 0), faulty.stderr + healthy.stderr
    assert faulty.stdout != healthy.stdout
    losses = [float(re.search(r"loss (\S+)", r.stdout)[1].rstrip(",")) for r in (faulty, healthy)]
    assert not losses[0] < 3 * losses[1], "the fault does harm"


def test_a_known_pair_comes_out_right_beside_the_original(tmp_path):
    file, page, kept = tmp_path / "outcomes.json", tmp_path / "R.md", tmp_path / "kept.jsonl"
    page.write_text("before\n<!-- gallery begins: diagnosis.py --write --><!-- gallery ends -->\n")
    done = _run(
        MEASURE,
        *("--only", "gradients_not_cleared_digits", "--only", "mlp_unscaled_pixels"),
        *("--seeds", "0", "--json", str(file), "--beside", "--write", str(page)),
        *("--resume", str(kept)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    outcomes = json.loads(file.read_text())["outcomes"]
    assert [o["rules"] for o in outcomes] == ["default", "original"] * 3
    faulty, twin, healthy = outcomes[::2]
    assert [faulty["is_faulty"], twin["is_faulty"], healthy["is_faulty"]] == [True, False, False]
    assert faulty["kinds"][0] == "gradients_not_cleared"
    assert faulty["is_right"]
    assert faulty["is_place_right"]
    assert faulty["right_step"] < 10
    assert twin["kinds"] == []
    assert healthy["kinds"] == []
    rules = {f["rule"] for o in outcomes[1::2] for f in o["findings"]}
    assert rules
    assert all(rule[0].isupper() for rule in rules), "the original's rules alone"
    assert re.search(r"\| gradients_not_cleared +\| 1 +\| 1/1 ", done.stdout)
    assert re.search(r"\| gradients_not_cleared +\| 1 +\| 1/1 ", page.read_text())
    assert len(kept.read_text().splitlines()) == 6
