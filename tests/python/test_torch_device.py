"""Tensors that only their framework can read: of them is recorded what host memory would give.

TRAINDBG_DEVICE_PATH=1 takes tensors in host memory this way, by the source of the kernels that a
GPU would run, or with TRAINDBG_DEVICE_KERNELS=0 by PyTorch's operations. Where there is a GPU, it
is used, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.base import device as devices
from traindbg.hooks.torch.recording import recording as recordings

if TYPE_CHECKING:
    from pathlib import Path

COLLECTIONS = ("weights", "biases", "gradients", "outputs", "activations", "weight_updates")
STEPS = 4
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 10, 3)
        self.relu = nn.ReLU()
        self.tokens = nn.Linear(10, 9)
        self.tanh = nn.Tanh()
        self.gate = nn.Sigmoid()
        self.head = nn.Linear(9, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.relu(self.conv(x)).flatten(2).transpose(1, 2)  # [batch, 36, 10], not contiguous
        x = self.gate(4 * self.tanh(3 * self.tokens(x)))
        return self.head(x.mean(1))


def train(directory: Path, device: str = "cpu", **wishes) -> td.Run:
    torch.manual_seed(0)
    model = Net()
    with torch.no_grad():
        model.conv.weight[4].zero_()
        model.conv.bias[4] = -1  # a dead channel
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(1)
    with td.watch(model, run_dir=directory, supervise=False, **wishes):
        for _ in range(STEPS):
            inputs = torch.randn(5, 3, 8, 8, generator=generator).to(device)
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), torch.arange(5, device=device) % 4).backward()
            optimizer.step()
    return td.Run(directory)


WAYS = [("1", "0"), ("1", "1"), ("1", "9"), ("0", "0")]  # kernels of ours, steps behind


@pytest.fixture(params=[(device, *way) for device in DEVICES for way in WAYS], ids=str)
def pair(request, tmp_path, monkeypatch):
    """A training that was read on a device, and the same one in host memory."""
    device, kernels, behind = request.param
    monkeypatch.setenv("TRAINDBG_DEVICE_KERNELS", kernels)
    monkeypatch.setenv("TRAINDBG_DEVICE_BEHIND", behind)

    def runs(**wishes) -> tuple[td.Run, td.Run]:
        here = train(tmp_path / "here", **wishes)
        monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
        there = train(tmp_path / "there", device, **wishes)
        assert sorted(there.names()) == sorted(here.names())
        assert not [event for event in there.events if event["kind"] == "not_captured"]
        return there, here

    runs.is_exact = device == "cpu"
    return runs


def steps_of(run: td.Run, name: str) -> list[int]:
    return run[name].raw_steps().tolist()


@pytest.mark.parametrize("most", [devices._MOST_BYTES, 1000])
def test_whole_tensors_histograms_channels_and_digests(most, pair, monkeypatch):
    monkeypatch.setattr(devices, "_MOST_BYTES", most)  # how much may be on its way
    what = ["raw", "histogram", "channels", "digest"]
    capture = [{"collection": name, "what": what, "every": 2} for name in COLLECTIONS]
    there, here = pair(rules=[], capture=capture)
    names = [name for name in here.names() if here[name].raw_steps().size]
    assert {name.partition("/")[0] for name in names} == {
        "weight",
        "bias",
        "gradient",
        "output",
        "activation",
        "weight_update",
    }
    for name in names:
        assert steps_of(there, name) == steps_of(here, name) == [0, 2]
        for step in (0, 2):
            mine, theirs = there[name], here[name]
            np.testing.assert_allclose(mine.value(step), theirs.value(step), rtol=1e-3, atol=1e-5)
            if pair.is_exact:
                np.testing.assert_array_equal(mine.value(step), theirs.value(step))
                assert mine.digest(step) == theirs.digest(step)
                for a, b in zip(mine.channels(step), theirs.channels(step), strict=True):
                    np.testing.assert_array_equal(a, b)
    if pair.is_exact:
        mine, theirs = (pa.table(run.table("histograms")).to_pandas() for run in (there, here))
        assert len(mine) > 100
        columns = ["step", "name", "lower", "upper", "count"]  # not the tensors' numbers
        mine, theirs = (
            table[columns].sort_values(columns, ignore_index=True) for table in (mine, theirs)
        )
        assert mine.equals(theirs)


@pytest.mark.parametrize("is_sent", [False, True])
def test_what_rules_need_of_activations_and_classes(is_sent, pair, monkeypatch):
    monkeypatch.setattr(devices, "is_better_sent", lambda tensor: is_sent)
    there, here = pair()
    counted = 0
    for step in range(STEPS):
        mine, theirs = there.step(step), here.step(step)
        assert mine.tensors.keys() == theirs.tensors.keys()
        for name, sample in theirs.tensors.items():
            found = mine.tensors[name]
            assert found.statistics.count == sample.statistics.count
            assert found.statistics.l2 == pytest.approx(sample.statistics.l2, rel=1e-3)
            for word in ("units", "inactive_units", "low", "high"):
                assert getattr(found, word) == getattr(sample, word), (name, word)
            counted += sample.units > 0
        for name, counts in theirs.classes.items():
            for word in ("labels", "predictions", "hits"):
                assert getattr(mine.classes[name], word) == getattr(counts, word)
        assert theirs.classes
    assert counted >= 3 * STEPS
    relu = here.step(0).tensors["activation/relu"]
    assert (relu.units, relu.inactive_units) == (10, 1)
    assert here.step(0).tensors["activation/tanh"].high > 0


@pytest.mark.parametrize("what", [["channels"], ["statistics", "channels"]])
@pytest.mark.parametrize("most", [16 << 20, 600])
def test_channels_of_what_is_large(what, most, pair, monkeypatch):
    monkeypatch.setattr(devices, "_SMALL_BYTES", 8)
    monkeypatch.setattr(devices, "_CHANNEL_BYTES", most)
    made = []
    real = devices.channels_of
    monkeypatch.setattr(
        devices, "channels_of", lambda tensor, by: made.append(tensor) or real(tensor, by)
    )
    capture = [{"collection": name, "what": what, "every": 2} for name in COLLECTIONS]
    there, here = pair(rules=[], capture=capture)
    kinds = ("weight", "bias", "gradient", "output", "activation", "weight_update")
    names = [name for name in here.names() if name.partition("/")[0] in kinds]
    names = [name for name in names if "ratio" not in name]
    assert len(names) >= 20
    assert len(made) >= 20
    for name in names:
        for step in (0, 2):
            for mine, theirs in zip(
                there[name].channels(step), here[name].channels(step), strict=True
            ):
                if pair.is_exact:
                    np.testing.assert_array_equal(mine, theirs)
                np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-5)
        has_statistics = 0 in here[name].steps().tolist()
        assert (0 in there[name].steps().tolist()) == has_statistics


@pytest.mark.parametrize("most", [16 << 20, 40])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_channels_of_odd_values(dtype, most, monkeypatch):
    monkeypatch.setattr(devices, "_CHANNEL_BYTES", most)
    x = torch.randn(5, 7, 4, generator=torch.Generator().manual_seed(1)).to(dtype)
    x[0] = float("nan")
    x[1, 2] = float("inf")
    x[2, 3], x[3] = -float("inf"), 0.0
    for dimension in range(3):
        rows = x.float().movedim(dimension, 0).flatten(1).double().numpy()
        least, most_of, zeros = devices.channels_of(x, dimension).numpy()
        for row, *found in zip(rows, least, most_of, zeros, strict=True):
            finite = row[np.isfinite(row)]
            ends = (finite.min(), finite.max()) if finite.size else (0, 0)
            assert found == [*ends, np.float32((row == 0).mean())]


def test_what_is_not_due_is_not_reduced(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
    monkeypatch.setenv("TRAINDBG_DEVICE_KERNELS", "0")
    made = []
    real = devices.statistics_vector
    monkeypatch.setattr(
        devices, "statistics_vector", lambda tensor: made.append(tensor.shape) or real(tensor)
    )
    heads = [{"collection": "heads", "every": 1}]
    run = train(tmp_path / "run", rules=[], collections={"heads": "^weight/head"}, capture=heads)
    assert made == [torch.Size([4, 9])] * STEPS
    assert run["weight/head.weight"].steps().tolist() == list(range(STEPS))


@pytest.mark.parametrize("kind", ["relu", "tanh", "sigmoid"])
@pytest.mark.parametrize("shape", [(), (7,), (4, 6), (2, 3, 5), (2, 3, 4, 4), (0, 3)])
def test_units_are_those_of_the_core(kind, shape, tmp_path, monkeypatch):
    module = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid}[kind]()

    class Root(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(()))
            self.act = module

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.act(x * self.weight)

    found = []
    for number, (path, kernels) in enumerate((("0", "1"), ("1", "1"), ("1", "0"))):
        monkeypatch.setenv("TRAINDBG_DEVICE_PATH", path)
        monkeypatch.setenv("TRAINDBG_DEVICE_KERNELS", kernels)
        model = Root()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        x = 5 * torch.randn(shape, generator=torch.Generator().manual_seed(3))
        run_dir = tmp_path / str(number)
        with td.watch(model, run_dir=run_dir, rules=["dead_relu"], supervise=False):
            recordings.current.session.capture_everything_for(1)
            model(x).sum().backward()
            optimizer.step()
        sample = td.Run(run_dir).step(0).tensors["activation/act"]
        found.append((sample.units, sample.inactive_units, sample.low, sample.high))
    assert found[0] == found[1] == found[2]


def test_a_step_whose_values_cannot_be_brought_over_leaves_nothing_behind(
    run_dir, monkeypatch, capfd
):
    monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
    monkeypatch.setenv("TRAINDBG_DEVICE_KERNELS", "0")
    monkeypatch.delenv("TRAINDBG_STRICT")
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    real, weights = torch.cat, []
    with td.watch(model, run_dir=run_dir, rules=[], raw="weights", collect="biases", every=1):
        for step in range(3):
            weights.append(model.weight.detach().clone().numpy())
            optimizer.zero_grad()
            model(torch.ones(3, 4)).square().sum().backward()

            def fails(*_, **__):
                raise torch.OutOfMemoryError("as a device says it")

            monkeypatch.setattr(torch, "cat", fails if step == 1 else real)
            optimizer.step()
    run = td.Run(run_dir)
    assert run["weight/weight"].raw_steps().tolist() == [0, 2]
    np.testing.assert_array_equal(run["weight/weight"].value(2), weights[2])
    assert run["bias/bias"].steps().tolist() == [0, 2]
    assert "devices: " in capfd.readouterr().err


OPERATIONS = """
import torch
if {is_gone}:
    del torch._C._DisableAutocast
