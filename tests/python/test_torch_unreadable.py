"""Tensors whose values cannot be read: each is named with the reason, and harms no other."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import traindbg as td
from traindbg import _core

pytestmark = [
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors"),
    pytest.mark.filterwarnings("ignore:Sparse (CSR|CSC|BSR)"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def parts():
    return [torch.randn(3, 4), torch.randn(5, 4)]


KINDS = {
    "quantized": (
        lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
        "quantized",
    ),
    "csr": (lambda: torch.eye(3).to_sparse_csr(), "its layout is torch.sparse_csr"),
    "csc": (lambda: torch.eye(3).to_sparse_csc(), "its layout is torch.sparse_csc"),
    "bsr": (lambda: torch.eye(4).to_sparse_bsr((2, 2)), "its layout is torch.sparse_bsr"),
    "meta": (lambda: torch.empty(3, device="meta"), "meta device"),
    "strided": (lambda: torch.nested.nested_tensor(parts(), layout=torch.strided), "nested"),
    "jagged": (lambda: torch.nested.nested_tensor(parts(), layout=torch.jagged), "nested"),
}


def skipped(run):
    events = [event["data"] for event in run.events if event["kind"] == "tensor_skipped"]
    told = {entry["tensor"]: entry["reason"] for entry in events}
    assert len(told) == len(events), "once for each name"
    return told


def train(model, run_dir, x=None, collect=("buffers", "outputs", "inputs"), steps=3):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    options = {"collect": list(collect), "every": 1, "rules": [], "supervise": False}
    with td.watch(model, optimizer, run_dir=run_dir, **options):
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.randn(2, 4) if x is None else x).square().mean().backward()
            optimizer.step()
    return td.Run(run_dir)


@pytest.mark.parametrize("kind", KINDS)
def test_the_reason_is_named(kind):
    make, reason = KINDS[kind]
    tensor = make()
    assert _core.readable(tensor) == "no"
    assert reason in _core.why_unreadable(tensor)


@pytest.mark.parametrize("path", ["cpu path", "device path"])
def test_buffers_are_told_once_and_the_others_are_taken(path, run_dir, monkeypatch, capfd):
    if path == "device path":
        monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    for kind, (make, _) in KINDS.items():
        model.register_buffer(kind, make())
    model.register_buffer("last", torch.ones(2))
    run = train(model, run_dir)
    told = skipped(run)
    assert told.keys() == {f"buffer/{kind}" for kind in KINDS}
    for kind, (_, reason) in KINDS.items():
        assert reason in told[f"buffer/{kind}"]
    assert run["buffer/last"].steps().tolist() == [0, 1, 2]
    assert run["buffer/1.running_var"].steps().tolist() == [0, 1, 2]
    assert run["buffer/strided"].info["shape"] == run["buffer/jagged"].info["shape"] == (2, 0, 4)
    assert "hook_error" not in {event["kind"] for event in run.events}
    assert capfd.readouterr().err.count("is not recorded") <= 1


def test_what_is_no_tensor_among_buffers_is_told(run_dir):
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    model._buffers["odd"] = "no tensor"
    run = train(model, run_dir)
    assert skipped(run).keys() == {"buffer/odd"}
    assert run["buffer/1.running_var"].steps().size == 3


class Split(nn.Module):
    def forward(self, x):
        return torch.nested.nested_tensor(list(x), layout=torch.strided)


class Padded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.split = Split()
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        return self.last(self.split(x).to_padded_tensor(0.0))


class Mean(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 3)
        self.last = nn.Linear(3, 2)

    def forward(self, x):
        return self.last(torch.stack([each.mean(0) for each in self.first(x).unbind()]))


def test_a_nested_output_is_told_without_an_error(run_dir, capfd):
    run = train(Padded(), run_dir)
    told = skipped(run)
    assert told.keys() == {"output/split"}
    assert "nested" in told["output/split"]
    assert run["output/last"].steps().size == 3
    assert "Internal error" not in capfd.readouterr().err


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided], ids=str)
def test_nested_inputs_are_told(layout, run_dir):
    x = torch.nested.nested_tensor(parts(), layout=layout)
    run = train(Mean(), run_dir, x)
    assert skipped(run).keys() == {"input/0", "output/first"}
    assert run["output/last"].steps().size == 3
    assert "hook_error" not in {event["kind"] for event in run.events}


def test_what_is_not_asked_for_is_not_told(run_dir):
    model = nn.Sequential(nn.Linear(4, 3))
    model.register_buffer("csr", torch.eye(3).to_sparse_csr())
    run = train(model, run_dir, collect=["outputs"])
    assert not skipped(run)


@pytest.mark.parametrize("kind", KINDS)
def test_saved_by_the_user_it_is_told_why_not(kind, run_dir, capfd):
    make, reason = KINDS[kind]
    model = nn.Linear(4, 2)
    with td.watch(model, run_dir=run_dir, rules=[], supervise=False):
        for _ in range(3):
            td.save("odd", make())
    run = td.Run(run_dir)
    (told,) = (event["data"] for event in run.events if event["kind"] == "not_captured")
    assert told["what"] == "custom/odd"
    assert reason in told["reason"]
    assert capfd.readouterr().err.count("custom/odd") == 1
