"""What is told of modules that an optimizer holds and never trains: real trainings, with twins."""

from __future__ import annotations

import copy
import functools
import gc
import importlib
import math
import types
import weakref
from collections import OrderedDict

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from trainings import fingerprint

import traindbg as td
from traindbg.hooks.torch.base.sources import FRAMEWORKS, sources
from traindbg.hooks.torch.recording import recording as recordings

STEPS = 56
FACTS = (
    "cut_parameters",
    "read_parameters",
    "cut_modules",
    "uncalled_modules",
    "unused_modules",
    "zeroed_modules",
    "detached_modules",
)


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(16, 12, generator=generator)
    return x, (x[:, 0] > 0).long() + (x[:, 1] > 0).long()


class Scale(nn.Module):
    """Two parameters, of which the second is used as `kind` says."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.first = nn.Parameter(torch.tensor(0.5))
        second = torch.tensor([0.5, 0.7])
        self.second = nn.Parameter(second[:1] if kind == "scale_of_shared_storage" else second)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kind, second = self.kind, self.second
        if kind == "scale_number":
            factor = math.exp(second[0].item())
        elif kind == "scale_detached":
            factor = second.detach().exp().mean()
        elif kind == "scale_changed":  # an average, say
            factor = second.detach().exp().mean()
            second.data.add_(0.01)
        elif kind == "scale_share":
            factor = 1 / (1 + math.exp(-second[1].item()))
        elif kind == "scale_tensor_of_number":
            factor = torch.tensor([second[1].item()])
        elif kind == "scale_clamp":
            return (x * self.first).clamp(max=second[1].item())
        elif kind == "scale_half":  # as a constant of the code may be
            factor = second[0].item()
        elif kind == "scale_logged":
            self.shown = second[1].exp().item()
            factor = 0.7
        elif kind == "scale_asserted":
            assert second[1].item() > 0
            factor = 0.7
        elif kind == "scale_checked":
            assert not bool(second.isnan().any())
            factor = 1.0
        elif kind == "scale_trained":
            factor = second.mean() * second[0].item()
        else:
            factor = 1.0
        return x * self.first * factor


class Branches(nn.Module):
    """A trunk, a branch beside it, and a head; `kind` says what becomes of the branch."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.steps = 0
        self.trunk = nn.Linear(12, 32)
        self.branch = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32))
        self.head = nn.Linear(32, 3)
        self.room: torch.Tensor | None = None
        if kind in ("average", "target"):
            self.branch = nn.Sequential(nn.Linear(12, 32))
        if kind == "target":
            self.branch[0].load_state_dict(self.trunk.state_dict())
        if kind.startswith("scale"):
            self.scale = Scale(kind)
        if kind == "dead":
            nn.init.constant_(self.branch[2].bias, -50.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kind, branch = self.kind, self.branch
        h = F.relu(self.trunk(x))
        self.steps += self.training
        if kind == "detach":
            h = h + branch(h).detach()
        elif kind == "data_in_place":
            room = torch.zeros_like(h)
            room[:, :16] = branch(h).data[:, :16]
            h = h + room
        elif kind == "argmax":
            h = h + F.one_hot(branch(h).argmax(1), 32)
        elif kind == "no_grad":
            with torch.no_grad():
                extra = F.relu(branch(h))
            h = torch.cat([h[:, :16], extra[:, :16]], 1)
        elif kind in ("average", "target"):
            with torch.no_grad():
                extra = branch(x)
            h = h + extra
        elif kind == "straight_through":
            extra = branch(h)
            h = h + extra + (extra.round() - extra).detach()
        elif kind == "stopped_once":
            extra = branch(h)
            h = h + extra + (h - extra.detach()).relu()
        elif kind == "times_0":
            h = h + 0 * F.relu(branch(h))
        elif kind == "masked":
            extra = branch(h)
            h = h + extra.masked_fill(torch.ones_like(extra, dtype=torch.bool), 0.0)
        elif kind == "dead":
            h = h + F.relu(branch(h))
        elif kind.startswith("scale"):
            h = h + self.scale(branch(h))
        elif kind == "returned":
            return self.head(h), branch(h)
        elif kind == "shape":
            h = h + torch.ones_like(branch(h))
        elif kind == "pooler":
            branch(h)
        elif self.calls_branch():
            h = h + branch(h)
        return self.head(h)

    def calls_branch(self) -> bool:
        when = {
            "in_evaluation": not self.training,
            "from_later_on": self.steps > 30,
            "at_some_steps": self.steps % 4 == 0,
        }
        return when.get(self.kind, False)


def train(kind: str, watch=None, steps: int = STEPS) -> tuple[nn.Module, list[float]]:
    torch.manual_seed(3)
    model = Branches(kind)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if watch is not None:
        watch(model)
    losses = []
    for step in range(steps):
        x, y = batch(step)
        optimizer.zero_grad()
        out = model(x)
        if kind == "returned":  # an auxiliary loss that has yet to count
            loss = F.cross_entropy(out[0], y) + 0.0 * out[1].square().mean()
        else:
            loss = F.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        with torch.no_grad():
            if kind == "average":
                for mean, weight in zip(
                    model.branch.parameters(), model.trunk.parameters(), strict=True
                ):
                    mean.data.lerp_(weight, 0.01)
            if kind == "target" and step == 40:
                model.branch[0].load_state_dict(model.trunk.state_dict())
        if kind == "in_evaluation" and step == 14:
            model.eval()
            with torch.no_grad():
                model(x)
            model.train()
    return model, losses


def told(run_dir) -> dict[str, tuple[str, float]]:
    """Of each fact that tells of a module at last: where, and of how many."""
    run = td.Run(run_dir)
    found: dict[str, tuple[int, str, float]] = {}
    for name in run.names():
        fact, _, place = name.removeprefix("loop/").partition("/")
        if fact in FACTS:
            numbers = run.scalars(name)
            last = (int(numbers.steps[-1]), place, float(numbers.values[-1]))
            found[fact] = max(found.get(fact, last), last)
    return {fact: (place, number) for fact, (_, place, number) in found.items() if number > 0}


def facts_of(kind: str, run_dir) -> dict[str, tuple[str, float]]:
    train(kind, lambda model: td.watch(model, run_dir=run_dir, supervise=False))
    recordings.current.close()
    assert torch._C._len_torch_dispatch_stack() == 0
    return told(run_dir)


@pytest.mark.parametrize("kind", ["detach", "data_in_place", "argmax", "no_grad"])
def test_a_branch_is_cut_off_whose_values_are_used(kind, run_dir):
    assert facts_of(kind, run_dir) == {"cut_modules": ("branch", 2)}
    off = td.Run(run_dir).scalars("loop/cut_modules_without_gradients")
    assert bool(off.values.any()) == (kind == "no_grad")


@pytest.mark.parametrize(
    "kind",
    ["scale_number", "scale_share", "scale_tensor_of_number", "scale_clamp", "scale_detached"],
)
def test_a_parameter_is_cut_off_beside_another_one_that_is_trained(kind, run_dir):
    assert facts_of(kind, run_dir) == {"cut_parameters": ("scale.second", 1)}


@pytest.mark.parametrize("kind", ["scale_logged", "scale_asserted", "scale_half"])
def test_a_number_that_was_read_need_not_be_used(kind, run_dir):
    assert facts_of(kind, run_dir) == {"read_parameters": ("scale.second", 1)}


@pytest.mark.parametrize("kind", ["times_0", "masked"])
def test_a_branch_is_multiplied_by_zero(kind, run_dir):
    assert facts_of(kind, run_dir) == {"zeroed_modules": ("branch", 2)}


def test_a_module_is_never_called(run_dir):
    assert facts_of("forgotten", run_dir) == {"uncalled_modules": ("branch", 2)}


@pytest.mark.parametrize("kind", ["pooler", "shape"])
def test_an_output_that_nobody_uses_is_not_one_that_is_cut_off(kind, run_dir):
    assert facts_of(kind, run_dir) == {"unused_modules": ("branch", 2)}


@pytest.mark.parametrize(
    "kind",
    [
        *("average", "target", "straight_through", "stopped_once", "dead", "returned"),
        *("from_later_on", "at_some_steps"),
        *("scale_changed", "scale_checked", "scale_trained", "scale_unused"),
        "scale_of_shared_storage",
    ],
)
def test_what_looks_alike_is_not_told(kind, run_dir):
    assert facts_of(kind, run_dir) == {}
    names = td.Run(run_dir).names()
    assert not [name for name in names if name.startswith(("loop/cut", "loop/zeroed"))]


def test_what_an_evaluation_calls_is_not_forgotten(run_dir):
    assert facts_of("in_evaluation", run_dir) == {"unused_modules": ("branch", 2)}


@pytest.mark.parametrize(
    "kind", ["detach", "data_in_place", "times_0", "forgotten", "scale_number"]
)
def test_results_are_the_same_bits(kind, run_dir):
    alone = fingerprint(*train(kind))
    watched = train(kind, lambda model: td.watch(model, run_dir=run_dir, supervise=False))
    recordings.current.close()
    assert fingerprint(*watched) == alone


def test_nothing_is_kept_of_a_step_that_is_followed(run_dir):
    model = Branches("detach")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, run_dir=run_dir, supervise=False):
        for step in range(12):
            x, y = batch(step)
            optimizer.zero_grad()
            out = model(x)
            loss = F.cross_entropy(out, y)
            loss.backward()
            kept = [weakref.ref(each) for each in (x, out, loss)]
            optimizer.step()
            del x, y, out, loss
            gc.collect()
            assert [ref() for ref in kept] == [None] * 3, step
    copy.deepcopy(model)


