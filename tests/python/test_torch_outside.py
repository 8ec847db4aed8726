"""What is told of parameters of a loss that no watched model and no optimizer has, with twins."""

from __future__ import annotations

import copy
import gc
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.updates.outside import Outside
from traindbg.hooks.torch.updates.resume import checkpoints

STEPS = 12
TABLE = torch.tensor([[1.0, 2, 1], [0, 3, 0], [-1, -2, -1]])


class Criterion(nn.Module):
    """Scores of neighbouring classes, as a conditional random field has them."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.empty(3, 3).uniform_(-0.1, 0.1))
        if kind == "filter":
            self.scores.data = torch.tensor([[1.0, 2, 1], [0, 0, 0], [-1, -2, -1]])
        if kind == "constant":
            self.scores = nn.Parameter(torch.ones(3, 3))

    def forward(self, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(out + self.scores[y.roll(1)], y)


class Written(nn.Module):
    """The same, with scores of whose origin the text alone tells."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        if kind == "written noise":
            self.written = nn.Parameter(TABLE + 0.1 * torch.randn(3, 3))
        elif kind == "written generator":
            generator = torch.Generator().manual_seed(5)
            self.written = nn.Parameter(torch.randn(3, 3, generator=generator))
        else:
            self.written = nn.Parameter(0.1 * torch.randn(3, 3) / 3**0.5)

    def forward(self, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(out + self.written[y.roll(1)], y)


class Features(nn.Module):
    """Compares outputs by what a network makes of them."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.mse_loss(self.net(out), self.net(F.one_hot(y, 3).float()))


def criterion_of(kind: str, model: nn.Sequential) -> nn.Module:
    if kind == "target":
        copied = Features(copy.deepcopy(model[2]))
        model[0] = nn.Linear(12, 16)
        return copied
    if kind.startswith("written"):
        written = Written(kind)
        return copy.deepcopy(written) if kind == "written copy" else written
    if not kind.startswith("features"):
        return Criterion(kind)
    net = nn.Sequential(nn.Linear(3, 128), nn.Tanh(), nn.Linear(128, 8))
    if kind == "features_large":
        deep = [nn.Linear(8, 8) for _ in range(48)]
        net = nn.Sequential(nn.Linear(3, 8), *deep, nn.Linear(8, 8))
    if kind == "features_loaded":
        net.load_state_dict({k: 1.0 * v for k, v in net.state_dict().items()})
    if kind == "features_given":
        for parameter in net.parameters():
            parameter.data = parameter.data**3  # as no initialiser draws them
    return Features(net)


def step_by_step(kind: str, model: nn.Sequential, steps: int) -> None:
    crf = criterion_of(kind, model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    other = torch.optim.SGD(crf.parameters(), lr=0.1) if kind == "other optimizer" else None
    for step in range(steps):
        generator = torch.Generator().manual_seed(step)
        x = torch.randn(16, 12, generator=generator)
        y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
        if kind == "made anew":
            crf = Criterion(kind)
        out = model(x)
        if kind == "target":
            loss = F.cross_entropy(out, y) + crf.net(model[:2](x)).square().mean()
        else:
            loss = crf(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if other is not None and step % 5 == 4:
            other.step()
        if kind == "by hand":
            crf.scores.data.sub_(crf.scores.grad, alpha=0.1)
    kept = weakref.ref(next(crf.parameters()))
    del crf, other, loss, out
    optimizer.zero_grad()
    gc.collect()
    assert kept() is None


def train(run_dir, **kinds: int) -> dict[str, list[float]]:
    """A model is trained by each kind for so many steps."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 3))
    with td.watch(model, run_dir=run_dir, supervise=False):
        for kind, steps in kinds.items():
            step_by_step(kind, model, steps)
    run = td.Run(run_dir)
    return {
        name.removeprefix("loop/"): [float(value) for value in run.scalars(name).values]
        for name in run.names()
        if name.startswith("loop/outside")
    }


@pytest.fixture(autouse=True)
def _listened_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "from_the_start", True)


