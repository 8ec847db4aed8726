"""What an optimizer's step does, compared with the formulas of the optimizers, computed by hand."""

from __future__ import annotations

import gc
import math

import numpy as np
import pyarrow as pa
import pytest
import torch
from test_torch_values import check
from torch import nn

import traindbg as td

COLLECTIONS = ("optimizer_state", "weight_updates")


@pytest.fixture(params=["cpu path", "device path"], autouse=True)
def path(request, monkeypatch):
    if request.param == "device path":
        monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
    return request.param


def small_model() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2))


def one_step(model, *optimizers, zero=True) -> dict[str, dict[str, torch.Tensor]]:
    """Of each parameter: itself before and after, and its gradient, in float64."""
    if zero:
        for optimizer in optimizers:
            optimizer.zero_grad()
    model(torch.randn(7, 6)).square().mean().backward()
    found = {
        name: {"before": p.detach().double(), "gradient": p.grad.double()}
        for name, p in model.named_parameters()
        if p.grad is not None
    }
    for optimizer in optimizers:
        optimizer.step()
    for name, p in model.named_parameters():
        if name in found:
            found[name]["after"] = p.detach().double()
    return found


def near(statistics, tensor: torch.Tensor) -> None:
    """Two computations of one formula, in float32 and in float64."""
    assert statistics.count == tensor.numel()
    assert statistics.l2 == pytest.approx(tensor.norm().item(), rel=1e-4)
    assert statistics.mean == pytest.approx(tensor.mean().item(), rel=1e-3, abs=1e-7)
    assert statistics.max == pytest.approx(tensor.max().item(), rel=1e-3, abs=1e-7)


def check_updates(step, seen) -> None:
    for name, values in seen.items():
        update = values["after"] - values["before"]
        check(step.tensors[f"weight_update/{name}"].statistics, update)
        ratio = (update.norm() / values["before"].norm()).item()
        assert step.scalars[f"update_ratio/{name}"] == pytest.approx(ratio, rel=1e-5)


def test_sgd_with_momentum(run_dir):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with td.watch(model, optimizer, run_dir=run_dir, collect=COLLECTIONS, supervise=False):
        seen = [one_step(model, optimizer) for _ in range(3)]
    run = td.Run(run_dir)
    buffers = {name: torch.zeros_like(values["before"]) for name, values in seen[0].items()}
    for number, values_of in enumerate(seen):
        step = run.step(number)
        check_updates(step, values_of)
        assert step.scalars["optimizer_state/lr.0"] == 0.1
        for name, values in values_of.items():
            buffers[name] = 0.9 * buffers[name] + values["gradient"]
            near(step.tensors[f"optimizer_state/{name}.momentum_buffer"].statistics, buffers[name])
            near(step.tensors[f"weight_update/{name}"].statistics, -0.1 * buffers[name])
    info = run["weight_update/2.weight"].info
    assert (info["role"], info["collection"]) == ("weight_update", "weight_updates")
    assert (info["module"], info["module_type"], info["layer"]) == ("2", "Linear", 3)
    info = run["optimizer_state/0.bias.momentum_buffer"].info
    assert (info["role"], info["collection"]) == ("optimizer_state", "optimizer_state")
    assert info["shape"] == (5,)
    assert run["update_ratio/0.weight"].series().steps.tolist() == [0, 1, 2]
    assert run["optimizer_state/lr.0"].values().tolist() == [0.1] * 3


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adam_and_adamw(run_dir, amsgrad, decay):
    model = small_model()
    rate, b1, b2, eps = 0.01, 0.8, 0.9, 1e-8
    kind = torch.optim.AdamW if decay else torch.optim.Adam
    optimizer = kind(
        model.parameters(), lr=rate, betas=(b1, b2), eps=eps, weight_decay=decay, amsgrad=amsgrad
    )
    with td.watch(model, optimizer, run_dir=run_dir, collect=COLLECTIONS, supervise=False):
        seen = [one_step(model, optimizer) for _ in range(3)]
    run = td.Run(run_dir)
    for name in seen[0]:
        first = second = largest = torch.zeros_like(seen[0][name]["before"])
        for number, values_of in enumerate(seen):
            values, step = values_of[name], run.step(number)
            first = b1 * first + (1 - b1) * values["gradient"]
            second = b2 * second + (1 - b2) * values["gradient"] ** 2
            largest = torch.maximum(largest, second)
            state = f"optimizer_state/{name}"
            near(step.tensors[f"{state}.exp_avg"].statistics, first)
            near(step.tensors[f"{state}.exp_avg_sq"].statistics, second)
            assert (f"{state}.max_exp_avg_sq" in step.tensors) == amsgrad
            if amsgrad:
                near(step.tensors[f"{state}.max_exp_avg_sq"].statistics, largest)
            moment = (largest if amsgrad else second) / (1 - b2 ** (number + 1))
            update = -rate * decay * values["before"]
            update -= rate * first / (1 - b1 ** (number + 1)) / (moment.sqrt() + eps)
            near(step.tensors[f"weight_update/{name}"].statistics, update)
    for number, values_of in enumerate(seen):
        check_updates(run.step(number), values_of)
    assert not run.names(r"\.step$")


