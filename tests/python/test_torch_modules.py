"""Modules that are called, changed and wrapped in unusual ways, and what transforms them."""

from __future__ import annotations

import copy
import dataclasses
import functools
import re

import pytest
import torch
import trainings
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

import traindbg as td
from traindbg.hooks.torch.recording import recording as recordings

FORWARD = r"^(in|out)put|^activation"


def recorded(run_dir, model, forward, steps=1, before=None, **options):
    """Trains `model` by `forward(x).sum()` and returns the run."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    options = {"rules": [], "every": 1, "supervise": False} | options
    with td.watch(model, run_dir=run_dir, **options):
        for step in range(steps):
            if before is not None:
                optimizer = before(step, optimizer) or optimizer
            optimizer.zero_grad()
            generator = torch.Generator().manual_seed(step)
            forward(torch.randn(4, 8, generator=generator)).sum().backward()
            optimizer.step()
    return td.Run(run_dir)


def maximum(run, name, step=0):
    return run.step(step).tensors[name].statistics.max


# Checkpointing.


class Checkpointed(nn.Module):
    def __init__(self, use_reentrant: bool | None) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.body = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.ReLU())
        self.last = nn.Linear(8, 3)
        self.use_reentrant = use_reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.first(x))
        if self.use_reentrant is None:
            x = self.body(x)
        else:
            x = checkpoint(self.body, x, use_reentrant=self.use_reentrant)
        return F.relu(self.last(x))


def train_checkpointed(use_reentrant, watch=None, whole=False):
    torch.manual_seed(5)
    model = Checkpointed(None if whole else use_reentrant)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if watch is not None:
        watch(model)
    losses = []
    for step in range(4):
        optimizer.zero_grad()
        x = torch.randn(4, 8, generator=torch.Generator().manual_seed(step), requires_grad=True)
        out = checkpoint(model, x, use_reentrant=use_reentrant) if whole else model(x)
        loss = F.cross_entropy(out, torch.tensor([0, 1, 2, 0]))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return trainings.fingerprint(model, losses)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_recomputation_is_no_second_pass(use_reentrant, whole, run_dir):
    plain = train_checkpointed(use_reentrant, whole=whole)

    def watch(folder, model):
        td.watch(model, run_dir=run_dir / folder, rules=[], every=1, supervise=False)

    watched = train_checkpointed(use_reentrant, functools.partial(watch, "watched"), whole)
    recordings.current.close()
    assert watched == plain
    train_checkpointed(None, functools.partial(watch, "without"))
    recordings.current.close()
    run, without = td.Run(run_dir / "watched"), td.Run(run_dir / "without")
    assert run.names(FORWARD) == without.names(FORWARD)
    assert run.steps().tolist() == [0, 1, 2, 3]
    for name in run.names(FORWARD):
        assert run[name].steps().tolist() == [0, 1, 2, 3], name


def test_checkpointed_parts_of_a_sequence_have_their_names(run_dir):
    model = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(4)))
    run = recorded(
        run_dir, model, lambda x: checkpoint_sequential(model, 2, x, use_reentrant=False), 3
    )
    names = {f"output/{n}.0" for n in range(4)} | {f"activation/{n}.1" for n in range(4)}
    assert set(run.names(r"^output|^activation")) == names


# torch.func, tracing, exporting.


def test_wrapped_values_of_torch_func_are_not_read(run_dir, capfd):
    model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 1))
    weights = {name: value.detach().clone() for name, value in model.named_parameters()}

    def loss(weights, x, y):
        return F.mse_loss(torch.func.functional_call(model, weights, (x,)), y)

    x, y = torch.randn(4, 8), torch.randn(4, 1)
    per_sample = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
    expected = per_sample(weights, x, y)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, run_dir=run_dir, rules=[], every=1, supervise=False) as watcher:
        for _ in range(3):
            actual = per_sample(weights, x, y)
            for name in weights:
                assert torch.equal(actual[name], expected[name])
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
        assert watcher._recording.session.counts()["tensors_skipped"] > 0
    run = td.Run(run_dir)
    assert run["output/0"].steps().tolist() == [0, 1, 2]
    assert [event["kind"] for event in run.events].count("not_captured") == 1
    assert "torch.func" in capfd.readouterr().err


def test_a_part_that_runs_inside_of_vmap_is_not_read(run_dir):
    class Mapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = nn.Sequential(nn.Linear(8, 4), nn.ReLU())
            self.last = nn.Linear(4, 1)

        def forward(self, x):
            return self.last(torch.func.vmap(lambda row: torch.tanh(self.part(row)))(x))

    model = Mapped()
    run = recorded(run_dir, model, model, 2)
    assert set(run.names(FORWARD)) == {"input/0", "output/last"}
    assert [event["kind"] for event in run.events].count("not_captured") == 1


def test_a_functional_call_is_a_call(run_dir):
    model = nn.Sequential(nn.Linear(8, 4), nn.ReLU())
    weights = {name: torch.zeros_like(value) for name, value in model.named_parameters()}
    weights["0.bias"] = torch.full((4,), 7.0, requires_grad=True)
    run = recorded(run_dir, model, lambda x: torch.func.functional_call(model, weights, (x,)))
    assert maximum(run, "output/0") == 7.0


def test_traced_and_exported_models_are_the_same(run_dir):
    model = trainings.SmallCNN()
    x = torch.randn(2, 1, 8, 8)

    def transformed():
        traced = torch.jit.trace(model, x)
        symbolic = torch.fx.symbolic_trace(model)
        exported = torch.export.export(model, (x,))
        # Classes are numbered as they are met.
        graph = re.sub(r"\.___torch_mangle_\d+", "", str(traced.inlined_graph))
        return graph, symbolic.code, str(exported.graph)

    plain = transformed()
    with td.watch(model, run_dir=run_dir, rules=[], every=1, supervise=False):
        assert transformed() == plain


# Modules.


def test_a_module_called_twice_has_both_outputs_where_they_are_asked_for(run_dir):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.shared = nn.Linear(8, 8)
            self.alias = self.shared
            self.act = nn.ReLU()

        def forward(self, x):
            x = self.act(self.shared(x))
            return self.act(self.alias(x + 100))

    model = Twice()
    run = recorded(run_dir / "asked", model, model, 3)
    first = {"input/0", "output/shared", "activation/act"}
    assert set(run.names(FORWARD)) == first | {"output/shared#2", "activation/act#2"}
    assert abs(maximum(run, "output/shared")) < 20, "the second is of x + 100"
    assert abs(maximum(run, "output/shared#2")) > 20
    for name in run.names(FORWARD):
        assert run[name].steps().tolist() == [0, 1, 2], name

    run = recorded(run_dir / "of_rules", model, model, 3, rules=["dead_relu"], every=None)
    assert set(run.names(r"^(out|act)")) == {"output/shared", "activation/act"}

    collections = {"mine": [model.shared, "^activation/act$"]}
    options = {"every": 2, "collections": collections, "collect": ["losses"]}
    run = recorded(run_dir / "named", model, model, 3, **options)
    assert run["output/shared#2"].steps().tolist() == [0, 2]
    assert len(run["activation/act#2"].steps()) == 0, "not by this pattern"


def test_calls_of_a_module_are_counted_anew_in_each_pass_and_after_the_eighth_not_taken(
    run_dir, capfd
):
    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.LSTMCell(8, 8)

        def forward(self, x):
            state = None
            for _ in range(10):
                state = self.cell(x, state)
            return state[0]

    model = Loop()
    run = recorded(run_dir, model, model, 3, collect=["outputs"])
    marks = ["", *(f"#{number}" for number in range(2, 9))]
    names = {f"output/cell.{part}{mark}" for part in (0, 1) for mark in marks}
    assert set(run.names("^output")) == names
    for name in names:
        assert run[name].steps().tolist() == [0, 1, 2], name
    assert [event["kind"] for event in run.events].count("not_captured") == 1
    assert capfd.readouterr().err.count("after the 8th") == 1


def test_calls_of_parts_of_a_model_that_is_not_called_are_told_apart(run_dir):
    model = nn.ModuleDict({"tower": nn.Linear(8, 8), "head": nn.Linear(8, 1)})

    def forward(x):
        a = model["tower"](x)
        b = checkpoint(model["tower"], x + 100, use_reentrant=False)
        return model["head"](a + b)

    run = recorded(run_dir, model, forward, 5, collect=["outputs"])
    assert set(run.names("^output")) == {"output/tower", "output/tower#2", "output/head"}
    steps = run["output/tower"].steps().tolist()
    assert steps
    assert steps == run["output/tower#2"].steps().tolist()
    assert abs(maximum(run, "output/tower", steps[0])) < 20
    assert abs(maximum(run, "output/tower#2", steps[0])) > 20


def test_a_model_that_calls_itself_is_one_pass(run_dir):
    class Recursive(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(8, 8)
            self.outer = nn.Linear(8, 1)

        def forward(self, x, depth=2):
            if depth:
                return self(torch.relu(self.inner(x)), depth - 1)
            return torch.tanh(self.outer(x))

    model = Recursive()
    run = recorded(run_dir, model, model, 2)
    assert set(run.names(FORWARD)) == {
        "input/0",
        "output/inner",
        "output/inner#2",
        "output/outer",
        "activation/model.relu",
        "activation/model.relu#2",
        "activation/model.tanh",
    }
    assert run["output/outer"].steps().tolist() == [0, 1]


def test_slices_of_a_sequence_have_the_names_of_their_modules(run_dir):
    class Sliced(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh())

        def forward(self, x):
            return self.body[2:](self.body[:2](x))

    model = Sliced()
    run = recorded(run_dir, model, model)
    names = {"output/body.0", "activation/body.1", "output/body.2", "activation/body.3"}
    assert set(run.names(r"^output|^activation")) == names


@pytest.mark.parametrize("same_optimizer", [False, True])
def test_a_replaced_module_is_not_mixed_with_the_old_one(same_optimizer, run_dir, capfd):
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))

    def replace(step, optimizer):
        if step == 2:
            model[2] = nn.Linear(8, 5)
            nn.init.constant_(model[2].weight, 9.0)
            if same_optimizer:
                optimizer.param_groups[0]["params"] = list(model.parameters())
                return optimizer
            return torch.optim.SGD(model.parameters(), lr=0.01)
        return None

    run = recorded(run_dir, model, model, 4, replace)
    assert run["weight/2.weight"].steps().tolist() == [0, 1]
    assert run["weight/2.weight#2"].steps().tolist() == [2, 3]
    assert run["gradient/2.weight#2"].steps().tolist() == [2, 3]
    assert tuple(run["weight/2.weight#2"].shape) == (5, 8)
    assert maximum(run, "weight/2.weight#2", 2) == 9.0
    assert run["weight/0.weight"].steps().tolist() == [0, 1, 2, 3]
    events = [event for event in run.events if event["kind"] == "tensor_replaced"]
    assert any("weight/2.weight#2" in str(event) for event in events)


def test_a_module_replaced_by_one_of_the_same_shape_goes_on(run_dir):
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))

    def replace(step, optimizer):
        if step == 2:
            model[2] = nn.Linear(8, 3)
            nn.init.constant_(model[2].weight, 9.0)
            optimizer.param_groups[0]["params"] = list(model.parameters())

    run = recorded(run_dir, model, model, 4, replace)
    assert run["weight/2.weight"].steps().tolist() == [0, 1, 2, 3]
    assert maximum(run, "weight/2.weight", 2) == 9.0


def test_modules_that_move_have_the_names_of_their_new_places(run_dir):
    """Nothing is called when they do: a list is cut, a dictionary of PyTorch's own is changed."""
    model = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(torch.randn(5, 4)), torch.tensor([0, 1, 2, 0, 1])).backward()
        optimizer.step()

    with td.watch(
        model, run_dir=run_dir, rules=[], collect=["outputs", "activations"], supervise=False
    ):
        step()
        del model[1]  # the modules behind it move up
        step()
        model._modules["1"] = nn.Sequential(nn.Linear(6, 6), nn.ReLU())
        step()
    run = td.Run(run_dir)
    names = run.names(r"^(output|activation)/")
    steps = {name: run[name].steps().tolist() for name in names}
    assert steps == {
        "output/0": [0, 1, 2],
        "output/1": [0],
        "activation/2": [0],
        "output/3": [0],
        "activation/1": [1],
        "output/2": [1, 2],
        "output/1.0": [2],
        "activation/1.1": [2],
    }


