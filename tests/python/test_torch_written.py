"""Evaluations whose loss is written out: which numbers are heard, and as what."""

from __future__ import annotations

import ast
import os
import pickle
import subprocess
import sys
import textwrap

import pytest
import torch

import traindbg as td
from traindbg.hooks.torch.text.rounds_text import Text
from traindbg.hooks.torch.text.written_text import meaning_of, read_by, trained_by

TRAINING = """
def own(given, wanted, power=1.0):
    return (given - wanted).abs().mean() ** power

def train():
    out = model(xb).squeeze(1)
    loss = own(out, yb[rows])
    loss.backward()

def evaluate():
{body}
"""


def read(text: str) -> tuple[Text, set[ast.AST], list[ast.expr]]:
    """The text, the calls of `model` in it, and what is read in it."""
    tree = ast.parse(text)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    models: set[ast.AST] = {each for each in calls if getattr(each.func, "id", "") == "model"}
    values = [value for value in map(read_by, calls) if value is not None]
    return Text(tree, "train.py", {}), models, values


def meaning(body: str, training: str = TRAINING) -> tuple[str, str] | None:
    """Of the last number that is read in `body`."""
    given = training.format(body=textwrap.indent(textwrap.dedent(body), "    "))
    text, models, values = read(given)
    value = max(values, key=lambda each: (each.lineno, each.end_col_offset))
    found = meaning_of(value, text, models)
    assert found is None or found.model in models
    return None if found is None else (found.of, found.how)


HEARD = {
    "return (model(x) - y).pow(2).mean().item()": ("squares", "mean"),
    "return ((y - model(x)) ** 2).mean().item()": ("squares", "mean"),
    "return float(torch.square(model(x).squeeze(1) - y[part]).mean())": ("squares", "mean"),
    "return torch.mean((model(x) - batch.y.float()) ** 2).item()": ("squares", "mean"),
    "return (model(x) - y).square().mean(1).mean().item()": ("squares", "mean"),
    "return (model(x) - x).square().mean().item()": ("squares", "mean"),  # an autoencoder
    "return (model(batch['x']) - batch['y']).square().mean().item()": ("squares", "mean"),
    "return (model(batch.x[part]) - batch.y[part]).square().mean().item()": ("squares", "mean"),
    "return (model(x) - y).pow(2).mean().sqrt().item()": ("squares", "root"),
    "return torch.sqrt(((model(x) - y) ** 2).mean()).item()": ("squares", "root"),
    "return (model(x) - y).abs().mean().item()": ("absolutes", "mean"),
    "return abs(model(x) - y).sum().item()": ("absolutes", "sum"),
    "return [(model(a) - b).abs().mean().item() for a, b in loader]": ("absolutes", "mean"),
    """
    given = model(x)
    error = given - y
    print(error)
    return (error * error).sum().item()
    """: ("squares", "sum"),
    """
    total = 0.0
    for a, b in loader:
        with context:
            out = model(a)
        if good:
            total += ((out - b) ** 2).sum().item()
    return total
    """: None,  # `out` is made in a block of its own
    """
    total = 0.0
    for a, b in loader:
        out = model(a)
        total += ((out - b) ** 2).sum().item()
    return total
    """: ("squares", "sum"),
    "return own(model(x).squeeze(1), y[:100]).item()": ("loss", "mean"),
    """
    out = model(x).squeeze(1)
    loss = own(out, y)
    return loss.detach().item()
    """: ("loss", "mean"),
}


@pytest.mark.parametrize("body", HEARD)
def test_what_is_read_is_known_by_how_it_is_computed(body):
    assert meaning(body) == HEARD[body]


