"""`td.save`: tensors of the user's own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from test_torch_values import check
from torch import nn
from torch.nn import functional as F

import traindbg as td


class Loop:
    """A small training; `step` ends a step."""

    def __init__(self) -> None:
        self.model = nn.Linear(4, 3)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def step(self) -> None:
        self.model(torch.ones(2, 4)).square().mean().backward()
        self.optimizer.step()


@pytest.fixture
def loop():
    return Loop()


TENSORS = {
    "float": torch.randn(5, 6, generator=torch.Generator().manual_seed(1)),
    "transposed": torch.randn(5, 6, generator=torch.Generator().manual_seed(2)).t(),
    "part": torch.arange(100.0).reshape(10, 10)[2:9:3, ::2],
    "expanded": torch.arange(3.0).expand(4, 3),
    "half": torch.linspace(-1, 1, 33, dtype=torch.float16),
    "brain": torch.linspace(-1, 1, 33, dtype=torch.bfloat16),
    "double": torch.linspace(0, 1, 33, dtype=torch.float64),
    "integer": torch.arange(-3, 9),
    "truth": torch.tensor([True, False, True]),
    "zero-dim": torch.tensor(3.5),
}


@pytest.mark.parametrize("path", ["cpu path", "device path"])
def test_tensors_of_any_kind_are_kept_at_any_step(path, loop, run_dir, monkeypatch):
    if path == "device path":
        monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
    with td.watch(loop.model, run_dir=run_dir, rules=[], supervise=False):
        for number in range(3):
            if number != 1:
                for name, tensor in TENSORS.items():
                    td.save(name, tensor)
                    td.save(name, tensor + 1)  # the first of a step is kept
            loop.step()
    run = td.Run(run_dir)
    assert run.steps().tolist() == [0, 2]
    for step in (run.step(0), run.step(2)):
        for name, tensor in TENSORS.items():
            check(step.tensors[f"custom/{name}"].statistics, tensor)
    info = run["custom/transposed"].info
    assert (info["role"], info["collection"]) == ("other", "other")
    assert (info["dtype"], info["shape"]) == ("float32", (6, 5))


def test_what_is_saved_is_what_it_was_then(loop, run_dir):
    value = torch.ones(3)
    parameter = nn.Parameter(torch.ones(2) * 4)
    with td.watch(loop.model, run_dir=run_dir, supervise=False):
        td.save("value", value)
        td.save("parameter", parameter * 2)
        value += 1
        loop.step()
    step = td.Run(run_dir).step(0)
    assert step.tensors["custom/value"].statistics.max == 1
    assert step.tensors["custom/parameter"].statistics.l1 == 16


def test_arrays_and_numbers(loop, run_dir):
    with td.watch(loop.model, run_dir=run_dir, supervise=False):
        td.save("array", np.arange(6, dtype=np.int32).reshape(2, 3)[:, ::-1])
        td.save("scalar", np.float32(0.5))
        td.save("number", 7)
        td.save("truth", True)
        loop.step()
    tensors = td.Run(run_dir).step(0).tensors
    assert tensors["custom/array"].statistics.l1 == 15
    assert tensors["custom/scalar"].statistics.mean == 0.5
    assert (tensors["custom/number"].statistics.count, tensors["custom/number"].statistics.max) == (
        1,
        7,
    )
    assert tensors["custom/truth"].statistics.max == 1


def test_in_an_evaluation_it_belongs_to_it(loop, run_dir):
    with td.watch(loop.model, run_dir=run_dir, supervise=False):
        loop.step()
        loop.model.eval()
        with torch.no_grad():
            for number in range(2):
                F.mse_loss(loop.model(torch.ones(2, 4)), torch.ones(2, 3))
                td.save("scores", torch.full((3,), float(number)))
        loop.model.train()
        loop.step()
    run = td.Run(run_dir)
    assert run["custom/scores"].steps().tolist() == []
    assert run["custom/scores"].values("max", "eval").tolist() == [0, 1]


def test_whole_values_and_histograms_where_they_are_asked_for(loop, run_dir):
    attention, other = torch.rand(2, 5, 5), torch.rand(3)
    with td.watch(
        loop.model,
        run_dir=run_dir,
        rules=[],
        collections={"maps": "^custom/attention"},
        raw="maps",
        histograms="other",
        every=2,
        supervise=False,
    ):
        for _ in range(3):
            td.save("attention", attention)
            td.save("other", other)
            loop.step()
    run = td.Run(run_dir)
    assert run["custom/attention"].raw_steps().tolist() == [0, 2]
    np.testing.assert_array_equal(run["custom/attention"].value(2), attention.numpy())
    assert run["custom/attention"].steps().tolist() == [0, 1, 2]
    assert len(run["custom/other"].raw_steps()) == 0
    assert run.names(collection="maps") == ["custom/attention"]


def test_what_is_no_tensor_is_skipped_counted_and_said_once_for_each_name(loop, run_dir, capfd):
    bad = ["text", None, [1, 2], object(), torch.eye(3).to_sparse_csr()]
    with td.watch(loop.model, run_dir=run_dir, supervise=False) as watcher:
        for value in bad:
            td.save("bad", value)
        td.save(7, torch.ones(1))
        td.save("strings", np.array(["a", "b"]))
        td.save("good", torch.ones(2))
        counts = watcher._recording.session.counts()
        loop.step()
    assert counts["tensors_skipped"] == len(bad) + 2
    run = td.Run(run_dir)
    assert "custom/good" in run.step(0).tensors
    assert "custom/bad" not in run
    told = [e["data"]["what"] for e in run.events if e["kind"] == "not_captured"]
    assert told == ["custom/bad", "custom/7"]
    told = [e["data"]["tensor"] for e in run.events if e["kind"] == "tensor_skipped"]
    assert told == ["custom/strings"]
    said = [line for line in capfd.readouterr().err.splitlines() if "custom/bad" in line]
    assert len(said) == 1
    assert "given a value of type str; it takes a tensor" in said[0]


def test_without_a_watched_training_nothing_happens(loop, run_dir):
    td.save("x", torch.ones(2))
    td.save("x", None)
    with td.watch(loop.model, run_dir=run_dir, supervise=False):
        loop.step()
    td.save("x", torch.ones(2))
    assert "custom/x" not in td.Run(run_dir)
