"""Of how many steps ago weights are that are put back: by how one parameter begins."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.steps.weights_kept import _Beginnings


class Scaled(nn.Module):
    """Has a scale of one number, which stands still where it is at its limit."""

    def __init__(self):
        super().__init__()
        self.layer, self.scale = nn.Linear(6, 12), nn.Parameter(torch.tensor([5.0]))
        self.head = nn.Linear(12, 1)

    def forward(self, x):
        return self.head(self.layer(x).tanh()) * self.scale.clamp(max=1.0)


@pytest.mark.parametrize("taken_at", [10, 25])
@pytest.mark.parametrize("others", [True, False])
def test_weights_that_are_put_back_are_known(taken_at, others, tmp_path):
    torch.manual_seed(0)
    model = Scaled()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    x = torch.randn(64, 6)
    kept = None
    with td.watch(
        model,
        optimizer,
        run_dir=tmp_path / "run",
        supervise=False,
        rules=["best_weights_not_kept", "overfit"],
    ):
        for step in range(40):
            if step % 5 == 0 and (others or step == taken_at):
                state = {name: value.clone() for name, value in model.state_dict().items()}
                kept = state if step == taken_at else kept
            optimizer.zero_grad()
            F.mse_loss(model(x), x[:, :1]).backward()
            optimizer.step()
        model.load_state_dict(kept)
    run = td.Run(tmp_path / "run")
    assert list(run["loop/weights_put_back"].series("value")[1]) == [1.0]
    assert list(run["loop/weights_put_back_since"].series("value")[1]) == [40.0 - taken_at]
    later = sum(step > taken_at for step in range(0, 40, 5)) if others else 0
    assert list(run["loop/weights_put_back_later"].series("value")[1]) == [later]


@pytest.mark.parametrize("loads", ["start", "later", "part", "own"])
def test_weights_of_the_start_that_are_loaded_again_are_known(loads, tmp_path):
    torch.manual_seed(0)
    model = Scaled()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    x = torch.randn(64, 6)
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    with td.watch(
        model,
        optimizer,
        run_dir=tmp_path / "run",
        supervise=False,
        rules=["learning_rate_too_high"],
    ):
        for step in range(40):
            if step == 5 and loads == "later":
                kept = {name: value.clone() for name, value in model.state_dict().items()}
            if step == 20:
                state = model.state_dict() if loads == "own" else kept
                if loads == "part":
                    state = {name: value for name, value in kept.items() if "head" not in name}
                model.load_state_dict(state, strict=False)
            optimizer.zero_grad()
            F.mse_loss(model(x), x[:, :1]).backward()
            optimizer.step()
    run = td.Run(tmp_path / "run")
    told = "loop/weights_of_start"
    assert (told in run.names()) == (loads == "start")
    if loads == "start":
        steps, values = run[told].series("value")
        assert (list(steps), list(values)) == ([20], [20.0])


@pytest.mark.parametrize("is_start", [True, False])
def test_scales_that_begin_alike_in_all_models_tell_of_no_start(is_start, tmp_path):
    def network():
        return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Linear(16, 32))

    torch.manual_seed(0)
    model = network()
    first = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    run_dir = tmp_path / "run"
    with td.watch(
        model, optimizer, run_dir=run_dir, supervise=False, rules=["learning_rate_too_high"]
    ):
        for step in range(20):
            if step == 10:
                model.load_state_dict(first if is_start else network().state_dict())
            optimizer.zero_grad()
            model(torch.randn(64, 6)).square().mean().backward()
            optimizer.step()
    assert ("loop/weights_of_start" in td.Run(run_dir).names()) == is_start


@pytest.mark.parametrize("is_chosen", [True, False])
def test_it_is_told_whether_weights_that_are_put_back_were_chosen(is_chosen, tmp_path):
    program = tmp_path / "program.py"
    lines = ["if loss < best:", "best, kept = loss, copy.deepcopy(model.state_dict())"]
    if not is_chosen:
        lines = ["if step == 8:", "kept = copy.deepcopy(model.state_dict())"]
    program.write_text(PUTS_BACK.format(*lines))
    subprocess.run([sys.executable, program, tmp_path / "run"], check=True, timeout=120)
    names = td.Run(tmp_path / "run").names()
    assert "loop/weights_put_back_since" in names
    assert ("loop/weights_put_back_chosen" in names) == is_chosen


PUTS_BACK = """\
import copy, sys
import torch
import traindbg as td

torch.manual_seed(0)
model = torch.nn.Linear(4, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
best, x = float("inf"), torch.randn(32, 4)
with td.watch(
    model, optimizer, run_dir=sys.argv[1], supervise=False, rules=["best_weights_not_kept"]
):
    for step in range(20):
        optimizer.zero_grad()
        (model(x) ** 2).mean().backward()
        optimizer.step()
        loss = abs(step - 10)
        {0}
            {1}
    model.load_state_dict(kept)
"""


def test_of_states_that_begin_alike_it_is_not_known_which_one_it_is():
    still, moved = torch.ones(3), torch.tensor([1.0, 1.0, 2.0])
    begin = _Beginnings("scale", {10: still, 20: moved, 30: still.clone()}, set())
    assert begin.since(moved.clone(), 50) == 30
    assert begin.since(still, 50) is None
    assert begin.since(torch.zeros(3), 50) is None
    assert begin.since(torch.ones(2), 50) is None
