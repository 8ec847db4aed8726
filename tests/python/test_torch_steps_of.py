"""Whether a program's text steps an optimizer, told by the name that it was given."""

from __future__ import annotations

import ast
import textwrap

import pytest

pytest.importorskip("torch")

from traindbg.hooks.torch.text.rounds_text import Text
from traindbg.hooks.torch.text.steps_of import may_step, name_made_in


def _text(source: str) -> Text:
    return Text(ast.parse(textwrap.dedent(source)), "train.py", {})


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("slow = Adam(parameters)", "slow"),
        ("self.slow = Adam(parameters)", "slow"),
        ("slow: Optimizer = Adam(parameters)", "slow"),
        ("slow = Adam(parameters) if trains else None", ""),
        ("slow, fast = Adam(parameters), Adam(others)", ""),
        ("slow = fast = Adam(parameters)", ""),
        ("both = [Adam(parameters), Adam(others)]", ""),
        ("return Adam(parameters)", ""),
        ("for _ in range(2): slow = Adam(parameters)", ""),
    ],
)
def test_the_name_is_that_of_a_plain_assignment(line: str, name: str):
    assert name_made_in(_text(f"def main(self):\n    {line}\n"), 2) == name


@pytest.mark.parametrize(
    "line",
    [
        "slow.zero_grad()",
        "print(slow.param_groups[0]['lr'])",
        "fast.step()",
        "epoch(model, slow)",
        "epoch(model, slow=slow)",
        "model.eval()",
        "getattr(options, 'rate')",
    ],
)
def test_what_steps_nothing(line: str):
    assert not may_step(
        _text(
            f"""\
            slow = Adam(parameters)
            {line}
            def epoch(model, slow):
                slow.zero_grad()
            """
        ),
        "slow",
    )


@pytest.mark.parametrize(
    "line",
    [
        "slow.step()",
        "if epoch > 10: slow.step()",
        "self.slow.step()",
        "step = slow.step",
        "both = [slow, fast]",
        "other = slow",
        "epoch(model, slow)",  # whose parameter is called otherwise
        "scaler.step(slow)",
        "return slow",
        "getattr(self, 'sl' + 'ow').step()",
        "getattr(self, 'slow').step()",
        "vars(self)[name].step()",
        "self.__dict__[name].step()",
        "(slow if late else fast).step()",
    ],
)
def test_what_may_step(line: str):
    assert may_step(
        _text(
            f"""\
            def main(self):
                slow = Adam(parameters)
                {line}
            def epoch(model, optimizer):
                optimizer.step()
            """
        ),
        "slow",
    )
