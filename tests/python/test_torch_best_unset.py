"""Best values, for whose sake weights are kept, that are never set to better ones."""

from __future__ import annotations

import ast
import pathlib
from typing import TYPE_CHECKING

import pytest
import torch

import traindbg as td
from traindbg.hooks.torch.text.best_unset import compared
from traindbg.hooks.torch.text.rounds_text import Text

if TYPE_CHECKING:
    from collections.abc import Callable

FUNCTION = """
def save_if_better(model, loss, best):
    if loss < best:
        best = loss
        kept.update(model.state_dict())
    return best

best = float("inf")
for epoch in range(20):
    loss = evaluate()
    save_if_better(model, loss, best)
"""
LOOP = """
def train(model):
    best, waited = 1e9, 0
    for epoch in range(20):
        loss = evaluate()
        if loss < best:
            kept.update(model.state_dict())
"""


def said(program: str, **variables: object) -> tuple[str, bool] | None:
    """The value that is compared where weights are taken, and whether lower ones are better."""
    text = Text(ast.parse(program), "train.py", variables)
    lines = [n for n, line in enumerate(program.splitlines(), 1) if "state_dict()" in line]
    assert len(lines) == 1
    functions = [each for each in ast.walk(text.tree) if isinstance(each, ast.FunctionDef)]
    inside = [f for f in functions if f.lineno <= lines[0] <= (f.end_lineno or 0)]
    found = compared(text, inside[-1] if inside else text.tree, lines[0])
    return None if found is None else (found[0].value, found[0].is_lower)


@pytest.mark.parametrize(
    ("program", "before", "after", "expected"),
    [
        (FUNCTION, "", "", ("loss", True)),
        (FUNCTION, "loss < best", "best > loss", ("loss", True)),
        (FUNCTION, "loss < best", "loss >= best", ("loss", False)),
        (FUNCTION, "loss < best", "loss < best - 1e-4 and loss > 0", ("loss", True)),
        (FUNCTION, "model, loss, best)\n", "best=best, loss=loss, model=model)\n", ("loss", True)),
        (FUNCTION, "    save_if", "    best = save_if", None),
        (FUNCTION, "    save_if", "    if loss < best: best = loss\n    save_if", None),
        (FUNCTION, "        best = loss", "        globals()['x'] = 1", ("loss", True)),
        (FUNCTION, "best = float", "if 1: best = float", ("loss", True)),
        (FUNCTION, "loss, best)\n", "loss, 0.3)\n", None),
        (FUNCTION, "float('inf')", "1.0", ("loss", True)),
        (FUNCTION, "for epoch", "check = save_if_better\nfor epoch", None),
        (FUNCTION, "loss < best", "good(loss, best)", None),
        (FUNCTION, "best = loss", "best.fill_(loss)", None),
        (LOOP, "", "", ("loss", True)),
        (LOOP, "kept.update", "best[:] = loss; kept.update", None),
        (LOOP, "kept.update", "best = loss; kept.update", None),
        (LOOP, "        loss = ", "        nonlocal best\n        loss = ", None),
        (LOOP, "    for epoch", "    for fold in folds:\n     best = 1\n     for epoch", None),
        (LOOP, "if loss < best", "while loss < best", None),
        (LOOP, "def train(model):", "def train(model, best):", None),
        # All that are better than a limit are kept.
        (LOOP, "kept.update(model", "kept.append(model", None),
        (LOOP, "kept.update(model.state_dict())", "kept[epoch] = model.state_dict()", None),
        (
            LOOP,
            "kept.update(model.state_dict())",
            "kept['best'] = model.state_dict()",
            ("loss", True),
        ),
        (LOOP, "kept.update(", "save(f'{out}/{epoch}.pt', ", None),
        (LOOP, "kept.update(", "save(out + '/' + str(epoch), ", None),
        (LOOP, "kept.update(", "save('%d.pt' % epoch, ", None),
        (LOOP, "kept.update(", "save('{}.pt'.format(epoch), ", None),
        (LOOP, "kept.update(", "path = f'{epoch}.pt'\n            save(path, ", None),
        (LOOP, "kept.update(", "print(f'{epoch}')\n            save('best.pt', ", ("loss", True)),
        (LOOP, "kept.update(", "save(f'{out}/best.pt', ", ("loss", True)),
        (FUNCTION, "best = loss\n        kept.update(", "save(f'{loss:.3f}.pt', ", None),
        (FUNCTION, "kept.update(", "save(f'{model}.pt', ", ("loss", True)),
    ],
)
def test_what_the_text_says(program, before, after, expected):
    assert not before or before in program or "float" in before
    program = program.replace('float("inf")', "float('inf')")
    assert said(program.replace(before, after, 1) if before else program) == expected


def test_a_limit_is_no_best_value():
    program = LOOP.replace("best", "limit")
    assert said(program) is None
    assert said(program.replace("1e9", "math.inf")) == ("loss", True)


def test_all_names_of_a_module_are_those_that_it_has():
    program = "from {} import *\n" + FUNCTION
    assert said(program.format("math"), best=1.0) == ("loss", True)
    assert said(program.format("not_there"), best=1.0) is None


def test_branches_that_are_never_taken_do_not_count():
    program = "sound = arguments()\n" + FUNCTION.replace(
        "    save_if_better(model, loss, best)",
        "    if sound:\n        best = save_if_better(model, loss, best)\n"
        "    else:\n        save_if_better(model, loss, best)",
    )
    assert said(program, sound=False) == ("loss", True)
    assert said(program, sound=True) is None


KEPT: list[object] = []


def _keep(model: torch.nn.Module, loss: float, best: float) -> None:
    if loss < best:
        best = loss
        KEPT[:] = [model.state_dict()]


def _loses_it(model: torch.nn.Module, losses: list[float]) -> None:
    best = float("inf")
    for loss in losses:
        _step(model)
        _keep(model, loss, best)


def _keep_and_return(model: torch.nn.Module, loss: float, best: float) -> float:
    if loss < best:
        best = loss
        KEPT[:] = [model.state_dict()]
    return best


def _sets_it(model: torch.nn.Module, losses: list[float]) -> None:
    best = float("inf")
    for loss in losses:
        _step(model)
        best = _keep_and_return(model, loss, best)


def _step(model: torch.nn.Module) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss = model(torch.randn(16, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@pytest.mark.parametrize(
    ("run", "losses", "expected"),
    [
        (_loses_it, [0.9, 0.5, 0.7, 0.6, 0.8], [5, 3]),
        (_loses_it, [0.9, 0.8, 0.7, 0.6, 0.5], []),  # each is the best one
        (_loses_it, [0.5, 0.9], []),
        (_loses_it, [1, 2, 3, 4, 5], []),
        (_sets_it, [0.9, 0.5, 0.7, 0.6, 0.8], []),
    ],
)
def test_it_is_told_where_weights_were_kept_for_a_worse_value(
    run: Callable[[torch.nn.Module, list[float]], None],
    losses: list[float],
    expected: list[int],
    tmp_path: pathlib.Path,
) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    rules = ["best_weights_not_kept"]
    with td.watch(model, run_dir=tmp_path / "run", supervise=False, rules=rules):
        run(model, losses)
    recorded = td.Run(tmp_path / "run")
    told = sorted(name for name in recorded.names() if name.startswith("loop/best_never_set"))
    assert [float(recorded.tensor(name).values("value")[-1]) for name in told] == expected
