"""The gallery of faults and the measure that runs it (benchmarks/python/diagnosis.py)."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MEASURE = ROOT / "benchmarks" / "python" / "diagnosis.py"


def _load():
    spec = importlib.util.spec_from_file_location("diagnosis", MEASURE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["diagnosis"] = module
    spec.loader.exec_module(module)
    return module


diagnosis = _load()
GALLERY = diagnosis.gallery()
FAULTS = [program for program in GALLERY if program.kind]
HEALTHY = [program for program in GALLERY if not program.kind]


def _mistakes(program):
    """What is wrong with how a program tells of itself."""
    words = re.compile(r"[a-z][a-z0-9_]*\Z")
    doc, _ = diagnosis.constants_of(program.path)
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
    assert diagnosis.constants_of(script) == ("One.\n\nTwo.", {"KIND": "a_b"})


def test_the_page_has_the_table_of_all_programs():
    page = diagnosis.DOCS.read_text()
    missing = [p.name for p in GALLERY if f"[{p.path.stem}](" not in page]
    assert missing == [], "write it with benchmarks/python/diagnosis.py --write-docs"


def _run(script, *arguments):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, str(script), *arguments], capture_output=True, text=True, env=environment
    )


@pytest.mark.parametrize("name", ["loss_shape_broadcast_houses", "nan_input_missing_values"])
def test_twins_run_as_scripts(name):
    program = next(p for p in FAULTS if p.path.stem == name)
    faulty = _run(program.path, "--seed", "1")
    healthy = _run(program.path, "--healthy", "--seed", "1")
    assert (faulty.returncode, healthy.returncode) == (0, 0), faulty.stderr + healthy.stderr
    assert faulty.stdout != healthy.stdout
    losses = [float(re.search(r"loss (\S+)", r.stdout)[1].rstrip(",")) for r in (faulty, healthy)]
    assert not losses[0] < 3 * losses[1], "the fault does harm"


def test_a_known_pair_comes_out_right(tmp_path):
    file = tmp_path / "outcomes.json"
    done = _run(
        MEASURE,
        *("--only", "gradients_not_cleared_digits", "--only", "mlp_unscaled_pixels"),
        *("--seeds", "0", "--json", str(file)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    faulty, twin, healthy = json.loads(file.read_text())
    assert [faulty["is_faulty"], twin["is_faulty"], healthy["is_faulty"]] == [True, False, False]
    assert faulty["kinds"][0] == "gradients_not_cleared"
    assert faulty["is_right"]
    assert faulty["is_place_right"]
    assert faulty["right_step"] < 10
    assert twin["kinds"] == []
    assert healthy["kinds"] == []
    assert re.search(r"\| gradients_not_cleared +\| 1 +\| 1/1 ", done.stdout)


def _outcome(program, is_faulty, findings, causes=()):
    return diagnosis.Outcome(
        diagnosis.Task(program, is_faulty, 0), "", "", 1.0, list(findings), list(causes), {}
    )


def _finding(rule, *, severity="error", step=5, layer="", tensor="", kind=""):
    return {
        "rule": rule,
        "kind": kind,
        "severity": severity,
        "step": step,
        "layer": layer,
        "tensor": tensor,
    }


PROGRAM = diagnosis.Program(
    "faults/x_y", Path("x_y.py"), "X.", "x", accept=("z",), place=("fc1",), exact=True, early=True
)


def test_kinds_are_those_of_causes_first_each_once():
    outcome = _outcome(
        PROGRAM,
        True,
        [_finding("a"), _finding("note", severity="info"), _finding("b", kind="z")],
        [{"name": "z", "rules": ["b"]}],
    )
    assert outcome.kinds == ["z", "a"]
    assert outcome.is_right


def test_a_pair_needs_a_right_kind_and_a_quiet_twin():
    right = _outcome(PROGRAM, True, [_finding("x", layer="fc1", step=7)])
    wrong = _outcome(PROGRAM, True, [_finding("a", layer="fc1")])
    quiet = _outcome(PROGRAM, False, [_finding("x", severity="info")])
    loud = _outcome(PROGRAM, False, [_finding("a", severity="warning")])
    assert str(diagnosis.score([right, quiet]).pairs) == "1/1"
    assert str(diagnosis.score([right, loud]).pairs) == "0/1"
    assert str(diagnosis.score([wrong, quiet]).pairs) == "0/1"
    score = diagnosis.score([wrong, loud])
    assert (str(score.detected), str(score.quiet), str(score.errors)) == ("1/1", "0/1", "0/1")
    assert diagnosis.score([right, quiet]).steps == 7
    assert diagnosis.score([wrong, quiet]).steps is None


def test_a_place_is_that_of_the_right_finding():
    elsewhere = _finding("a", layer="fc1")
    here = _finding("x", layer="fc2", step=9)
    assert not _outcome(PROGRAM, True, [elsewhere, here]).is_place_right
    assert _outcome(PROGRAM, True, [elsewhere]).is_place_right
    vague = PROGRAM._replace(place=("", "loss*"))
    assert not _outcome(vague, True, [_finding("a", tensor="loss/mse_loss")]).is_place_right
    assert _outcome(vague, True, [_finding("x", tensor="loss/mse_loss")]).is_place_right
    in_the_loop = PROGRAM._replace(place=("loop",))
    assert _outcome(in_the_loop, True, [elsewhere, here]).is_place_right
    assert not _outcome(in_the_loop, True, [elsewhere]).is_place_right
