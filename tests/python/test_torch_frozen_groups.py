"""Groups of an optimizer of which nothing can be trained."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import traindbg as td
from traindbg.hooks.torch.updates.frozen_groups import FrozenGroup, FrozenGroups


class Spring(nn.Module):
    """A curve, and two constants of the law that it is to keep."""

    def __init__(self, is_trained: bool = False) -> None:
        super().__init__()
        self.curve = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
        self.damping = nn.Parameter(torch.tensor(1.0), requires_grad=is_trained)
        self.stiffness = nn.Parameter(torch.tensor(3.0), requires_grad=is_trained)

    def forward(self, time: torch.Tensor) -> torch.Tensor:
        return self.curve(time) * self.stiffness + self.damping


def groups_of(model: Spring) -> list[dict[str, object]]:
    constants = [model.damping, model.stiffness]
    return [{"params": model.curve.parameters()}, {"params": constants, "lr": 0.02}]


def modules_of(model: nn.Module) -> dict[str, nn.Module]:
    return {name or "model": module for name, module in model.named_modules()}


def test_a_group_of_constants_that_require_no_gradients():
    model = Spring()
    optimizer = torch.optim.SGD(groups_of(model), lr=0.1)
    groups = FrozenGroups()
    assert groups.find([optimizer], modules_of(model)) == FrozenGroup("damping", 2)
    model.damping.requires_grad_(True)
    assert groups.find([optimizer], modules_of(model)) is None
    model.damping.requires_grad_(False)  # what was trained once may rest
    assert groups.find([optimizer], modules_of(model)) is None


def test_groups_that_may_rest():
    model, groups = Spring(), FrozenGroups()
    one = torch.optim.SGD(model.parameters(), lr=0.1)
    assert groups.find([one], modules_of(model)) is None
    trained = Spring(is_trained=True)
    assert groups.find([torch.optim.SGD(groups_of(trained), lr=0.1)], modules_of(trained)) is None
    layers = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    layers[1].requires_grad_(False)  # of PyTorch's own
    each = [{"params": layer.parameters()} for layer in layers]
    assert groups.find([torch.optim.SGD(each, lr=0.1)], modules_of(layers)) is None
    model.curve.requires_grad_(False)  # nothing is trained yet
    resting = torch.optim.SGD(groups_of(model), lr=0.1)
    assert groups.find([resting], modules_of(model)) is None


@pytest.mark.parametrize("is_set_free", [False, True])
def test_a_training(run_dir, is_set_free):
    torch.manual_seed(0)
    model = Spring()
    optimizer = torch.optim.SGD(groups_of(model), lr=0.01)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["frozen_parameters"]):
        for step in range(12):
            if step == 6 and is_set_free:
                model.damping.requires_grad_(True)
                model.stiffness.requires_grad_(True)
            optimizer.zero_grad()
            (model(torch.rand(16, 1)) - 1).square().mean().backward()
            optimizer.step()
    run = td.Run(run_dir)
    assert set(run.scalars("loop/frozen_group/damping").values.tolist()) == {2.0}
    assert bool(run.names("^loop/frozen_group$")) == is_set_free