def test_groups_frozen_parameters_and_a_group_that_comes_later(run_dir):
    model = small_model()
    model[0].bias.requires_grad_(False)
    optimizer = torch.optim.SGD(
        [{"params": model[0].parameters()}, {"params": [model[2].weight], "lr": 0.02}],
        lr=0.5,
        momentum=0.9,
    )
    with td.watch(model, run_dir=run_dir, collect=COLLECTIONS, supervise=False):
        first = one_step(model, optimizer, zero=False)
        model.zero_grad()
        optimizer.add_param_group({"params": [model[2].bias], "lr": 0.25})
        optimizer.param_groups[0]["lr"] = 0.125
        second = one_step(model, optimizer, zero=False)
    run = td.Run(run_dir)
    before, after = run.step(0), run.step(1)
    assert {name: value for name, value in before.scalars.items() if "/lr" in name} == {
        "optimizer_state/lr.0": 0.5,
        "optimizer_state/lr.1": 0.02,
    }
    assert {name: value for name, value in after.scalars.items() if "/lr" in name} == {
        "optimizer_state/lr.0": 0.125,
        "optimizer_state/lr.1": 0.02,
        "optimizer_state/lr.2": 0.25,
    }
    assert not run.names(r"_(update|state|ratio)/0\.bias")
    assert run["weight_update/2.bias"].steps().tolist() == [1]
    del first["2.bias"]
    check_updates(before, first)
    check_updates(after, second)
    near(after.tensors["weight_update/2.bias"].statistics, -0.25 * second["2.bias"]["gradient"])
    near(before.tensors["weight_update/0.weight"].statistics, -0.5 * first["0.weight"]["gradient"])


def test_two_optimizers_of_one_model(run_dir):
    model = small_model()
    body = torch.optim.Adam(model[0].parameters(), lr=torch.tensor(0.01))
    head = torch.optim.SGD(model[2].parameters(), lr=0.1, momentum=0.5)
    with td.watch(model, run_dir=run_dir, collect=COLLECTIONS, supervise=False):
        seen = []
        for _ in range(5):
            seen.append(one_step(model, head, body))  # from the third one on the body ends the step
    run = td.Run(run_dir)
    assert run.steps().tolist() == [0, 1, 2, 3, 4]
    for number, values_of in enumerate(seen):
        there = "02" if number >= 2 else "2"
        check_updates(run.step(number), {n: v for n, v in values_of.items() if n[0] in there})
    assert run["weight_update/0.weight"].steps().tolist() == [2, 3, 4]
    assert run.names(r"^optimizer_state/0\.weight") == [
        "optimizer_state/0.weight.exp_avg",
        "optimizer_state/0.weight.exp_avg_sq",
    ]
    assert run.names(r"^optimizer_state/2\.weight") == ["optimizer_state/2.weight.momentum_buffer"]
    assert run["optimizer_state/lr.0"].values().tolist() == [0.1] * 5
    assert run["optimizer_state/lr#2.0"].values() == pytest.approx([0.01] * 3, rel=1e-6)


