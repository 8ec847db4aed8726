"""Trainings on a GPU. Where there is none, `test_torch_device` goes the same way."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

EVERYTHING = [
    "weights",
    "biases",
    "gradients",
    "losses",
    "inputs",
    "outputs",
    "activations",
    "weight_updates",
    "optimizer_state",
]
WISHES = {
    "default": {},
    "losses": {"rules": [], "collect": ["losses"], "every": 1},
    "statistics": {"rules": [], "collect": EVERYTHING, "every": 1},
    "raw": {"rules": [], "raw": ["weights", "gradients", "outputs"], "every": 2},
    "flight": {"rules": [], "flight_recorder": 5},
}


@pytest.fixture(autouse=True)
def _deterministic(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    torch.cuda.init()


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 16, 3),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 8, 3),
        nn.Tanh(),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(8 * 8 * 8, 10),
    ).cuda()


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(step)
    images = torch.randn(16, 3, 12, 12, generator=generator)
    return images.cuda(), torch.randint(0, 10, (16,), generator=generator).cuda()


def train(model, steps=12, optimizer=None, autocast=None, scaler=None) -> list[float]:
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    torch.manual_seed(1)
    for step in range(steps):
        images, labels = batch(step)
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=autocast, enabled=autocast is not None):
            loss = F.cross_entropy(model(images), labels)
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        losses.append(loss.detach())
    return [loss.item() for loss in losses]


def weights(model) -> list[torch.Tensor]:
    return [tensor.detach().cpu() for tensor in model.state_dict().values()]


@pytest.mark.parametrize("kernels", ["1", "0"])
@pytest.mark.parametrize("wishes", list(WISHES))
@pytest.mark.parametrize("kind", ["plain", "bf16", "fp16"])
def test_the_training_is_the_same_bit_for_bit(kind, wishes, kernels, tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINDBG_DEVICE_KERNELS", kernels)
    autocast = {"plain": None, "bf16": torch.bfloat16, "fp16": torch.float16}[kind]

    def scaler():
        return torch.amp.GradScaler("cuda") if kind == "fp16" else None

    plain = net()
    losses = train(plain, autocast=autocast, scaler=scaler())
    model = net()
    with td.watch(model, run_dir=tmp_path / "run", supervise=False, **WISHES[wishes]):
        watched = train(model, autocast=autocast, scaler=scaler())
    assert watched == losses
    assert all(map(torch.equal, weights(model), weights(plain)))


@pytest.mark.parametrize("kernels", ["1", "0"])
@pytest.mark.parametrize("wishes", ["default", "losses", "statistics", "flight"])
def test_every_loss_is_recorded_with_its_step(wishes, kernels, tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINDBG_DEVICE_KERNELS", kernels)
    model = net()
    settings = dict(WISHES[wishes])
    if wishes == "flight":
        settings |= {"collect": ["losses"], "every": 1}
    with td.watch(model, run_dir=tmp_path / "run", supervise=False, **settings):
        losses = train(model, steps=30)
    run = td.Run(tmp_path / "run")
    series = run["loss/cross_entropy"]
    assert series.steps().tolist() == list(range(30))
    np.testing.assert_array_equal(np.float32(series.values()), np.float32(losses))


def test_losses_of_two_optimizers_go_to_their_own(tmp_path):
    one, two = net(), net()
    run_dir = tmp_path / "run"
    with (
        td.watch(one, run_dir=run_dir, supervise=False),
        td.watch(two, run_dir=run_dir, supervise=False),
    ):
        first = torch.optim.SGD(one.parameters(), lr=0.01)
        second = torch.optim.SGD(two.parameters(), lr=0.01)
        wanted = [], []
        for step in range(20):
            images, labels = batch(step)
            for model, optimizer, kept in ((one, first, wanted[0]), (two, second, wanted[1])):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(images), labels)
                loss.backward()
                optimizer.step()
                kept.append(loss.detach())
    run = td.Run(run_dir)
    found = {
        tuple(np.float32(run[name].values()).tolist())
        for name in run.names()
        if name.startswith("loss/")
    }
    for kept in wanted:
        assert tuple(np.float32([loss.item() for loss in kept]).tolist()) in found


TYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
]


def tensors() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    out = {}
    for dtype in TYPES:
        for size in (1, 7, 1000, 3_000_001):
            values = 3 * torch.randn(size, generator=generator) + 1
            out[f"{dtype}_{size}"] = values.to(dtype)
    base = torch.randn(6, 10, 8, 8, generator=generator)
    out["channels_last"] = base.to(memory_format=torch.channels_last)
    out["transposed"] = base[0, 0].t()
    out["sliced"] = base[:, ::2]
    out["offset"] = base.reshape(-1)[3:]
    out["expanded"] = base[:1].expand(6, 10, 8, 8)
    out["empty"] = torch.zeros(0, 3)
    out["complex"] = torch.complex(base, base)
    odd = torch.randn(5000, generator=generator)
    odd[::7], odd[::11], odd[::13], odd[::17] = float("nan"), float("inf"), -float("inf"), 0.0
    out["odd"] = odd
    out["half_odd"] = odd.half()
    return out


@pytest.mark.parametrize("kernels", ["1", "0"])
def test_statistics_are_those_of_host_memory(kernels, tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINDBG_DEVICE_KERNELS", kernels)
    runs = []
    for device in ("cpu", "cuda"):
        model = nn.Linear(2, 2).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        run_dir = tmp_path / device
        with td.watch(model, optimizer, run_dir=run_dir, rules=[], supervise=False):
            for _ in range(2):
                for name, tensor in tensors().items():
                    td.save(name, tensor.to(device))
                model(torch.ones(3, 2, device=device)).sum().backward()
                optimizer.step()
        runs.append(td.Run(run_dir))
    here, there = runs
    count = 0
    for step in (0, 1):
        mine, theirs = there.step(step).tensors, here.step(step).tensors
        assert mine.keys() == theirs.keys()
        for name, sample in theirs.items():
            a, b = mine[name].statistics, sample.statistics
            for field in ("count", "nan", "positive_infinite", "negative_infinite", "zero"):
                assert getattr(a, field) == getattr(b, field), (name, field)
            scale = max(abs(b.min), abs(b.max), 1e-30)
            for field in ("min", "max", "mean", "std"):
                assert getattr(a, field) == pytest.approx(
                    getattr(b, field), rel=2e-6, abs=2e-6 * scale
                ), (name, field)
            for field in ("l1", "l2"):
                assert getattr(a, field) == pytest.approx(getattr(b, field), rel=3e-6), (
                    name,
                    field,
                )
            count += 1
    assert count >= 2 * 50


def test_a_tensor_that_changes_after_it_was_seen(tmp_path):
    """In-place operations right behind, on the same stream and on another."""
    model = nn.Linear(2, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    side = torch.cuda.Stream()
    with td.watch(model, optimizer, run_dir=tmp_path / "run", rules=[], supervise=False):
        for step in range(20):
            x = torch.full((4_000_000,), float(step), device="cuda")
            td.save("here", x)
            x.fill_(-1)
            with torch.cuda.stream(side):
                side.wait_stream(torch.cuda.default_stream())
                y = torch.full((4_000_000,), float(step), device="cuda")
                td.save("aside", y)
                y.fill_(-1)
            model(torch.ones(3, 2, device="cuda")).sum().backward()
            optimizer.step()
    run = td.Run(tmp_path / "run")
    for name in ("here", "aside"):
        for step in range(20):
            statistics = run.step(step).tensors[f"custom/{name}"].statistics
            assert (statistics.min, statistics.max, statistics.std) == (step, step, 0)


def test_steps_in_a_graph_are_left_alone(tmp_path):
    model = net().eval()
    plain = net().eval()
    optimizers = [torch.optim.SGD(m.parameters(), lr=1e-2) for m in (model, plain)]
    static = batch(0)

    def graph_of(model, optimizer):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                optimizer.zero_grad(set_to_none=True)
                F.cross_entropy(model(static[0]), static[1]).backward()
                optimizer.step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            F.cross_entropy(model(static[0]), static[1]).backward()
            optimizer.step()
        return graph

    expected = graph_of(plain, optimizers[1])
    with td.watch(model, optimizers[0], run_dir=tmp_path / "run", supervise=False):
        graph = graph_of(model, optimizers[0])
        for _ in range(5):
            graph.replay()
            expected.replay()
    torch.cuda.synchronize()
    assert all(map(torch.equal, weights(model), weights(plain)))


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compiled_models(mode, tmp_path):
    model, plain = net(), net()
    compiled = [torch.compile(m, mode=mode) for m in (model, plain)]

    def steps(model, call):
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
        torch.manual_seed(1)
        for step in range(8):
            images, labels = batch(step)
            optimizer.zero_grad()
            F.cross_entropy(call(images), labels).backward()
            optimizer.step()

    steps(plain, compiled[1])
    wishes = {"rules": [], "collect": ["weights", "gradients", "losses"], "every": 2}
    with td.watch(model, run_dir=tmp_path / "run", supervise=False, **wishes):
        steps(model, compiled[0])
    for mine, theirs in zip(weights(model), weights(plain), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)
    assert td.Run(tmp_path / "run")["gradient/7.weight"].steps().tolist() == [0, 2, 4, 6]


def test_nothing_of_the_device_is_kept(tmp_path):
    model = net()
    train(model, steps=2)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    peaks = []
    for number in range(3):
        with td.watch(
            model, run_dir=tmp_path / str(number), supervise=False, **WISHES["statistics"]
        ):
            train(model, steps=5)
        torch.cuda.synchronize()
        peaks.append(torch.cuda.memory_allocated())
    assert max(peaks) <= before + (1 << 20)


@pytest.mark.parametrize("wishes", ["losses", "statistics", "default"])
def test_waits_of_pytorch_are_few(wishes, tmp_path, monkeypatch):
    """The session's own wait, one in a captured step, PyTorch does not know of."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    waits = []

    def count(message, *_, **__):
        if "synchroniz" in str(message):
            waits[-1] += 1

    with (
        warnings.catch_warnings(),
        td.watch(model, optimizer, run_dir=tmp_path / "run", supervise=False, **WISHES[wishes]),
    ):
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", count)
        for step in range(30):
            images, labels = batch(step)
            waits.append(0)
            torch.cuda.set_sync_debug_mode("warn")
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()
            torch.cuda.set_sync_debug_mode("default")
    print(wishes, waits)
    assert max(waits) <= 3
