"""Complex tensors are looked at by absolute values, sparse ones as a whole where asked for."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from test_torch_values import check
from torch import nn
from torch.nn import functional as F

import traindbg as td

EVERYTHING = ["weights", "gradients", "outputs", "weight_updates", "optimizer_state"]


@pytest.fixture(params=["cpu path", "device path"], autouse=True)
def path(request, monkeypatch):
    if request.param == "device path":
        monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")


class Spectral(nn.Module):
    """A layer of a Fourier neural operator."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 3, dtype=torch.complex64))
        self.seen = nn.Identity()

    def forward(self, x):
        return self.seen(torch.fft.fft(x) @ self.weight).abs()


def test_complex_tensors(run_dir):
    torch.manual_seed(0)
    model = Spectral()
    plain = Spectral()
    plain.load_state_dict(model.state_dict())
    x, y = torch.randn(16, 8), torch.randn(16, 3)
    seen = []

    def train(model, watched):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            if watched:
                seen.append((model.weight.detach().clone(), model.weight.grad.clone()))
            optimizer.step()

    wishes = {"rules": [], "collect": EVERYTHING, "raw": ["gradients"], "every": 1}
    with td.watch(model, run_dir=run_dir, supervise=False, **wishes):
        train(model, watched=True)
    train(plain, watched=False)
    assert torch.equal(model.weight, plain.weight)
    run = td.Run(run_dir)
    for step, (weight, gradient) in enumerate(seen):
        tensors = run.step(step).tensors
        check(tensors["weight/weight"].statistics, weight.abs())
        check(tensors["gradient/weight"].statistics, gradient.abs())
        np.testing.assert_array_equal(run["gradient/weight"].value(step), gradient.abs().numpy())
        assert tensors["output/seen"].statistics.count == 48
    check(run.step(0).tensors["weight_update/weight"].statistics, (seen[1][0] - seen[0][0]).abs())
    assert 0 < run.scalars("update_ratio/weight").values[0] < 1
    assert run["weight/weight"].info["dtype"] == "complex64"


def test_sparse_gradients_are_kept_whole_where_that_is_wanted(run_dir):
    model = nn.Sequential(nn.Embedding(10, 3, sparse=True), nn.Flatten(), nn.Linear(6, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wishes = {"rules": [], "raw": ["gradients"], "every": 1}
    with td.watch(model, run_dir=run_dir, supervise=False, **wishes):
        F.cross_entropy(model(torch.tensor([[1, 2], [2, 5]])), torch.tensor([0, 1])).backward()
        gradient = model[0].weight.grad.to_dense().numpy().copy()
        optimizer.step()
    run = td.Run(run_dir)
    np.testing.assert_array_equal(run["gradient/0.weight"].value(0), gradient)
    assert run.step(0).tensors["gradient/0.weight"].statistics.zero == 21
