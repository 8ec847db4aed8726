"""What optimizers train where no module holds it, by unchanged scripts under `traindbg run`."""

from __future__ import annotations

from pathlib import Path

import pytest
from forked import Server

import traindbg

# Weights in a dict, which no module holds; `turns`: two optimizers take them in turns.
FUNCTIONAL = """
import sys
import torch
from torch.nn import functional as F

how = sys.argv[1]
torch.manual_seed(0)
inputs = torch.randn(1024, 10)
labels = (inputs @ torch.randn(10, 4) + 0.3 * torch.randn(1024, 4)).argmax(1)
weights = {
    "hidden": (torch.randn(10, 32) / 3).requires_grad_(),
    "offset": torch.zeros(32, requires_grad=True),
    "out": (torch.randn(32, 4) / 6).requires_grad_(),
}
rate = 1e20 if how == "rate" else 0.1
groups = [["hidden", "offset"], ["out"]] if how == "turns" else [list(weights)]
optimizers = [torch.optim.SGD([weights[name] for name in group], lr=rate) for group in groups]


def scores(x):
    return torch.relu(x @ weights["hidden"] + weights["offset"]) @ weights["out"]


steps = 0
for epoch in range(8):
    for part in torch.randperm(768).split(32):
        optimizer = optimizers[steps % len(optimizers)]
        steps += 1
        loss = F.cross_entropy(scores(inputs[part]), labels[part])
        if how != "not cleared":
            for each in optimizers:
                each.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        F.cross_entropy(scores(inputs[768:]), labels[768:])
print(float(loss), sum(float(p.double().sum()) for p in weights.values()))
"""


# A line is fitted first, by few steps; then a network is trained.
THEN_A_MODEL = """
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.linspace(0, 1, 50)
line = torch.zeros(2, requires_grad=True)
fit = torch.optim.Adam([line], lr=0.1)
for step in range(6):
    fit.zero_grad()
    F.mse_loss(line[0] * x + line[1], 3 * x + 1).backward()
    fit.step()
inputs = torch.randn(512, 10)
labels = inputs[:, :4].argmax(1)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(60):
    rows = torch.randint(0, 512, (32,))
    optimizer.zero_grad()
    F.cross_entropy(model(inputs[rows]), labels[rows]).backward()
    optimizer.step()
"""


def test_a_model_takes_the_place_of_weights_without_a_module(
    tmp_path: Path, forked: Server
) -> None:
    path = tmp_path / "train.py"
    path.write_text(THEN_A_MODEL)
    outcome = forked.run(tmp_path / "runs", path, TRAINDBG_STRICT="1")
    assert outcome.code == 0, outcome.stderr
    run = traindbg.Run(outcome.run)
    names = {f"{name}/Sequential.{layer}" for name, layer in (("input", 0), ("output", 2))}
    assert {"weight/line", "weight/Sequential.0.weight", *names} <= set(run.names())
    assert outcome.steps() == 6 + 60


@pytest.mark.parametrize(
    ("how", "fired"),
    [
        ("healthy", set()),
        ("turns", set()),
        ("rate", {"non_finite"}),
        ("not cleared", {"gradients_not_cleared"}),
    ],
)
def test_weights_that_no_module_holds_are_those_of_the_optimizers(
    tmp_path: Path, forked: Server, how: str, fired: set[str]
) -> None:
    path = tmp_path / "train.py"
    path.write_text(FUNCTIONAL)
    outcome = forked.run(tmp_path / "runs", path, how, TRAINDBG_STRICT="1")
    assert outcome.code == 0, outcome.stderr
    assert outcome.stdout == forked.plain(path, how).stdout
    assert fired <= outcome.rules_fired("error")
    if not fired:
        assert [f for f in outcome.verdict["findings"] if f["severity"] != "info"] == []
        run = traindbg.Run(outcome.run)
        names = set(run.names())
        for name in ("hidden", "offset", "out"):
            assert {f"weight/{name}", f"gradient/{name}", f"update_ratio/{name}"} <= names
        assert len(run.scalars("loss/cross_entropy", "eval").values) == 8
    # In turns, one of the two drives, as where a module holds the weights.
    assert outcome.steps() == (97 if how == "turns" else 192)