def test_frozen_parameters_have_no_gradient_until_they_are_unfrozen(run_dir):
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))

    def freeze(step, optimizer):
        model[0].requires_grad_(step not in (1, 2))

    run = recorded(run_dir, model, model, 4, freeze)
    assert run["gradient/0.weight"].steps().tolist() == [0, 3]
    assert run["weight/0.weight"].steps().tolist() == [0, 1, 2, 3]
    assert run["gradient/2.weight"].steps().tolist() == [0, 1, 2, 3]


def test_parameters_added_later_are_recorded(run_dir):
    model = nn.Sequential(nn.Linear(8, 8))

    def add(step, optimizer):
        if step == 2:
            model.append(nn.Linear(8, 2))
            optimizer.add_param_group({"params": model[1].parameters()})

    run = recorded(run_dir, model, model, 4, add)
    assert run["weight/1.weight"].steps().tolist() == [2, 3]
    assert run["gradient/1.weight"].steps().tolist() == [2, 3]
    assert run["output/1"].steps().tolist() == [2, 3]


def test_lazy_modules_are_recorded_once_they_have_a_shape(run_dir):
    model = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(2))
    run = recorded(run_dir, model, model, 3)
    for name in ("weight/0.weight", "gradient/2.weight", "output/0"):
        assert run[name].steps().tolist() == [0, 1, 2], name


