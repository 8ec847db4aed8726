"""The measure of benchmarks/python, imported from there, and outcomes made by hand for tests."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MEASURE = ROOT / "benchmarks" / "python" / "diagnosis.py"
sys.path.append(str(MEASURE.parent))

from measure.outcomes import DEFAULT, Outcome, Task
from measure.programs import Program

# A fault of kind x at the layer fc1, which may be called z as well.
PROGRAM = Program(
    "faults/x_y", Path("x_y.py"), "X.", "x", accept=("z",), place=("fc1",), exact=True, early=True
)
ODD = Program("healthy/odd", Path("odd.py"), "Odd.", odd="it looks wrong")


def outcome(program, findings=(), causes=(), *, faulty=True, seed=0, rules=DEFAULT, **others):
    """What became of a training: nothing was found, unless findings are given."""
    task = Task(program, faulty, seed, rules)
    made = Outcome(task, "", "", 1.0, list(findings), list(causes), {})
    return made._replace(**others)


def finding(rule, *, severity="error", step=5, layer="", tensor="", kind=""):
    return {
        "rule": rule,
        "kind": kind,
        "severity": severity,
        "step": step,
        "layer": layer,
        "tensor": tensor,
        "message": f"{rule} is there.",
    }


def quiet(program=PROGRAM, **others):
    """A healthy training of which nothing is said above info."""
    return outcome(program, [finding("note", severity="info")], faulty=False, **others)
