"""Several modules that one optimizer trains: all of them are watched, under the script's names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from forked import Server
from trainings import Outcome, traindbg_json

import traindbg

if TYPE_CHECKING:
    from pathlib import Path

# A net that reads digits in three parts, one of which is in a list; `forgotten` evaluates its head
# as it is trained.
SCRIPT = """
import sys

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

forgotten = "forgotten" in sys.argv
measure = sys.argv[2] if len(sys.argv) > 2 else "loss"
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32)
x, y = (x - x.mean()) / x.std(), torch.tensor(digits.target)


class Trainer:
    def __init__(self):
        torch.manual_seed(0)
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 32), nn.ReLU())
        self.others = [nn.Linear(32, 32)]
        self.head = nn.Sequential(nn.Dropout(0.4), nn.BatchNorm1d(32), nn.Linear(32, 10))
        parts = [self.encoder, *self.others, self.head]
        weights = [p for part in parts for p in part.parameters()]
        self.optimizer = torch.optim.Adam(weights, lr=2e-3)

    def scores(self, rows):
        return self.head(torch.tanh(self.others[0](self.encoder(x[rows]))))

    def evaluate(self):
        self.encoder.eval()
        if not forgotten:
            self.head.eval()
        with torch.no_grad():
            if measure == "loss":
                value = F.cross_entropy(self.scores(slice(1500, None)), y[1500:])
            elif measure == "accuracy":
                value = (self.scores(slice(1500, None)).argmax(1) == y[1500:]).float().mean()
            elif measure == "again":  # the mean of several passes with dropout
                scores = sum(self.scores(slice(1500, None)) for _ in range(5))
                value = (scores.argmax(1) == y[1500:]).float().mean()
            elif measure == "rows":  # the same in one pass
                codes = torch.tanh(self.others[0](self.encoder(x[1500:])))
                scores = self.head(codes.repeat(5, 1)).view(5, -1, 10).sum(0)
                value = (scores.argmax(1) == y[1500:]).float().mean()
            else:  # the same, of the head alone
                codes = torch.tanh(self.others[0](self.encoder(x[1500:])))
                scores = sum(self.head(codes) for _ in range(5))
                value = (scores.argmax(1) == y[1500:]).float().mean()
        self.encoder.train()
        self.head.train()
        return value.item()


trainer = Trainer()
for step in range(240):
    rows = torch.randint(0, 1500, (64,))
    trainer.optimizer.zero_grad()
    loss = F.cross_entropy(trainer.scores(rows), y[rows])
    loss.backward()
    trainer.optimizer.step()
    if step % 40 == 39:
        print(repr(loss.item()), repr(trainer.evaluate()))
"""
COLLECTED = "weights,gradients,weight_updates,inputs,outputs,activations,buffers"
ALL = ("--collect", COLLECTED, "--every", "20")


def script_in(directory: Path) -> Path:
    path = directory / "train.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory, forked: Server) -> Outcome:
    directory = tmp_path_factory.mktemp("companions")
    outcome = forked.run(directory / "runs", script_in(directory), options=ALL)
    assert outcome.code == 0, outcome.stderr
    return outcome


def names_of(outcome: Outcome) -> set[str]:
    return set(traindbg.Run(outcome.run).names())


@pytest.mark.parametrize("role", ["weight", "gradient", "update_ratio"])
def test_parameters_of_all_parts_are_there(everything: Outcome, role: str) -> None:
    names = {name for name in names_of(everything) if name.startswith(f"{role}/")}
    weights = {"0.weight", "2.weight", "others.0.weight", "head.1.weight", "head.2.weight"}
    assert {f"{role}/{name}" for name in weights} <= names


def test_what_all_parts_compute_is_there(everything: Outcome) -> None:
    names = names_of(everything)
    outputs = {"output/0", "output/2", "output/others.0", "output/head.1", "output/head.2"}
    assert outputs <= names
    assert {"activation/1", "activation/3", "buffer/head.1.running_mean"} <= names


def test_the_data_alone_are_inputs(everything: Outcome) -> None:
    inputs = {name for name in names_of(everything) if name.startswith("input/")}
    assert inputs == {"input/0"}


def test_nothing_is_found_in_it_and_nothing_is_missed(everything: Outcome) -> None:
    assert everything.rules_fired() == set()
    assert "not captured" not in everything.stderr


def test_it_is_the_same_training(everything: Outcome, tmp_path: Path, forked: Server) -> None:
    assert forked.plain(script_in(tmp_path)).stdout == everything.stdout


@pytest.mark.parametrize(
    ("how", "measure", "is_told"),
    [
        ("forgotten", "loss", True),
        ("forgotten", "accuracy", True),
        ("set", "accuracy", False),
        ("forgotten", "again", False),
        ("forgotten", "rows", False),
        ("forgotten", "head", False),
    ],
)
def test_a_head_that_is_evaluated_as_it_is_trained_is_found(
    tmp_path: Path, forked: Server, how: str, measure: str, is_told: bool
) -> None:
    outcome = forked.run(tmp_path / "runs", script_in(tmp_path), how, measure)
    assert outcome.code == 0, outcome.stderr
    found = [
        each["layer"]
        for each in outcome.verdict["findings"]
        if each["rule"] == "train_mode_in_validation" and each["severity"] != "info"
    ]
    assert len(found) == is_told
    assert all(layer.startswith("head.") for layer in found)


# Where the parts lie is what a program may do in many ways.
WAYS = """
import sys

