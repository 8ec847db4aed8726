"""Whether a line of a program is one that a comparison chooses, in a loop."""

from __future__ import annotations

import ast
import textwrap

import pytest

pytest.importorskip("torch")

from traindbg.hooks.torch.text.chosen import around, is_chosen
from traindbg.hooks.torch.text.rounds_text import Text

_LOOP, _CHOICE = 1, 2


def _around(source: str) -> int:
    source = textwrap.dedent(source)
    tree = ast.parse(source)
    number = next(i for i, line in enumerate(source.split("\n"), 1) if "state_dict" in line)
    (scope,) = tree.body
    return around(Text(tree, "train.py", {}), scope, number)


@pytest.mark.parametrize(
    "test", ["loss < best", "is_better(loss)", "early.improved", "better", "not (loss >= low)"]
)
def test_a_comparison_in_a_loop_chooses(test: str):
    assert (
        _around(
            f"""\
            def train(model):
                for epoch in range(20):
                    better = loss < low
                    if {test}:
                        kept = model.state_dict()
            """
        )
        == _LOOP | _CHOICE
    )


@pytest.mark.parametrize("test", ["epoch == 3", "verbose", "epoch in times"])
def test_other_questions_choose_nothing(test: str):
    assert (
        _around(
            f"""\
            def train(model):
                for epoch in range(20):
                    if {test}:
                        kept = model.state_dict()
            """
        )
        == _LOOP
    )


def test_what_is_compared_before_a_loop_is_not_compared_in_it():
    assert (
        _around(
            """\
            def train(model):
                if loss < best:
                    for task in tasks:
                        kept = model.state_dict()
            """
        )
        == _LOOP
    )


def _take(loss: float, low: float) -> bool:
    if loss < low:
        return is_chosen()
    return False


def _take_always() -> bool:
    return is_chosen()


def _run(losses: list[float]) -> list[tuple[bool, bool]]:
    found = []
    for loss in losses:
        found.append((_take(loss, 1.0), _take_always()))
    return found


def test_the_running_code_is_asked_for_and_those_who_call_it():
    assert _run([0.5, 0.4]) == [(True, False), (True, False)]
    assert not _take(0.5, 1.0)  # in no loop