def test_state_that_is_replaced_and_an_optimizer_that_is_replaced(run_dir):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    name = "optimizer_state/0.weight.momentum_buffer"
    with td.watch(model, run_dir=run_dir, collect="optimizer_state", supervise=False):
        one_step(model, optimizer)
        stored = optimizer.state_dict()
        for buffer in stored["state"].values():
            buffer["momentum_buffer"] = torch.full_like(buffer["momentum_buffer"], 2.0)
        optimizer.load_state_dict(stored)
        seen = one_step(model, optimizer)
    run = td.Run(run_dir)
    expected = 0.9 * 2.0 + seen["0.weight"]["gradient"]
    near(run.step(1).tensors[name].statistics, expected)
    assert len(optimizer.state) == 4


def test_looking_makes_no_state(run_dir):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, run_dir=run_dir, collect=COLLECTIONS, supervise=False):
        one_step(model, optimizer)
    assert all(not state.get("momentum_buffer") for state in optimizer.state.values())
    assert td.Run(run_dir).names(collection="optimizer_state") == ["optimizer_state/lr.0"]


def test_only_due_steps_are_looked_at(run_dir):
    model = small_model()
    optimizer = torch.optim.Adam(model.parameters())
    with td.watch(model, run_dir=run_dir, collect=COLLECTIONS, every=3, rules=[], supervise=False):
        for _ in range(5):
            one_step(model, optimizer)
    run = td.Run(run_dir)
    for name in ("weight_update/0.weight", "update_ratio/0.weight", "optimizer_state/lr.0"):
        assert run[name].steps().tolist() == [0, 3]
    assert run["optimizer_state/2.bias.exp_avg"].steps().tolist() == [0, 3]


def test_without_a_wish_there_are_none(run_dir):
    model = small_model()
    optimizer = torch.optim.Adam(model.parameters())
    with td.watch(model, run_dir=run_dir, rules=[], supervise=False):
        one_step(model, optimizer)
    run = td.Run(run_dir)
    assert not run.names(role="optimizer_state")
    assert not run.names(role="weight_update")


@pytest.mark.parametrize("fused", [False, True])
def test_a_step_that_a_scaler_skips_is_not_recorded(run_dir, fused):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    updates = []
    with td.watch(model, run_dir=run_dir, collect=COLLECTIONS, supervise=False):
        for factor in (1.0, math.inf, 1.0):
            optimizer.zero_grad()
            before = model[0].weight.detach().clone()
            scaler.scale(model(torch.randn(7, 6)).mean() * factor).backward()
            scaler.step(optimizer)
            scaler.update()
            updates.append(model[0].weight.detach() - before)
    assert not updates[1].any()
    tensor = td.Run(run_dir)["weight_update/0.weight"]
    values = tensor.values("l2")
    assert len(values) == 2
    assert values == pytest.approx([updates[0].norm().item(), updates[2].norm().item()], rel=1e-5)


def test_a_step_that_raises_leaves_nothing_behind(run_dir):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, run_dir=run_dir, collect=COLLECTIONS, supervise=False):
        with pytest.raises(ZeroDivisionError):
            optimizer.step(lambda: 1 / 0)
        with torch.no_grad():
            model[0].weight += 1
        seen = one_step(model, optimizer)
    check_updates(td.Run(run_dir).step(0), seen)


