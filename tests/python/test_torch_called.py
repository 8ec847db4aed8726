"""What a program calls the data that it evaluates."""

from __future__ import annotations

import ast
import sys

import pytest

torch = pytest.importorskip("torch")

import traindbg as td
from traindbg.hooks.torch.text.called import is_called_held_out, kind_of
from traindbg.hooks.torch.text.rounds_text import Scope, Text

RULES = ["train_val_overlap"]
HELD_OUT = "rows_held_out"
NEEDS_COLUMNS = pytest.mark.skipif(sys.version_info < (3, 11), reason="code has no columns")

HELD_OUT_NAMES = ["x_val", "valid_loader", "X_test", "valLoader", "xte", "VAL_X", "testset2"]
TRAINED_NAMES = ["x_train", "trainloader", "train_val", "X_tr", "all_test"]
OTHER_NAMES = ["loader", "values", "evaluated", "latest", "interval", "batch", ""]


@pytest.mark.parametrize(
    ("names", "expected"),
    [(HELD_OUT_NAMES, "held out"), (TRAINED_NAMES, "training"), (OTHER_NAMES, "")],
)
def test_a_name_says_what_data_is_for(names: list[str], expected: str) -> None:
    assert [kind_of(name) for name in names] == [expected] * len(names)


def is_held_out(value: str, program: str = "", *, is_loader: bool = True) -> bool:
    tree = ast.parse(program)
    text = Text(tree, "train.py", {})
    return is_called_held_out(ast.parse(value, mode="eval").body, Scope(text, tree), is_loader)


@pytest.mark.parametrize(
    ("value", "program", "expected"),
    [
        ("valid_loader", "", True),
        ("loaders['val']", "", True),
        ("self.val_loader", "", True),
        ("enumerate(tqdm(val_loader))", "", True),
        ("DataLoader(test_ds, batch_size=8)", "", True),
        ("loader", "loader = DataLoader(valid_df)", True),
        ("bar", "bar = tqdm(val_loader)", True),
        ("valid_loader", "train_set, valid_set = random_split(data, [8, 2])", True),
        ("val_x", "train_x, val_x = train_test_split(x)", True),
        # The training's, or of both; or nothing says what it is.
        ("loader", "", False),
        ("train_loader", "", False),
        ("chain(val_loader, train_loader)", "", False),
        ("val_loader", "val_loader = DataLoader(train_set)", False),
        ("x_val", "x_val = x_train[:100]", False),
        ("loaders[phase]", "", False),
        ("loader", "loader = make()\nloader = DataLoader(valid_df)", False),
        ("loader", "loader = other\nother = loader", False),
    ],
)
def test_a_name_is_followed_to_the_one_that_tells(value: str, program: str, expected: bool) -> None:
    assert is_held_out(value, program) is expected


@pytest.mark.parametrize(
    ("name", "expected"), [("val", False), ("valid", False), ("test", False), ("x_val", True)]
)
def test_a_tensor_may_be_a_value(name: str, expected: bool) -> None:
    assert is_held_out(name, is_loader=False) is expected
    assert is_held_out(name)


def score(model, x) -> None:
    model.eval()
    with torch.no_grad():
        model(x)
    model.train()


@torch.no_grad()
def score_of_batches(model, loader) -> None:
    model.eval()
    for (x,) in loader:
        model(x)
    model.train()


def train(run_dir, evaluate) -> list[float]:
    """Rows that are called held out, at the steps that tell of an evaluation."""
    x, y = torch.randn(64, 8), torch.randint(0, 3, (64,))
    model = torch.nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=RULES):
        for _ in range(3):
            for i in range(0, 64, 16):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(x[i : i + 16]), y[i : i + 16]).backward()
                optimizer.step()
            evaluate(model, x[24:])
    run = td.Run(run_dir)
    trained = run.scalars(f"loop/{HELD_OUT}_trained").values.tolist()
    assert trained == run.scalars(f"loop/{HELD_OUT}").values.tolist()
    return trained


def loader_of(x):
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), batch_size=20)


@NEEDS_COLUMNS
def test_a_tensor_is_called_by_who_gives_it_to_a_function(run_dir) -> None:
    def evaluate(model, part) -> None:
        x_val = part.clone()
        score(model, x_val)

    assert train(run_dir, evaluate) == [40, 40]


@NEEDS_COLUMNS
def test_a_loader_is_called_by_who_gives_it_to_a_function(run_dir) -> None:
    def evaluate(model, part) -> None:
        valid_loader = loader_of(part)
        score_of_batches(model, valid_loader)

    assert train(run_dir, evaluate) == [40, 40]


@NEEDS_COLUMNS
def test_only_the_part_that_is_called_so_counts(run_dir) -> None:
    def evaluate(model, part) -> None:
        train_loader, test_loader = loader_of(part[:20]), loader_of(part[20:])
        score_of_batches(model, train_loader)
        score_of_batches(model, test_loader)

    assert train(run_dir, evaluate) == [20, 20]


def test_what_has_no_such_name_is_not_held_out(run_dir) -> None:
    def evaluate(model, part) -> None:
        score(model, part)
        score_of_batches(model, loader_of(part))

    assert train(run_dir, evaluate) == [0, 0]