@pytest.mark.parametrize(
    "body",
    [
        "return (model(x).argmax(1) == y).float().mean().item()",
        "return (x - y).pow(2).mean().item()",  # of no model
        "return (model(x) - model(z)).pow(2).mean().item()",  # of two
        "return ((model(x) - y) * scale).pow(2).mean().item()",  # in another scale
        "return (model(x) * scale - y).pow(2).mean().item()",
        "return (predict(x) - y).pow(2).mean().item()",  # which calls the model, and does more
        "return (weights * (model(x) - y) ** 2).mean().item()",
        "return (model(x)[:, 0] - y).pow(2).mean().item()",  # of a part
        "return (model(x) - y)[mask].pow(2).mean().item()",
        "return (model(x) - x[:, :1]).pow(2).mean().item()",  # of a column of the input
        "return (model(x).to(torch.long) - y).abs().mean().item()",
        "return (model(x) - scaled(y)).pow(2).mean().item()",
        "return ((model(x) - y) ** 2).sum(1).mean().item()",  # of other numbers
        "return ((model(x) - y) ** 2).mean(1).sum().item()",
        "return ((model(x) - y) ** 2).max().item()",
        "return (model(x) - y).mean().item()",
        "return (model(x) - y).pow(3).mean().item()",
        "return y.std().item()",
        "return own(x, y).item()",  # of no model
        "return own(model(x), y).item()",  # of another shape than in training
        "return own(model(x).squeeze(1) * 3, y).item()",
        "return own(model(x).squeeze(1), y, power=2.0).item()",
        "return other(model(x).squeeze(1), y).item()",
        "return self.own(model(x).squeeze(1), y).item()",
        "return (own(model(x).squeeze(1), y) + 0.01 * decay()).item()",
        """
        own = other
        return own(model(x).squeeze(1), y).item()
        """,
        """
        first = model(x)
        out = model(x)
        return (out - first).pow(2).mean().item()
        """,
        """
        total = 0.0
        for a, b in loader:
            total += ((model(a) - b) ** 2).mean()
        return total.item()
        """,
        """
        given = model(x)
        if new:
            given = kept
        return (given - y).pow(2).mean().item()
        """,
        """
        given = model(x)
        with context:
            given = given * scale
        return (given - y).pow(2).mean().item()
        """,
        """
        given = model(x)
        if (given := scaled(given)) is not None:
            return (given - y).pow(2).mean().item()
        """,
        """
        given = model(x)
        for given, y in pairs:
            found = (given - y).pow(2).mean().item()
        return found
        """,
        """
        given = model(x)
        for _ in range(3):
            found = (given - y).pow(2).mean().item()
            given = given + found
        return found
        """,
        """
        given = model(x)
        given.mul_(scale)
        return (given - y).pow(2).mean().item()
        """,
        """
        given = model(x)
        scaled = given.mul_(scale)
        return (given - y).pow(2).mean().item()
        """,
        """
        error = (model(x) - y).pow(2).mean()
        torch.distributed.all_reduce(error)
        return error.item()
        """,
        """
        error = (model(x) - y).abs()
        error[0] = 0
        return error.mean().item()
        """,
    ],
)
def test_what_is_no_plain_error_is_not_heard(body):
    assert meaning(body) is None


@pytest.mark.parametrize(
    "before",
    [
        "before = model(xb)",
        "before = model.eval()(xb)",
        "first = said_by(model)\nbefore, _ = first",
        "out = model(xb)\nkept.append(out)\nbefore = kept[-1] if kept else zeros",
    ],
)
def test_what_a_model_said_before_is_no_label(before):
    text = TRAINING.replace("def evaluate", f"{before}\n\ndef evaluate")
    assert meaning("return (model(x) - before).abs().mean().item()", text) is None


def test_a_loss_of_one_of_several_backward_passes_is_not_told():
    two = TRAINING.replace("    loss.backward()", "    loss.backward()\n    other.backward()")
    assert meaning("return own(model(x).squeeze(1), y).item()", two) is None


def test_methods_are_those_of_one_class():
    text = """
class Trainer:
    def loss(self, given, wanted): ...
    def train(self):
        self.loss(model(x), y).backward()
class {judge}:
    def evaluate(self):
        return self.loss(model(x_val), y_val).item()
"""
    for judge, expected in (("Judge", None), ("Trainer", None)):
        found, models, (value,) = read(text.format(judge=judge))
        assert meaning_of(value, found, models) is expected
    text = text.replace("class {judge}:\n", "")
    found, models, (value,) = read(text)
    assert meaning_of(value, found, models)[:2] == ("loss", "mean")