# Blobs whose picture is fitted; some are split and others removed, as in splatting.
SPLATS = """
import weakref
import torch

torch.manual_seed(0)
at = torch.linspace(0, 1, 64)
target = torch.sin(9 * at)
blobs = {"place": torch.rand(12), "width": torch.full((12,), -2.0), "height": torch.zeros(12)}
blobs = {name: value.requires_grad_() for name, value in blobs.items()}
optimizer = torch.optim.Adam([{"params": [blobs[name]], "name": name} for name in blobs], lr=1e-2)
old = []


def split():
    many = blobs["place"].grad.abs().topk(3).indices
    for group in optimizer.param_groups:
        before = group["params"][0]
        state = optimizer.state.pop(before)
        after = torch.cat([before.data, before.data[many]]).requires_grad_()
        for key in ("exp_avg", "exp_avg_sq"):
            state[key] = torch.cat([state[key], torch.zeros(3)])
        optimizer.state[after] = state
        group["params"][0] = blobs[group["name"]] = after
        old.append(weakref.ref(before))


for step in range(120):
    away = (at[:, None] - blobs["place"]) / blobs["width"].exp()
    loss = ((torch.exp(-away.square()) * blobs["height"]).sum(1) - target).square().mean()
    optimizer.zero_grad()
    loss.backward()
    if step in (37, 74):
        split()
    optimizer.step()
    del away
print(float(loss.detach()), sum(known() is not None for known in old))
"""


def test_tensors_that_take_the_places_of_others_are_followed(
    tmp_path: Path, forked: Server
) -> None:
    path = tmp_path / "train.py"
    path.write_text(SPLATS)
    outcome = forked.run(tmp_path / "runs", path, TRAINDBG_STRICT="1")
    assert outcome.code == 0, outcome.stderr
    assert outcome.stdout == forked.plain(path).stdout
    assert outcome.stdout.split()[1] == "0"  # none is kept alive
    assert [f for f in outcome.verdict["findings"] if f["severity"] != "info"] == []
    run = traindbg.Run(outcome.run)
    shapes = {
        f"weight/place{other}": run.tensor(f"weight/place{other}").shape
        for other in ("", "#2", "#3")
    }
    assert shapes == {"weight/place": (12,), "weight/place#2": (15,), "weight/place#3": (18,)}
    assert outcome.steps() == 120


# `raised`: the loss of a network that stays as it is.
IMAGE = """
import sys
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
network = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
image, labels = torch.rand(8, 64).requires_grad_(), torch.arange(8)
sign = -1 if sys.argv[1] == "raised" else 1
optimizer = (torch.optim.LBFGS if sys.argv[1] == "closures" else torch.optim.Adam)([image], lr=0.1)


def closure():
    optimizer.zero_grad()
    loss = sign * F.cross_entropy(network(image), labels)
    loss.backward()
    return loss


for step in range(30):
    optimizer.step(closure)
print(float(closure().detach()))
"""


@pytest.mark.parametrize("how", ["lowered", "raised", "closures"])
def test_an_input_of_a_network_is_optimized(tmp_path: Path, forked: Server, how: str) -> None:
    path = tmp_path / "train.py"
    path.write_text(IMAGE)
    outcome = forked.run(tmp_path / "runs", path, how, TRAINDBG_STRICT="1")
    assert outcome.code == 0, outcome.stderr
    assert outcome.stdout == forked.plain(path, how).stdout
    assert [f for f in outcome.verdict["findings"] if f["severity"] != "info"] == []
    assert "weight/image" in traindbg.Run(outcome.run).names()
    assert outcome.steps() == 30


# The optimizer has copies of the weights, in single precision.
MASTERS = """
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
inputs = torch.randn(512, 10)
labels = inputs[:, :4].argmax(1)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4)).bfloat16()
masters = [p.detach().float().requires_grad_() for p in model.parameters()]
optimizer = torch.optim.SGD(masters, lr=0.1)
for step in range(100):
    rows = torch.randint(0, 512, (32,))
    model.zero_grad()
    F.cross_entropy(model(inputs[rows].bfloat16()).float(), labels[rows]).backward()
    for master, parameter in zip(masters, model.parameters()):
        master.grad = parameter.grad.float()
    optimizer.step()
    with torch.no_grad():
        for master, parameter in zip(masters, model.parameters()):
            parameter.copy_(master)
"""


def test_a_model_whose_optimizer_has_copies_is_found_by_its_changes(
    tmp_path: Path, forked: Server
) -> None:
    path = tmp_path / "train.py"
    path.write_text(MASTERS)
    outcome = forked.run(tmp_path / "runs", path, TRAINDBG_STRICT="1")
    assert outcome.code == 0, outcome.stderr
    assert [f for f in outcome.verdict["findings"] if f["severity"] != "info"] == []
    names = set(traindbg.Run(outcome.run).names())
    assert {"weight/0.weight", "gradient/2.weight", "output/2"} <= names
    assert outcome.steps() == 100