def test_attention_is_looked_at_as_a_whole_and_its_fast_path_kept(run_dir):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    model = nn.Sequential(layer, nn.Linear(8, 1))
    x = torch.randn(2, 4, 8)
    with torch.no_grad():
        plain = copy.deepcopy(model).eval()(x)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, run_dir=run_dir, rules=[], every=1, supervise=False):
        model.eval()
        with torch.no_grad():
            assert torch.equal(model(x), plain)
        model.train()
        model(x).sum().backward()
        optimizer.step()
    run = td.Run(run_dir)
    assert "output/0.self_attn.0" in run
    assert not run.names(r"out_proj$")


def test_hooks_of_others_stay_in_order_and_in_force(run_dir):
    def train(run_dir=None):
        order: list[str] = []
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 4), nn.ReLU())

        def note(name, replace=None):
            def hook(module, args, output=None):
                order.append(name)
                return None if replace is None else replace(output)

            return hook

        model[0].register_forward_pre_hook(note("before"))
        model[0].register_forward_hook(note("replaces", lambda output: output * 0 + 3))
        model[0].register_forward_hook(note("after"))
        model[0].register_full_backward_hook(note("backward"))
        handle = nn.modules.module.register_module_forward_hook(note("of all"))
        try:
            if run_dir is not None:
                recorded(run_dir, model, model, 2)
            else:
                optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
                for step in range(2):
                    optimizer.zero_grad()
                    x = torch.randn(4, 8, generator=torch.Generator().manual_seed(step))
                    model(x).sum().backward()
                    optimizer.step()
        finally:
            handle.remove()
        return order, [hook.__name__ for hook in model[0]._forward_hooks.values()]

    assert train(run_dir) == train()
    assert maximum(td.Run(run_dir), "activation/1") == 3.0


