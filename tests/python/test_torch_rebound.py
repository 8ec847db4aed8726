"""Models that are read from a file, and that only a function's own name gets."""

from __future__ import annotations

import ast
import pathlib
import textwrap

import pytest

torch = pytest.importorskip("torch")

import traindbg as td
from traindbg.hooks.torch.text.rebound import is_lost


def _says(text: str, name: str = "model") -> bool:
    """Whether the call of `load` in a function is lost by the name."""
    text = textwrap.dedent(text)
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    number = next(i for i, line in enumerate(text.split("\n"), 1) if "load(" in line)
    return is_lost(function, number, name)


def test_a_parameter_that_gets_it_and_is_not_used_loses_it():
    assert _says(
        """\
        def restore(self, model):
            model = torch.load(self.path)
            model.eval()
        """
    )
    assert _says(
        """\
        def restore(path, model, other):
            best = torch.load(
                path, weights_only=False
            ).to("cpu")
            print(best)
            model = best
        """
    )
    assert _says(
        """\
        def restore(path, model, is_careful):
            best = torch.load(path)
            if is_careful:
                model.load_state_dict(best.state_dict())
            else:
                model = best
        """
    )


@pytest.mark.parametrize(
    "rest",
    [
        "return model",
        "x = model.eval()",
        "model(x)",
        "test(model)",
        "self.model = model",
        "model.fit()",
        "later = lambda: model",
        "global model",
    ],
)
def test_what_uses_the_name_keeps_it(rest: str):
    assert not _says(
        f"""\
        def restore(self, model):
            model = torch.load(self.path)
            {rest}
        """
    )


@pytest.mark.parametrize(
    "body",
    [
        "model = torch.load(path); return model",
        "best = torch.load(path); model = best; return best",
        "best = torch.load(path); kept.append(best); model = best",
        "model = register(torch.load(path))",
    ],
)
def test_what_is_read_may_go_elsewhere_in_the_same_line(body: str):
    assert not _says(f"def restore(path, model):\n    {body}\n")


def test_in_a_loop_it_may_be_used_in_the_next_round():
    assert not _says(
        """\
        def restore(self, model):
            for x in self.batches:
                model(x)
                model = torch.load(self.path)
        """
    )


def test_what_is_assigned_otherwise_is_not_known_to_be_lost():
    assert not _says(
        """\
        def restore(self, model):
            best = torch.load(self.path)
            model.load_state_dict(best.state_dict())
        """
    )
    assert not _says(
        """\
        def restore(self, model):
            self.model = torch.load(self.path)
        """
    )
    assert not _says(
        """\
        def restore(self, model):
            model, epoch = torch.load(self.path)
        """
    )


def _model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))


def _watch(model: torch.nn.Module, folder: pathlib.Path):
    return td.watch(model, run_dir=folder / "run", supervise=False, rules=["best_weights_not_kept"])


def _told(folder: pathlib.Path) -> list[str]:
    names = td.Run(folder / "run").names()
    return [name for name in names if name.startswith("loop/read_model_lost")]


def _train(model: torch.nn.Module, path: pathlib.Path) -> None:
    x = torch.randn(64, 4)
    y = x.sum(1, keepdim=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(20):
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 10:
            torch.save(model, path)


def _loses(model: torch.nn.Module, path: pathlib.Path) -> None:
    model = torch.load(path, weights_only=False)
    model.eval()


def _gives(model: torch.nn.Module, path: pathlib.Path, is_given: bool = True) -> None:
    best = torch.load(path, weights_only=False)
    if is_given:
        model.load_state_dict(best.state_dict())
    else:
        model = best
    model.eval()


def _goes_on_with(model: torch.nn.Module, path: pathlib.Path) -> torch.nn.Module:
    model = torch.load(path, weights_only=False)
    model.eval()
    return model


@pytest.mark.parametrize(
    ("restore", "is_told"), [(_loses, True), (_gives, False), (_goes_on_with, False)]
)
def test_it_is_told_of_a_model_whose_weights_the_trained_one_does_not_get(
    restore, is_told: bool, tmp_path: pathlib.Path
):
    model = _model()
    with _watch(model, tmp_path):
        _train(model, tmp_path / "best.pt")
        restore(model, tmp_path / "best.pt")
    told = _told(tmp_path)
    assert bool(told) == is_told
    assert not is_told or told[0].startswith("loop/read_model_lost/test_torch_rebound.py:")


def test_a_training_that_goes_on_is_not_told_of(tmp_path: pathlib.Path):
    model = _model()
    with _watch(model, tmp_path):
        _train(model, tmp_path / "best.pt")
        _loses(model, tmp_path / "best.pt")
        _train(model, tmp_path / "best.pt")
    assert not _told(tmp_path)


def test_a_model_that_was_saved_as_it_is_is_not_told_of(tmp_path: pathlib.Path):
    model = _model()
    with _watch(model, tmp_path):
        _train(model, tmp_path / "best.pt")
        torch.save(model, tmp_path / "last.pt")
        _loses(model, tmp_path / "last.pt")
    assert not _told(tmp_path)