def test_a_pass_that_raises_leaves_no_mode_behind(run_dir):
    model = Branches("detach")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, run_dir=run_dir, supervise=False):
        for step in range(8):
            x, y = batch(step)
            with pytest.raises(RuntimeError):
                model(x[:, :3])
            assert torch._C._len_torch_dispatch_stack() == 0
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


class Towers(nn.Module):
    """Called by its methods alone; `kind` says how the second tower's values are used."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(12, 8), nn.Linear(12, 8)
        self.out = nn.Linear(16, 3)

    def loss(self, kind: str, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        first = self.first(x)
        with torch.set_grad_enabled(kind == "trained"):
            second = self.second(x)
        if kind == "not used":
            second = torch.zeros_like(first)
        return F.cross_entropy(self.out(torch.cat([first, second], 1)), labels)


def train_towers(kind, run_dir=None, skip=False):
    torch.manual_seed(0)
    model = Towers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watcher = None if run_dir is None else td.watch(model, run_dir=run_dir, supervise=False)
    for step in range(30):
        x, labels = batch(step)
        loss = model.loss(kind, x, labels)
        assert torch._C._len_torch_dispatch_stack() <= 1
        if skip and step % 3:
            continue
        optimizer.zero_grad()
        loss.backward()
        assert torch._C._len_torch_dispatch_stack() == 0
        optimizer.step()
    if watcher is not None:
        watcher.detach()
    assert torch._C._len_torch_dispatch_stack() == 0
    return model


def test_what_methods_compute_without_gradients_is_followed_to_the_loss(run_dir):
    train_towers("cut", run_dir)
    assert told(run_dir)["cut_modules"][0] == "second"


@pytest.mark.parametrize("kind", ["trained", "not used"])
def test_of_methods_that_use_no_such_value_nothing_is_told(kind, run_dir):
    train_towers(kind, run_dir)
    assert "cut_modules" not in told(run_dir)


def test_passes_that_are_left_out_leave_no_mode_behind_and_nothing_changes(run_dir):
    watched = fingerprint(train_towers("cut", run_dir, skip=True), [])
    assert watched == fingerprint(train_towers("cut", skip=True), [])


class Masked(nn.Module):
    """An encoder with a vector of its own, which only a mask that is off would use."""

    def __init__(self, is_cut: bool) -> None:
        super().__init__()
        self.masked = nn.Parameter(torch.rand(12))
        self.layers = nn.Sequential(nn.Linear(12, 8), nn.Tanh())
        self.is_cut = is_cut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layers(x)
        return x.detach() if self.is_cut else x


@pytest.mark.parametrize("is_cut", [False, True])
def test_what_contains_trained_layers_does_not_run_before_them(is_cut, run_dir):
    torch.manual_seed(0)
    model = nn.Sequential(OrderedDict(encoder=Masked(is_cut), head=nn.Linear(8, 3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, run_dir=run_dir, supervise=False):
        for step in range(STEPS):
            x, y = batch(step)
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    found = told(run_dir)
    assert found.get("detached_modules") == (("encoder", 2) if is_cut else None)
    assert ("unused_modules" in found) == (not is_cut)


def looped(x):
    return x


looped.__wrapped__ = looped


@pytest.mark.parametrize("forward", ["scripted", looped, functools.partial(len), 3, property(len)])
def test_a_forward_that_cannot_be_read_is_nobodys(forward):
    module = nn.Linear(2, 2)
    if forward == "scripted":
        module = torch.jit.script(module)
    else:
        module.forward = forward
    assert sources.owner_of_forward(module) == FRAMEWORKS


LIBRARY = """
from torch import nn