def test_eval_inside_a_training_step_does_not_end_it(run_dir):
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))

    def forward(x):
        out = model(x)
        model.eval()
        with torch.no_grad():
            model(x)
        model.train()
        return out

    run = recorded(run_dir, model, forward, 3)
    assert run.steps().tolist() == [0, 1, 2]
    assert run["output/0"].steps().tolist() == [0, 1, 2]


def test_an_evaluation_without_activations_inside_a_step_is_no_reason_to_complain(run_dir, capfd):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 1)

        def forward(self, x):
            return torch.tanh(self.linear(x))

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    captures = [{"collection": "activations"}, {"collection": "outputs", "mode": "eval"}]
    with td.watch(model, run_dir=run_dir, rules=[], capture=captures, supervise=False):
        for _ in range(3):
            loss = model(torch.randn(4, 8)).square().mean()
            model.eval()
            with torch.no_grad():
                model(torch.randn(4, 8))
            model.train()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    run = td.Run(run_dir)
    assert run["activation/model.tanh"].steps().tolist() == [0, 1, 2]
    assert len(run["output/linear"].steps("eval")) > 0
    assert not [event for event in run.events if event["kind"] == "not_captured"]
    assert "torch.compile" not in capfd.readouterr().err


class Functions(nn.Module):
    """Activation functions that are called as functions, each in a way of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(8, 8)
        self.slope = nn.Parameter(torch.full((8,), 0.2))

    def forward(self, x):
        x = self.line(x)
        x = F.hardshrink(F.softshrink(x, 0.01), 0.01) + F.softsign(x) + F.tanhshrink(x)
        x = F.prelu(x, self.slope) + F.rrelu(x, 0.1, 0.2, self.training) + F.threshold(x, 0, 0.1)
        x = F.elu_(x.clone()) + F.leaky_relu_(x.clone(), 0.1) + torch.selu_(x.clone())
        x = x + F.softmax(x, -1) + x.softmax(-1) + torch.special.softmax(x, 1)
        x = x + F.log_softmax(x, -1) + x.log_softmax(-1) + F.softmin(x, -1)
        return F.glu(x)


def test_all_activation_functions_are_heard(run_dir):
    model = Functions()
    with td.watch(
        model, run_dir=run_dir, rules=[], collect=["activations"], every=1, supervise=False
    ):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        F.mse_loss(model(torch.randn(4, 8)), torch.zeros(4, 4)).backward()
        optimizer.step()
    run = td.Run(run_dir)
    names = {name.removeprefix("activation/model.") for name in run.names("^activation/")}
    assert names == {
        *("hardshrink", "softshrink", "softsign", "tanhshrink", "prelu", "rrelu", "threshold"),
        *("elu", "leaky_relu", "selu", "glu", "softmin"),
        *("softmax", "softmax#2", "softmax#3", "log_softmax", "log_softmax#2"),
    }


class Thresholds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(8, 8)
        self.above_one, self.as_a_relu = nn.Threshold(1.0, 0.0), nn.Threshold(0, 0)
        self.to_a_number, self.below_zero = nn.Threshold(0.1, 20), nn.Threshold(-1.0, 0.0)

    def forward(self, x):
        x = self.line(x)
        x = self.above_one(x) + self.as_a_relu(x) + self.to_a_number(x) + self.below_zero(x)
        return F.threshold(x, 0.5, 0) + F.threshold(x, threshold=0.5, value=-1)


def test_a_threshold_that_gives_zero_is_a_relu(run_dir):
    model = Thresholds()
    with td.watch(
        model, run_dir=run_dir, rules=[], collect=["activations"], every=1, supervise=False
    ):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        F.mse_loss(model(torch.randn(4, 8)), torch.zeros(4, 8)).backward()
        optimizer.step()
    run = td.Run(run_dir)
    kinds = {name: run[name].info["activation"] for name in run.names("^activation/")}
    assert kinds == {
        "activation/above_one": "relu",
        "activation/as_a_relu": "relu",
        "activation/to_a_number": "smooth",
        "activation/below_zero": "smooth",
        "activation/model.threshold": "relu",
        "activation/model.threshold#2": "smooth",
    }


class Clamps(nn.Module):
    """ReLUs that are written out behind a layer, and cuts at 0 that are none."""

    def __init__(self) -> None:
        super().__init__()
        self.line, self.conv = nn.Linear(8, 8), nn.Conv1d(8, 8, 1)
        self.norm, self.free = nn.BatchNorm1d(8), nn.Linear(8, 8, bias=False)
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        relus = [
            self.line(x).clamp(min=0),
            torch.clamp_min(self.conv(x.unsqueeze(-1)), 0.0).squeeze(-1),
            torch.maximum(self.norm(x), torch.tensor(0.0)),
            torch.maximum(torch.zeros(1), x @ self.weight + self.bias),
            self.free(x.view(2, -1, 8)).clip_(0).view(-1, 8),
            self.line(x.view(2, -1, 8)).clamp_(0).view(-1, 8),
        ]
        others = [
            self.line(x).clamp(min=0, max=6),  # bounded on both sides
            self.line(x).clamp(min=1e-6),
            self.line(x).clamp(max=0),
            torch.maximum(self.line(x), self.norm(x)),
            (1 - torch.cdist(self.line(x), x)).clamp(min=0).sum(1, keepdim=True),  # a margin
            x.clamp(min=0),
        ]
        return sum(relus) + sum(others)


def test_a_layers_output_that_is_cut_off_at_zero_has_a_relu(run_dir):
    model = Clamps()
    with td.watch(
        model, run_dir=run_dir, rules=[], collect=["activations"], every=1, supervise=False
    ):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        F.mse_loss(model(torch.randn(4, 8)), torch.zeros(4, 8)).backward()
        optimizer.step()
    run = td.Run(run_dir)
    kinds = {name: run[name].info["activation"] for name in run.names("^activation/")}
    assert kinds == dict.fromkeys(
        (
            *("activation/model.clamp", "activation/model.clamp#2"),
            *("activation/model.clamp_min", "activation/model.clip"),
            *("activation/model.maximum", "activation/model.maximum#2"),
        ),
        "relu",
    )


def test_a_clamp_without_values_or_a_graph_harms_nothing(run_dir):
    model = nn.Linear(8, 8)
    with td.watch(
        model, run_dir=run_dir, rules=[], collect=["activations"], every=1, supervise=False
    ):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def cut(module, given, y):
            torch.maximum(*torch.zeros(2, 1, device="meta"))
            return torch.vmap(lambda row: torch.maximum(row, row[:1] * 0))(y)

        model.register_forward_hook(cut)
        F.mse_loss(model(torch.randn(4, 8)).sum(), torch.zeros(())).backward()
        optimizer.step()
    assert td.Run(run_dir).names("^activation/") == []


class NewGELUActivation(nn.Module):
    """As some libraries write it."""

    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * torch.pow(x, 3))))


def test_an_activation_that_is_written_out_is_one_and_no_tanh(run_dir):
    model = nn.Sequential(nn.Linear(8, 8), NewGELUActivation(), nn.Linear(8, 4))
    with td.watch(
        model, run_dir=run_dir, rules=[], collect=["activations"], every=1, supervise=False
    ):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        F.mse_loss(model(torch.randn(4, 8)), torch.zeros(4, 4)).backward()
        optimizer.step()
    run = td.Run(run_dir)
    assert run.names("^activation/") == ["activation/1"]
    assert run["activation/1"].info["activation"] == "smooth"


@dataclasses.dataclass
class Answer:
    logits: torch.Tensor
    hidden: list[dict[str, dict[str, torch.Tensor]]]


class Nested(nn.Module):
    def forward(self, x):
        return Answer(x, [{"last": {"state": 2 * x}}])


class ReturnsMuch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line, self.nested = nn.Linear(8, 4), Nested()

    def forward(self, x):
        answer = self.nested(self.line(x))
        return answer.logits + answer.hidden[0]["last"]["state"]


def test_what_is_returned_in_several_layers_is_found(run_dir):
    model = ReturnsMuch()
    run = recorded(run_dir, model, model, collect=["outputs"])
    assert set(run.names("^output/")) == {
        *("output/line", "output/nested.logits", "output/nested.hidden.0.last.state"),
    }