INSIDE = """
class Trainer:
    def loss(self, batch, factor=1):
        noisy = batch.x + batch.noise
        return (model(noisy) - batch.noise).square().mean()

    def fit(self, loader, check):
        for batch in loader:
            loss = self.loss(batch)
            loss.backward()
        return self.loss(check).item()
"""


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", "", ("loss", "mean")),
        ("return self.loss(check)", "return self.loss(check, factor=2)", None),
        ("return self.loss(check)", "return self.other(check)", None),
        ("    def fit", "    @cached\n    def loss(self): ...\n\n    def fit", None),
        ("        noisy", "        model(batch.x)\n        noisy", None),
        ("        noisy", "        if factor > 1: batch = tilted(batch)\n        noisy", None),
        (
            "        noisy",
            "        if self.net.training: batch = tilted(batch)\n        noisy",
            None,
        ),
        (
            "        noisy",
            "        if self.is_wide: batch = tilted(batch)\n        noisy",
            ("loss", "mean"),
        ),
    ],
)
def test_the_model_may_be_called_in_the_function_that_computes_the_loss(before, after, expected):
    text, models, (value,) = read(INSIDE.replace(before, after) if before else INSIDE)
    found = meaning_of(value, text, models)
    assert (None if found is None else found[:2]) == expected


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("((model(x) - y) ** 2).mean()", ("squares", "mean")),
        ("(model(x).squeeze(1) - y).abs().mean()", ("absolutes", "mean")),
        ("((squashed(model(x)) - squashed(y)) ** 2).mean()", None),
        ("((model(x) - y) ** 2).sum()", None),
        ("((model(x) - y) ** 2).mean() + penalty", None),
    ],
)
def test_what_a_training_lowers_is_read_from_its_text(loss, expected):
    text, models, _ = read(f"loss = {loss}\nloss.backward()")
    found = trained_by(text, models)
    assert (None if found is None else found[:2]) == expected


PROGRAM = """
import sys
import torch
import traindbg as td
from torch import nn

torch.manual_seed(0)
x = torch.randn(96, 4)
y = x[:, :1] - 0.5 * x[:, 1:2] + 0.1 * torch.randn(96, 1)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
other = nn.Linear(4, 1)
far = 100 * y
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
said = []


def tilted(given, wanted):
    error = wanted - given
    return torch.maximum(0.3 * error, -0.7 * error).mean()


def loss_of(given, wanted):
    return tilted(model(given), wanted)


def evaluate():
    model.eval()
    with torch.no_grad():
{evaluation}


td.watch(model, run_dir=sys.argv[1])
for epoch in range({epochs}):
    model.train()
    for rows in torch.arange(64).split(16):
        loss = {loss}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    said.append(evaluate())
print(*said)
"""