def test_ratios_need_weights_and_finite_values(run_dir):
    model = nn.Linear(3, 2)
    nn.init.zeros_(model.bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with td.watch(model, run_dir=run_dir, collect=COLLECTIONS, supervise=False):
        model(torch.ones(1, 3)).sum().backward()
        model.weight.grad[0, 0] = math.nan
        optimizer.step()
    step = td.Run(run_dir).step(0)
    assert not [name for name in step.scalars if name.startswith("update_ratio")]
    assert step.tensors["weight_update/weight"].statistics.nan == 1
    assert step.tensors["weight_update/bias"].statistics.max == -1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_types_and_layouts(run_dir, dtype):
    torch.manual_seed(2)
    model = nn.Conv2d(3, 4, 3).to(dtype).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    with td.watch(model, run_dir=run_dir, collect=COLLECTIONS, supervise=False):
        for p in model.parameters():
            p.grad = torch.randn_like(p)
        optimizer.step()
    seen = {
        name: {"before": before[name].double(), "after": p.detach().double()}
        for name, p in model.named_parameters()
    }
    check_updates(td.Run(run_dir).step(0), seen)


def test_shared_weights_and_scalar_parameters(run_dir):
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.scale = nn.Linear(6, 6), nn.Parameter(torch.tensor(2.0))
            self.second = nn.Linear(6, 6)
            self.second.weight = self.first.weight

        def forward(self, x):
            return self.second(self.first(x)) * self.scale

    model = Tied()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    with td.watch(model, run_dir=run_dir, collect=COLLECTIONS, supervise=False):
        seen = one_step(model, optimizer)
    run = td.Run(run_dir)
    check_updates(run.step(0), seen)
    assert "weight_update/second.weight" not in run
    kept = [f"optimizer_state/scale.{key}" for key in ("exp_avg", "exp_avg_sq")]
    assert sorted(run.names(r"^optimizer_state/scale")) == kept  # not how many steps there were
    near(run.step(0).tensors[kept[0]].statistics, seen["scale"]["gradient"].reshape(1) * 0.1)


def test_rows_and_columns_of_adafactor(run_dir):
    model = small_model()
    optimizer = torch.optim.Adafactor(model.parameters(), lr=0.01)
    with td.watch(model, run_dir=run_dir, collect=COLLECTIONS, supervise=False):
        one_step(model, optimizer)
    tensors = td.Run(run_dir).step(0).tensors
    state = optimizer.state[model[0].weight]
    for key in ("row_var", "col_var"):
        near(tensors[f"optimizer_state/0.weight.{key}"].statistics, state[key].double())
    bias = optimizer.state[model[0].bias]["variance"]
    near(tensors["optimizer_state/0.bias.variance"].statistics, bias.double())


def test_whole_updates_and_states(run_dir, path):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with td.watch(
        model, run_dir=run_dir, raw=COLLECTIONS, histograms=COLLECTIONS, every=1, supervise=False
    ):
        seen = one_step(model, optimizer)
    if path == "device path":
        return  # statistics only
    run = td.Run(run_dir)
    update = (seen["0.weight"]["after"] - seen["0.weight"]["before"]).float().numpy()
    np.testing.assert_array_equal(run["weight_update/0.weight"].value(0), update)
    np.testing.assert_array_equal(
        run["optimizer_state/0.weight.momentum_buffer"].value(0),
        seen["0.weight"]["gradient"].float().numpy(),
    )
    frame = pa.table(run.table("histograms", names="^weight_update/0.weight")).to_pandas()
    assert frame["count"].sum() == 30


def test_an_optimizer_is_not_kept_alive(run_dir):
    model = small_model()
    with td.watch(model, run_dir=run_dir, collect=COLLECTIONS, supervise=False):
        for _ in range(2):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            one_step(model, optimizer)
            del optimizer
            gc.collect()
    run = td.Run(run_dir)
    assert run.names(r"/lr") == ["optimizer_state/lr.0"]
    assert run["optimizer_state/lr.0"].steps().tolist() == [0, 1]