def test_a_criterion_has_parameters_that_nobody_trains(run_dir):
    told = train(run_dir, criterion=STEPS)
    assert set(told.pop("outside_optimizer_fresh")) == {1.0}
    assert [set(values) for values in told.values()] == [{1.0}]


def test_random_numbers_of_which_a_parameter_is_made_are_known_from_the_text(run_dir):
    told = train(run_dir, written=STEPS)
    assert set(told["outside_optimizer_fresh"]) == {1.0}


@pytest.mark.parametrize("kind", ["written noise", "written generator", "written copy"])
def test_what_is_not_plainly_drawn_in_the_text_may_be_meant(kind, run_dir):
    told = train(run_dir, **{kind: STEPS})
    assert set(told["outside_optimizer_fresh"]) == {0.0}


def test_of_a_large_network_it_is_said_how_much_was_not_looked_at(run_dir):
    told = train(run_dir, features_large=STEPS)
    assert [set(told[name]) for name in told if name.startswith("outside_optimizer/")] == [{64.0}]
    assert set(told["outside_optimizer_more"]) == {36.0}


def test_many_are_read_at_once(monkeypatch):
    monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
    model = nn.Linear(8, 8)
    leaves = [nn.Parameter(torch.randn(8, 8)) for _ in range(60)]
    outside = Outside()
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) as profile:
        outside.graph_seen(leaves, model.parameters())
    operations = {operation.key: operation.count for operation in profile.key_averages()}
    assert operations["aten::cat"] == 2  # of the leaves, and of what they may be copies of
    assert len(list(outside._changed())) == 0
    with torch.no_grad():
        leaves[3].data[0, 0] = 7.0
        leaves[4].add_(1.0)
    assert set(outside._changed()) == {id(leaves[3]), id(leaves[4])}


def test_another_training_has_a_loss_of_its_own(run_dir):
    told = train(run_dir, **{"other optimizer": 30, "criterion": 90})
    assert set(told["outside_optimizer_fresh"]) == {1.0}


@pytest.mark.parametrize("kind", ["filter", "constant", "features_loaded", "features_given"])
def test_what_may_be_meant_to_stay_is_not_as_it_was_drawn(kind, run_dir):
    told = train(run_dir, **{kind: STEPS})
    assert set(told["outside_optimizer_fresh"]) == {0.0}


def test_a_network_in_the_loss_is_as_it_was_drawn(run_dir):
    told = train(run_dir, features=STEPS)
    assert set(told["outside_optimizer_fresh"]) == {1.0}


@pytest.mark.parametrize("kind", ["other optimizer", "by hand", "made anew", "target"])
def test_what_is_trained_or_a_target_is_not_told(kind, run_dir):
    assert not any(any(values) for values in train(run_dir, **{kind: STEPS}).values())


@pytest.mark.parametrize("made", ["before", "after", "held"])
def test_a_loss_of_a_copy_of_the_model_is_told(made, run_dir):
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 3))
    copied = copy.deepcopy(model)
    optimizer = torch.optim.SGD((copied if made == "after" else model).parameters(), lr=0.1)
    other = torch.optim.SGD(copied.parameters(), lr=0.1) if made == "held" else None
    watched = copied if made == "after" else model
    with td.watch(watched, optimizer, run_dir=run_dir, supervise=False):
        for step in range(STEPS):
            generator = torch.Generator().manual_seed(step)
            x = torch.randn(16, 12, generator=generator)
            loss = F.cross_entropy(copied(x), (x[:, 0] > 0).long())
            copied.zero_grad()
            loss.backward()
            optimizer.step()
    del other
    run = td.Run(run_dir)
    told = "loop/loss_is_of_a_copy" in run.names()
    assert told == (made == "before")
    if told:
        assert run.scalars("loop/loss_is_of_a_copy").values.tolist() == [4.0] * 3