import torch
from torch import nn
from torch.nn import functional as F

way = sys.argv[1]
torch.manual_seed(0)
body = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh())
head = nn.Linear(32, 3)
other = nn.Linear(32, 1)
x = torch.randn(512, 8)
labels, values = x[:, :3].argmax(1), 100 * x[:, 3:4] + 500


class Weighed(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(1))

    def forward(self, given, target):
        return ((given - target) ** 2 * torch.exp(-self.scale) + self.scale).mean()


criterion = Weighed()
parts = {
    "head_first": [head, body],
    "two_losses": [body, head, other],
    "criterion": [body, other, criterion],
}.get(way, [body, head])


def made(parts):
    return torch.optim.Adam([{"params": part.parameters()} for part in parts], lr=1e-2)


def loss_of(rows):
    seen = body(x[rows])
    if way == "criterion":
        return criterion(other(seen), values[rows])
    loss = F.cross_entropy(head(seen), labels[rows])
    if way == "two_losses":
        loss = loss + F.mse_loss(other(seen), values[rows] / 500 - 1)
    return loss


def evaluate():
    with torch.no_grad():
        loss_of(slice(256, None))


optimizer = made(parts)
evaluate()
for step in range(60):
    optimizer.zero_grad()
    loss_of(torch.randint(0, 256, (32,))).backward()
    optimizer.step()
    if step % 20 == 19:
        evaluate()
if way == "second_stage":
    head = nn.Linear(32, 3)
    optimizer = made([body, head])
    for step in range(60):
        optimizer.zero_grad()
        loss_of(torch.randint(0, 256, (32,))).backward()
        optimizer.step()


def train(config):
    local = nn.Linear(8, 4)
    rest = nn.Linear(4, 3)
    variables = locals()
    own = torch.optim.SGD([*local.parameters(), *rest.parameters()], lr=0.1)
    own.zero_grad()
    F.cross_entropy(rest(local(x)), labels).backward()
    own.step()
    return sorted(variables)


if way == "locals":
    print(train({}))
"""


def trained(forked: Server, tmp_path: Path, way: str) -> traindbg.Run:
    path = tmp_path / "train.py"
    path.write_text(WAYS)
    outcome = forked.run(tmp_path / "runs", path, way, options=ALL)
    assert outcome.code == 0, outcome.stderr
    return traindbg.Run(outcome.run)


def test_layers_have_numbers_in_the_order_of_the_data(tmp_path: Path, forked: Server) -> None:
    run = trained(forked, tmp_path, "head_first")
    tensors = traindbg_json("show", run.path, "--tensors")["tensors"]
    layers = {tensor["name"]: tensor["layer"] for tensor in tensors}
    assert layers["weight/0.weight"] < layers["weight/2.weight"] < layers["weight/head.weight"]


def test_an_evaluation_of_two_losses_is_one(tmp_path: Path, forked: Server) -> None:
    run = trained(forked, tmp_path, "two_losses")
    steps, _ = run.scalars("loss/cross_entropy", "eval")
    assert len(steps) == 4
    assert list(run.scalars("loss/mse_loss", "eval")[0]) == list(steps)
    assert {"weight/head.weight", "weight/other.weight", "output/other"} <= set(run.names())


def test_targets_of_a_loss_with_weights_are_no_inputs(tmp_path: Path, forked: Server) -> None:
    names = trained(forked, tmp_path, "criterion").names()
    assert "weight/criterion.scale" in names
    assert [name for name in names if name.startswith("input/")] == ["input/0"]


def test_a_head_of_a_second_stage_is_watched_too(tmp_path: Path, forked: Server) -> None:
    run = trained(forked, tmp_path, "second_stage")
    heads = [name for name in run.names() if name.startswith("weight/head") or "Linear" in name]
    assert len({name.rpartition(".")[0] for name in heads if name.startswith("weight/")}) == 2


def test_variables_of_the_program_stay_what_they_are(tmp_path: Path, forked: Server) -> None:
    path = tmp_path / "train.py"
    path.write_text(WAYS)
    outcome = forked.run(tmp_path / "runs", path, "locals")
    assert outcome.stdout == forked.plain(path, "locals").stdout