class Stages(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.first, self.second, self.depth = nn.Linear(12, 12), nn.Linear(12, 12), depth

    def forward(self, x):
        x = self.first(x)
        return self.second(x) if self.depth > 1 else x
"""


class Users(nn.Module):
    def __init__(self, stages: nn.Module, calls_it: bool = True) -> None:
        super().__init__()
        self.stages, self.head, self.calls_it = stages, nn.Linear(12, 3), calls_it

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.stages(x) if self.calls_it else x)


def first_alone(self, x):
    return self.first(x)


@pytest.mark.parametrize("who", ["library", "user", "user of a library", "patched", "parts"])
def test_who_leaves_a_module_out(who, tmp_path, run_dir, monkeypatch):
    if who in ("library", "patched", "parts"):
        (tmp_path / "site-packages").mkdir()
        (tmp_path / "site-packages" / "stages_of_a_library.py").write_text(LIBRARY)
        monkeypatch.syspath_prepend(tmp_path / "site-packages")
        stages = importlib.import_module("stages_of_a_library").Stages(1)
        if who == "patched":
            stages.forward = types.MethodType(first_alone, stages)
        model = Users(stages)
        if who == "parts":  # the user calls one of them, and never the whole
            model.forward = types.MethodType(lambda self, x: self.head(self.stages.first(x)), model)
    elif who == "user":
        model = Users(nn.Sequential(nn.Linear(12, 12)), calls_it=False)
    else:
        from transformers import BertConfig, BertModel

        small = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2}
        config = BertConfig(vocab_size=8, intermediate_size=12, **small)
        model = Users(BertModel(config), calls_it=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, run_dir=run_dir, supervise=False):
        for step in range(STEPS):
            x, y = batch(step)
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    assert "uncalled_modules" in told(run_dir)
    by_library = td.Run(run_dir).scalars("loop/uncalled_modules_by_library").values
    assert set(by_library.tolist()) == {float(who == "library")}