def recorded(
    tmp_path, loss: str, evaluation: str, epochs: int = 4
) -> tuple[list[float], dict[str, list[float]]]:
    """What the program itself said of its evaluations, and what was recorded of them."""
    path, run_dir = tmp_path / "train.py", tmp_path / "run"
    body = textwrap.indent(textwrap.dedent(evaluation), " " * 8)
    path.write_text(PROGRAM.format(loss=loss, evaluation=body, epochs=epochs))
    done = subprocess.run(
        [sys.executable, str(path), str(run_dir)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    run = td.Run(run_dir)
    found = {name: list(run.tensor(name).values("value", mode="eval")) for name in run.names()}
    said = [float(number) for number in done.stdout.split()]
    return said, {name: values for name, values in found.items() if name[:4] == "loss" and values}


MSE = "nn.functional.mse_loss(model(x[rows]), y[rows])"
ONCE = "return (model(x[64:]) - y[64:]).pow(2).mean().item()"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="calls have no places in older Pythons")
class TestPrograms:
    def test_squared_errors_beside_the_function_of_pytorch(self, tmp_path):
        said, found = recorded(tmp_path, MSE, ONCE)
        assert found == {"loss/mse_loss": pytest.approx(said)}

    def test_sums_are_divided_by_how_many_numbers_there_were(self, tmp_path):
        evaluation = """
            total = 0.0
            for part in torch.arange(64, 96).split(8):
                total += ((model(x[part]) - y[part]) ** 2).sum().item()
            return total / 32"""
        said, found = recorded(tmp_path, MSE, evaluation)
        batches = found["loss/mse_loss"]
        assert len(batches) == 16
        each = [sum(batches[at : at + 4]) / 4 for at in range(0, 16, 4)]
        assert each == pytest.approx(said)

    def test_a_root_is_squared(self, tmp_path):
        evaluation = ONCE.replace(".mean()", ".mean().sqrt()")
        said, found = recorded(tmp_path, MSE, evaluation)
        assert found == {"loss/mse_loss": pytest.approx([number**2 for number in said])}

    def test_many_evaluations_are_all_heard(self, tmp_path):
        said, found = recorded(tmp_path, MSE, ONCE, epochs=60)
        assert found == {"loss/mse_loss": pytest.approx(said)}

    def test_numbers_in_another_unit_are_no_losses(self, tmp_path):
        evaluation = "return (100 * model(x[64:]) - y[64:]).pow(2).mean().item()"
        assert recorded(tmp_path, MSE, evaluation)[1] == {}
        evaluation = ONCE.replace("y[64:]", "far[64:]")
        assert recorded(tmp_path, MSE, evaluation)[1] == {}

    def test_a_number_of_another_model(self, tmp_path):
        evaluation = """
            model(x[:5])
            return (other(x[64:]) - y[64:]).pow(2).mean().item()"""
        assert recorded(tmp_path, MSE, evaluation)[1] == {}

    def test_a_loss_of_something_else_than_the_output(self, tmp_path):
        loss = "nn.functional.mse_loss(model(x[rows]).sigmoid(), y[rows].sigmoid())"
        assert recorded(tmp_path, loss, ONCE)[1] == {}

    def test_a_function_of_the_program(self, tmp_path):
        loss = "tilted(model(x[rows]), y[rows])"
        said, found = recorded(tmp_path, loss, "return tilted(model(x[64:]), y[64:]).item()")
        assert found == {"loss": pytest.approx(said)}

    def test_a_function_of_the_program_that_calls_the_model(self, tmp_path):
        said, found = recorded(
            tmp_path, "loss_of(x[rows], y[rows])", "return loss_of(x[64:], y[64:]).item()"
        )
        assert found == {"loss": pytest.approx(said)}

    def test_squared_errors_that_are_written_out_in_both(self, tmp_path):
        said, found = recorded(tmp_path, "((model(x[rows]) - y[rows]) ** 2).mean()", ONCE)
        assert found == {"loss": pytest.approx(said)}

    def test_errors_of_another_kind_than_the_loss_are_not_recorded(self, tmp_path):
        said, found = recorded(tmp_path, MSE, ONCE.replace("pow(2)", "abs()"))
        assert len(said) == 4
        assert found == {}

    def test_errors_of_a_model_that_is_called_again_and_again(self, tmp_path):
        evaluation = """
            given = x[64:]
            for _ in range(3):
                given = torch.cat([model(given), given[:, 1:]], 1)
            return (model(given) - y[64:]).pow(2).mean().item()"""
        assert recorded(tmp_path, MSE, evaluation)[1] == {}

    def test_what_loss_functions_tell_is_not_told_again(self, tmp_path):
        evaluation = """
            given = model(x[64:])
            kept = nn.functional.mse_loss(given, y[64:])
            return (given - y[64:]).pow(2).mean().item()"""
        said, found = recorded(tmp_path, MSE, evaluation)
        assert found == {"loss/mse_loss": pytest.approx(said)}


class Table(torch.Tensor):
    """A tensor that knows its functions by what they are."""

    known = torch.Tensor.item, torch.Tensor.__float__

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function in cls.known:
            return 42.0
        return super().__torch_function__(function, types, args, kwargs or {})


def test_tensors_are_read_as_before_when_the_recording_is_over(run_dir):
    before = {name: torch.Tensor.__dict__.get(name) for name in ("item", "__float__")}
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, run_dir=run_dir):
        for _ in range(3):
            model.train()
            model(torch.ones(4, 3)).pow(2).mean().backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                assert (model(torch.ones(4, 3)) - 1).pow(2).mean().item() >= 0
        assert "item" in vars(torch.Tensor)  # it is listened to
        assert pickle.loads(pickle.dumps(torch.Tensor.item))(torch.tensor(2.5)) == 2.5
        assert torch.ones(()).as_subclass(Table).item() == 42.0
        assert float(torch.ones(()).as_subclass(Table)) == 42.0
        with pytest.raises(TypeError, match="no arguments"):
            torch.ones(()).item(3)
        assert torch.tensor(2.5).item() == float(torch.tensor(2.5)) == 2.5
        with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
            torch.ones(2).item()
    assert {name: torch.Tensor.__dict__.get(name) for name in before} == before
