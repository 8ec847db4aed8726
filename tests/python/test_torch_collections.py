"""Collections given by object: modules and parameters."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import traindbg as td
from traindbg.errors import InvalidArgument

ODD = (
    "a+b",
    "x[0]",
    "q|k",
    "(p)",
    "c^d$",
    "s{2}",
    "back\\slash",
    "st*r?",
    "sp ace",
    "ü-~#&",
    "a/b",
)


def train(model, run_dir, collections, *others, x=None, **wishes) -> td.Run:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with td.watch(
        model, optimizer, run_dir=run_dir, collections=collections, supervise=False, **wishes
    ):
        watched = [td.watch(other) for other in others]
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.randn(5, 4) if x is None else x).square().mean().backward()
            optimizer.step()
        for other in watched:  # the run ends with its last model
            other.detach()
    return td.Run(run_dir)


def members(run: td.Run, collection: str) -> set[str]:
    return {name for name in run.names() if collection in run[name].info["collections"]}


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
        self.body2 = nn.Linear(4, 4)
        self.head = nn.Linear(4, 2)
        self.scale = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return torch.tanh(self.head(self.body2(self.body(x)))) * self.scale


def test_a_module_is_all_that_is_in_it(run_dir):
    model = Net()
    every = ("gradients", "optimizer_state", "weight_updates", "outputs", "activations", "weights")
    collect = (*every, "biases", "gradients_before", "losses", "inputs")
    run = train(model, run_dir, {"mine": model.body}, collect=collect)
    assert members(run, "mine") == {
        name
        for name in run.names()
        if ("/body." in name or name.endswith("/body")) and not name.startswith("loop/")
    }
    assert {"output/body.0", "activation/body.1", "weight/body.2.weight"} <= members(run, "mine")
    assert "optimizer_state/body.2.weight.momentum_buffer" in members(run, "mine")
    assert len(run["output/body.0"].steps()) == 2


def test_a_parameter_is_all_of_it(run_dir):
    model = Net()
    collect = ("weights", "gradients", "optimizer_state", "weight_updates", "gradients_before")
    run = train(model, run_dir, {"mine": [model.scale, r"^bias/head"]}, collect=collect)
    assert members(run, "mine") == {
        "weight/scale",
        "gradient/scale",
        "gradient_before/scale",
        "optimizer_state/scale.momentum_buffer",
        "weight_update/scale",
        "update_ratio/scale",
        "bias/head.bias",
    }


def test_the_whole_model_is_all_of_it_and_no_other_model(run_dir):
    model, other = Net(), Net()
    both = nn.ModuleList([other])
    run = train(model, run_dir, {"mine": model}, both, collect=("weights", "activations"))
    mine = members(run, "mine")
    assert {"weight/scale", "activation/model.tanh", "output/head"} <= mine
    assert not [name for name in mine if "ModuleList" in name]


@pytest.mark.parametrize("name", ODD)
def test_odd_names_are_found_literally(run_dir, name):
    model = nn.Sequential()
    model.add_module(name, nn.Linear(4, 4))
    model.add_module("aab", nn.Linear(4, 4))
    run = train(model, run_dir, {"mine": [model[0]]}, collect=("weights",))
    mine = members(run, "mine")
    assert {f"weight/{name}.weight", f"gradient/{name}.bias", f"output/{name}"} <= mine
    assert not [found for found in mine if "aab" in found]


def test_a_shared_module_is_found_under_its_name(run_dir):
    class Sharing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(4, 4)
            self.second = nn.Sequential(self.first, nn.Linear(4, 4))

        def forward(self, x):
            return self.second(x)

    model = Sharing()
    run = train(model, run_dir, {"mine": model.second}, collect=("weights",))
    mine = members(run, "mine")
    assert {"weight/first.weight", "output/first", "output/second.1"} <= mine


def test_tied_weights_are_found_under_each_name(run_dir):
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    model[2].weight = model[0].weight
    run = train(model, run_dir, {"mine": model[0].weight}, collect=("weights",))
    assert {"weight/0.weight", "weight/2.weight"} <= members(run, "mine")


def test_a_wrapped_model_is_looked_through(run_dir):
    model = Net()
    run = train(nn.DataParallel(model), run_dir, {"mine": nn.DataParallel(model).module.head})
    assert "weight/head.weight" in members(run, "mine")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (nn.Linear(2, 2), "Linear that is not in the watched Net"),
        (torch.ones(3), r"shape \[3\] is no parameter"),
        (3, "got int"),
        (["a", 3], "got int"),
    ],
)
def test_what_is_not_in_the_model_is_refused(run_dir, value, message):
    with pytest.raises(InvalidArgument, match=message):
        td.watch(Net(), run_dir=run_dir, collections={"mine": value}, supervise=False)


def test_a_module_whole_values_are_asked_of(run_dir):
    model = Net()
    run = train(model, run_dir, {"mine": model.head}, raw="mine")
    assert run["weight/head.weight"].value(0).shape == (2, 4)
    assert not len(run["weight/scale"].raw_steps()) if "weight/scale" in run else True


def test_a_collection_without_attention_keeps_no_hooks_attached(run_dir):
    """One that may hold attention maps is looked at once; no hook looks for them for ever."""
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    attached = []
    with td.watch(
        model,
        optimizer,
        run_dir=run_dir,
        collections={"mine": "^weight/"},
        rules=[],
        supervise=False,
    ):
        for _ in range(4):
            attached.append(len(torch.nn.modules.module._global_forward_pre_hooks))
            model(torch.randn(5, 4)).square().mean().backward()
            optimizer.step()
    assert attached[0] == 1
    assert attached[2:] == [0, 0]


def test_a_module_of_a_second_model_is_that_one(run_dir):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(4, 2)

        def forward(self, x):
            return self.head(x)

    first, second = Two(), Two()
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (first, second)]
    with td.watch(first, run_dir=run_dir, rules=[], supervise=False):
        both = {"mine": second.head, "whole": second}
        other = td.watch(second, collections=both, every=1)
        for _ in range(2):
            for model, optimizer in zip((first, second), optimizers, strict=True):
                model(torch.ones(3, 4)).sum().backward()
                optimizer.step()
        other.detach()
    names = td.Run(run_dir).names(collection="mine")
    assert names
    assert all("Two.head" in name for name in names), names
