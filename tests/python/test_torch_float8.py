"""Floats of 8 bits: every pattern of every type, compared with PyTorch's own conversion."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

import traindbg as td

NAMES = (
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
)

LARGEST = torch.finfo(torch.float32).max  # as which statistics are kept


@pytest.fixture(params=[name for name in NAMES if hasattr(torch, name)])
def dtype(request) -> torch.dtype:
    return getattr(torch, request.param)


def record(run_dir, tensors: dict[str, torch.Tensor], **wishes) -> td.Run:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, run_dir=run_dir, rules=[], supervise=False, **wishes):
        for name, tensor in tensors.items():
            td.save(name, tensor)
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    return td.Run(run_dir)


def check(statistics, tensor: torch.Tensor, what: str) -> None:
    x = tensor.to(torch.float32).double()
    finite = x[x.isfinite()]
    assert statistics.count == x.numel(), what
    assert statistics.nan == x.isnan().sum(), what
    assert statistics.positive_infinite == x.isposinf().sum(), what
    assert statistics.negative_infinite == x.isneginf().sum(), what
    assert statistics.zero == (x == 0).sum(), what
    if finite.numel() == 0:
        return
    assert (statistics.min, statistics.max) == (finite.min(), finite.max()), what
    size = finite.abs().max().item()
    assert statistics.mean == pytest.approx(finite.mean().item(), rel=1e-6, abs=1e-6 * size), what
    assert statistics.std == pytest.approx(finite.std(unbiased=False).item(), rel=1e-5), what
    l1, l2 = finite.abs().sum().item(), finite.norm().item()
    assert statistics.l1 == pytest.approx(min(l1, LARGEST), rel=1e-6), what
    assert statistics.l2 == pytest.approx(min(l2, LARGEST), rel=1e-5), what


@pytest.mark.parametrize("path", ["cpu path", "device path"])
def test_statistics_of_every_pattern_and_of_slices(path, dtype, run_dir, monkeypatch):
    if path == "device path":
        monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
    every = torch.arange(256, dtype=torch.uint8).view(dtype)
    generator = torch.Generator().manual_seed(3)
    many = torch.randint(0, 256, (5001,), dtype=torch.uint8, generator=generator)
    tensors = {f"bits/{bits}": every[bits : bits + 1] for bits in range(256)}
    tensors |= {
        "all": every,
        "numbers": every[1:100],
        "negative": every[129:200],
        "every seventh": every[16:240:7],
        "turned": every.view(16, 16).t()[2:9, ::3],
        "many": many.view(dtype),
        "not aligned": many.view(dtype)[1:].view(1000, 5)[:, 1:3],
    }
    run = record(run_dir, tensors)
    step = run.step(0)
    assert run["custom/all"].info["dtype"] == str(dtype).removeprefix("torch.")
    for name, tensor in tensors.items():
        check(step.tensors[f"custom/{name}"].statistics, tensor, f"{dtype} {name}")


def test_whole_values(dtype, run_dir):
    every = torch.arange(256, dtype=torch.uint8).view(dtype)
    run = record(run_dir, {"all": every, "part": every.view(16, 16)[3:5]}, raw=["other"])
    found = run["custom/all"].value(0)
    expected = every.to(torch.float32).numpy()
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected)
    is_number = ~np.isnan(expected)  # of NaN the sign means nothing
    np.testing.assert_array_equal(np.signbit(found)[is_number], np.signbit(expected)[is_number])
    np.testing.assert_array_equal(run["custom/part"].value(0), expected.reshape(16, 16)[3:5])


def test_parameters_of_it(dtype, run_dir):
    """As a layer of its own would hold them, with scales beside them."""
    model = nn.Linear(4, 3)
    model.narrow = nn.Parameter(
        torch.arange(16, dtype=torch.uint8).view(4, 4).view(dtype), requires_grad=False
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, collect="weights", supervise=False):
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    statistics = td.Run(run_dir).step(0).tensors["weight/narrow"].statistics
    check(statistics, model.narrow.detach(), str(dtype))
    assert math.isfinite(statistics.l2)
