"""Channels and digests of a real training: what NumPy says of the same tensors."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import traindbg as td
from traindbg.errors import InvalidArgument, NotFound

STEPS = 12
WHAT = ["channels", "digest", "raw"]
CAPTURE = [
    {"collection": name, "what": WHAT, "every": 4}
    for name in ("weights", "biases", "gradients", "outputs", "activations", "weight_updates")
]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 10, 3)
        self.relu = nn.ReLU()
        self.tokens = nn.Linear(6, 9)
        self.head = nn.Linear(9, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.relu(self.conv(x)).flatten(2).transpose(1, 2)  # [batch, 36, 10], not contiguous
        return self.head(self.tokens(x[..., :6]).mean(1))


def train(
    directory: Path, *, steps: int = STEPS, channels_last: bool = False, noise: int | None = None
) -> td.Run:
    torch.manual_seed(0)
    model = Net()
    with torch.no_grad():
        model.conv.weight[4].zero_()
        model.conv.bias[4] = -1  # a dead channel
    layout = torch.channels_last if channels_last else torch.contiguous_format
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with td.watch(model, run_dir=directory, rules=[], capture=CAPTURE, supervise=False):
        for step in range(steps):
            inputs = torch.randn(5, 3, 8, 8).to(memory_format=layout)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), torch.arange(5) % 4)
            loss.backward()
            optimizer.step()
            if step == noise:
                with torch.no_grad():  # the last bit of one weight
                    model.head.weight.data.view(torch.int32)[2, 3] ^= 1
    return td.Run(directory)


@pytest.fixture(scope="module", name="run")
def _run(tmp_path_factory: pytest.TempPathFactory) -> td.Run:
    return train(tmp_path_factory.mktemp("reductions") / "run")


def check(run: td.Run, name: str, step: int, axis: int) -> None:
    values = run[name].value(step)
    rest = tuple(i for i in range(values.ndim) if i != axis)
    channels = run[name].channels(step)
    np.testing.assert_array_equal(channels.min, values.min(axis=rest))
    np.testing.assert_array_equal(channels.max, values.max(axis=rest))
    np.testing.assert_allclose(channels.zero, (values == 0).mean(axis=rest), rtol=1e-6)
    digest = run[name].digest(step)
    product = values.astype(np.longdouble).prod(dtype=np.longdouble)
    assert digest.product == pytest.approx(float(product), rel=1e-9)
    assert len(digest.fingerprint) == 16


@pytest.mark.parametrize("step", [0, 4, 8])
def test_they_are_what_numpy_says_of_the_whole_tensors(run: td.Run, step: int) -> None:
    for name, axis in (
        ("weight/conv.weight", 0),
        ("weight/head.weight", 0),
        ("bias/conv.bias", 0),
        ("gradient/conv.weight", 0),
        ("gradient/head.weight", 0),
        ("weight_update/head.weight", 0),
        ("output/conv", 1),
        ("activation/relu", 1),
        ("output/tokens", 2),
        ("output/head", 1),
    ):
        check(run, name, step, axis)
    dead = run["activation/relu"].channels(step)
    assert dead.zero[4] == 1
    assert (dead.min[4], dead.max[4]) == (0, 0)
    assert dead.zero.shape == (10,)


def test_equal_trainings_have_equal_fingerprints_up_to_where_they_part(
    run: td.Run, tmp_path: Path
) -> None:
    same = train(tmp_path / "same")
    other = train(tmp_path / "other", noise=5)
    name = "weight/head.weight"
    assert [run[name].digest(step) for step in (0, 4, 8)] == [
        same[name].digest(step) for step in (0, 4, 8)
    ]
    assert run[name].digest(4) == other[name].digest(4)
    assert run[name].digest(8).fingerprint != other[name].digest(8).fingerprint
    seen = [run[name].digest(step).fingerprint for step in (0, 4, 8)]
    assert all(one != two for one, two in pairwise(seen)), "it is being trained"


def test_the_comparison_of_the_document_finds_where_runs_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for library in ("pandas", "pyarrow"):
        pytest.importorskip(library)
    page = (Path(__file__).parents[2] / "docs" / "torch.md").read_text()
    section = page.split("\n## Channels and digests\n")[1].split("\n## ")[0]
    [example] = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    train(tmp_path / "run-1")
    train(tmp_path / "run-2", steps=STEPS - 3, noise=5)  # ends before, and parts after step 5
    found: dict[str, Any] = {}
    exec(example, found)
    rows = found["parted"].reset_index()
    assert set(rows["step"]) == {8}
    assert set(rows["worker"]) == {0}
    assert "weight/head.weight" in set(rows["name"])
    assert "train" in capsys.readouterr().out
    train(tmp_path / "longer", steps=STEPS + 1)
    (tmp_path / "run-2").rename(tmp_path / "noisy")
    (tmp_path / "longer").rename(tmp_path / "run-2")
    exec(example, found)
    assert found["parted"].empty


def test_channels_last_is_only_a_layout(tmp_path: Path) -> None:
    run = train(tmp_path / "last", channels_last=True)
    for name, axis in (("output/conv", 1), ("activation/relu", 1)):
        check(run, name, 4, axis)


def test_series_and_tables_have_them(run: td.Run) -> None:
    pa = pytest.importorskip("pyarrow")
    name = "weight/head.weight"
    products = run[name].series("product")
    assert products.steps.tolist() == [0, 4, 8]
    assert products.values.tolist() == [run[name].digest(step).product for step in (0, 4, 8)]
    table = pa.table(run.table("digests", names="^weight/head.weight$")).to_pylist()
    assert [row["fingerprint"] for row in table] == [
        run[name].digest(step).fingerprint for step in (0, 4, 8)
    ]
    rows = pa.table(run.table("channels", names="^activation/relu$", steps=range(4, 5))).to_pylist()
    channels = run["activation/relu"].channels(4)
    assert [row["channel"] for row in rows] == list(range(10))
    for key in ("min", "max", "zero"):
        assert [row[key] for row in rows] == getattr(channels, key).tolist()


def test_what_was_not_asked_for_is_said(run: td.Run, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="digest"):
        run["weight/head.weight"].digest(5)
    with pytest.raises(NotFound, match="channels"):
        run["weight/head.weight"].channels(5)
    with pytest.raises(InvalidArgument, match="chanels"):
        td.watch(
            nn.Linear(2, 2),
            run_dir=tmp_path / "no",
            capture=[{"collection": "weights", "what": ["chanels"]}],
        )


def test_more_channels_than_are_looked_at_are_told(run_dir: Path) -> None:
    model = nn.Sequential(nn.EmbeddingBag(65_537, 2), nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    capture = [{"collection": "weights", "what": ["channels"]}]
    with td.watch(model, run_dir=run_dir, rules=[], capture=capture, supervise=False):
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.arange(6).view(2, 3)).sum().backward()
            optimizer.step()
    run = td.Run(run_dir)
    told = [event["data"] for event in run.events if event["kind"] == "tensor_skipped"]
    assert [entry["tensor"] for entry in told] == ["weight/0.weight"]
    assert "65537 channels" in told[0]["reason"]
    assert run["weight/0.weight"].steps().size == 2, "its statistics are there"
    assert run["weight/1.weight"].channels(0).min.shape == (1,)
