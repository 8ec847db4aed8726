"""Faults that benchmarks/python/mutants.py puts into programs of the gallery."""

from __future__ import annotations

import ast

import pytest
from made_outcomes import MEASURE
from measure.mutations import OPERATORS, mutated
from measure.programs import GALLERY

assert MEASURE  # which is where `measure` is found
# Every fifth program: parsing all of them for each operator takes minutes.
SOURCES = [
    path.read_text(encoding="utf-8")
    for path in sorted((GALLERY / "faults").glob("*.py"))[::5]
    if path.stem != "data"
]
PROGRAM = '''"""A program."""
import torch
from data import arguments
from torch import nn
import torch.nn.functional as F

KIND = "overfit"
healthy, seed = arguments(__doc__)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for x, y in batches:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
'''


@pytest.mark.parametrize("name", OPERATORS)
def test_programs_with_a_fault_put_in_are_programs(name: str) -> None:
    texts = [text for source in SOURCES if (text := mutated(source, name)) is not None]
    assert len(texts) >= 10
    for text in texts:
        ast.parse(text)
        assert f"KIND = {name.partition('/')[0]!r}" in text


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("learning_rate_too_high/times_100", "lr=0.01 * 100.0)"),
        ("gradients_not_cleared/no_zero_grad", "    pass\n    loss = "),
        ("optimizer_never_steps/no_step", "loss.backward()\n    pass"),
        ("loss_sign_flipped/minus_loss", "(-loss).backward()"),
        ("no_nonlinearity/identities", "nn.Linear(4, 8), nn.Identity()"),
        ("target_not_normalized/times_1000_and_5000", "F.mse_loss(model(x), y * 1000 + 5000)"),
        ("parameters_not_in_optimizer/last_two_alone", "list(model.parameters())[-2:]"),
        ("bad_optimizer_settings/eps_1", "lr=0.01, eps=1.0)"),
        (
            "step_without_gradient/cleared_before_step",
            "optimizer.zero_grad()\n    optimizer.step()",
        ),
    ],
)
def test_what_an_operator_changes(name: str, line: str) -> None:
    text = mutated(PROGRAM, name)
    assert text is not None
    assert line in text
    assert "healthy = True" in text  # its own fault is out
    assert 'KIND = "overfit"' not in text


def test_a_program_without_what_an_operator_changes_is_left_out() -> None:
    assert mutated(PROGRAM, "redundant_softmax/before_cross_entropy") is None
    assert mutated(PROGRAM, "bad_optimizer_settings/momentum_09999") is None  # Adam has none
