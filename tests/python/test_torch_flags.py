"""Branches that a flag decides are no part of what a text says."""

from __future__ import annotations

import argparse
import ast
import textwrap

import pytest

torch = pytest.importorskip("torch")

from traindbg.hooks.torch.text.flags import without_dead_branches
from traindbg.hooks.torch.text.rounds_text import read


def _left(source: str, **variables) -> str:
    tree = without_dead_branches(ast.parse(textwrap.dedent(source)), variables)
    compile(tree, "train.py", "exec")
    return ast.unparse(tree)


@pytest.mark.parametrize(
    ("test", "is_taken"),
    [
        ("healthy", False),
        ("not healthy", True),
        ("healthy or fast", True),
        ("healthy and unknown()", False),
        ("fast or unknown()", True),
        ("options.steps", False),
        ("options.anneals", True),
    ],
)
def test_a_branch_that_a_flag_decides_is_taken_or_gone(test, is_taken):
    source = f"""\
        options = parser.parse_args()
        healthy, seed = options.healthy, 3
        fast = True
        def epoch():
            if {test}:
                scheduler.step()
            return (1 if {test} else 2)
        """
    options = argparse.Namespace(steps=False, anneals=True)
    left = _left(source, options=options, healthy=False, fast=True)
    assert ("scheduler.step()" in left) == is_taken
    assert ("return 1" in left) == is_taken
    assert ("return 2" in left) == (not is_taken)
    assert "if" not in left


@pytest.mark.parametrize(
    "source",
    [
        "on = False\nif unknown: go()",
        "on = False\nif step > 10 and other: go()",
        "on = False\nif started:\n    on = True\nif on: go()",  # two values
        "for each in range(3):\n    on = each > 1\nif on: go()",
        "while (on := more()):\n    pass\nif on: go()",
        "on = False\ndef f(on):\n    if on: go()",  # another variable
        "on = False\ndef f():\n    global on\n    on = True\nif on: go()",
        "on = False\nglobals()['on'] = True\nif on: go()",
        "count = 0\nif count: go()",  # no flag
        "options = parse()\noptions.steps = True\nif options.steps: go()",
        "options = parse()\nsetattr(options, 'steps', True)\nif options.steps: go()",
        "options = parse()\nif stopper.stops: go()",  # as the object says by then
        "model = Net()\nif model.training: go()",
        "import on\nif on: go()",
    ],
)
def test_what_may_have_another_value_is_left_as_it_is(source):
    class Stopper:
        stops = False

    options = argparse.Namespace(steps=False)
    variables = {"on": False, "count": 0, "options": options, "stopper": Stopper()}
    variables["model"] = torch.nn.Linear(2, 2).eval()
    if "import" in source:
        variables["on"] = ast  # what it stands for is no flag
    assert "go()" in _left(source, **variables)


def test_nothing_is_known_without_variables():
    assert "go()" in _left("on = False\nif on: go()")


def test_a_text_of_many_branches_is_read_all_the_same(tmp_path):
    branches = "".join(f"elif kind == {i}: pass\n" for i in range(2_000))
    path = tmp_path / "long.py"
    path.write_text(f"on = False\nif on: pass\n{branches}")
    read(str(path), {"on": False}, ())