from traindbg.hooks.torch.base.device import own_operations
x = torch.ones(2, 2, requires_grad=True)
with torch.autocast("cpu", dtype=torch.bfloat16):
    with own_operations():
        product = x @ x
    print(product.dtype, product.requires_grad, (x @ x).dtype)
with own_operations():
    print((x @ x).dtype)
"""


@pytest.mark.parametrize("is_gone", [False, True])
def test_own_operations_are_not_cast(python, is_gone):
    """With what PyTorch has for it, which is not public, and without."""
    done = python(OPERATIONS.format(is_gone=is_gone))
    assert done.stderr == ""
    assert done.stdout.split() == ["torch.float32", "False", "torch.bfloat16", "torch.float32"]


def test_several_losses_of_a_step_send_the_first_alone(run_dir, monkeypatch):
    monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
    sent = []
    real = devices.Deferred._send
    monkeypatch.setattr(
        devices.Deferred, "_send", lambda self, x: sent.append(tuple(x.shape)) or real(self, x)
    )
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    labels = torch.tensor([0, 1, 2, 0, 1])
    with td.watch(model, run_dir=run_dir, rules=["class_imbalance"], supervise=False):
        for _ in range(7):
            F.cross_entropy(model(torch.ones(5, 4)), labels).backward()
        optimizer.step()
    assert sent.count((5, 3)) == 1
    (counts,) = td.Run(run_dir).step(0).classes.values()
    assert list(counts.labels) == [2, 2, 1]


def test_other_threads_hand_tensors_over_while_steps_are_behind(python, run_dir):
    """To read a strided tensor lets other threads run: none of them may wait for the other."""
    done = python(
        THREADS.format(run_dir=str(run_dir)),
        TRAINDBG_DEVICE_PATH="1",
        TRAINDBG_DEVICE_BEHIND="1",
        TRAINDBG_STRICT="1",
    )
    assert done.returncode == 0, done.stderr
    run = td.Run(run_dir)
    losses = np.array(done.stdout.split(), dtype=np.float32)
    assert run["loss/cross_entropy"].steps().tolist() == list(range(len(losses)))
    np.testing.assert_array_equal(np.float32(run["loss/cross_entropy"].values()), losses)
    assert run["custom/strided"].steps().size > 0


THREADS = """
import faulthandler, threading
import torch
import traindbg as td

faulthandler.dump_traceback_later(50, exit=True)
torch.set_num_threads(1)
model = torch.nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
is_over = threading.Event()

def hand_over():
    x = torch.randn(64, 64)
    while not is_over.is_set():
        td.save("strided", x.t()[::2])
        td.save("dense", x)

wishes = dict(rules=[], collect=["weights", "gradients", "losses"], every=1)
with td.watch(model, optimizer, run_dir={run_dir!r}, supervise=False, **wishes):
    threads = [threading.Thread(target=hand_over) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(100):
        labels = torch.randint(0, 3, (16,))
        loss = torch.nn.functional.cross_entropy(model(torch.randn(16, 8)), labels)
        loss.backward()
        optimizer.step()
        print(loss.item())
    is_over.set()
    for thread in threads:
        thread.join()
"""
