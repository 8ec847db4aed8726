"""Facts about data and loss that rules are told, and that telling changes nothing."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

import traindbg as td
from traindbg.hooks.torch.data.loaders import (
    answers_of,
    batches_in_storage,
    places_in_containers,
)
from traindbg.hooks.torch.losses.compared import compared_shapes

RULES = ["repeated_batch", "target_leak", "loss_shape_broadcast"]


def train(run_dir, batches, loss=F.mse_loss, columns=6) -> td.Run:
    torch.manual_seed(3)
    model = nn.Linear(columns, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=RULES)
    for x, y in batches:
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
    watcher.detach()
    return td.Run(run_dir)


def numbers(run: td.Run, name: str) -> list[float]:
    return run.scalars(f"loop/{name}").values.tolist()


def test_the_batches_of_a_loader_are_counted(run_dir):
    x, y = torch.randn(100, 6), torch.randn(100, 1)
    loader = DataLoader(TensorDataset(x, y), batch_size=30)
    run = train(run_dir, (next(iter(loader)) for _ in range(3)))
    assert numbers(run, "batches_in_loader") == [4, 4, 4]


def test_a_loader_that_is_read_without_gradients_does_not_count(run_dir):
    loader = DataLoader(TensorDataset(torch.randn(100, 6)), batch_size=5)

    def batches():
        for _ in range(2):
            with torch.no_grad():
                next(iter(loader))
            yield torch.randn(30, 6), torch.randn(30, 1)

    assert numbers(train(run_dir, batches()), "batches_in_loader") == [0, 0]


def drawn(run_dir, weights, **options) -> dict[float, float]:
    sampler = WeightedRandomSampler(weights, 60, **options)
    data = TensorDataset(torch.randn(100, 6), torch.randn(100, 1))
    run = train(run_dir, DataLoader(data, batch_size=20, sampler=sampler))
    count = sum(name.startswith("loop/drawn_weight/") for name in run.names())
    firsts = (
        (numbers(run, f"drawn_weight/{i}"), numbers(run, f"drawn_weight_rows/{i}"))
        for i in range(count)
    )
    return {weight[0]: rows[0] for weight, rows in firsts}


def test_the_few_weights_that_rows_are_drawn_with_are_told(run_dir):
    assert drawn(run_dir, [0.75] * 70 + [0.25] * 30) == {0.25: 30, 0.75: 70}


@pytest.mark.parametrize(
    ("weights", "options"),
    [
        ([1.0] * 100, {}),
        ([float(i) for i in range(1, 101)], {}),
        ([3.0] * 70 + [1.0] * 30, {"replacement": False}),
    ],
    ids=["equal", "of single rows", "each row once"],
)
def test_other_weights_are_not(run_dir, weights, options):
    assert drawn(run_dir, weights, **options) == {}


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        for number in range(60):
            yield torch.full((6,), float(number)), torch.zeros(1)


def test_workers_that_read_one_stream_are_counted(run_dir):
    run = train(run_dir / "two", DataLoader(Stream(), batch_size=20, num_workers=2))
    assert numbers(run, "stream_workers") == [2, 2, 2, 2, 2, 2], "each of them yields all of it"
    run = train(run_dir / "none", DataLoader(Stream(), batch_size=20))
    assert "loop/stream_workers" not in run.names()


def test_rows_that_a_slice_leaves_out_are_counted():
    table = torch.randn(100, 8)
    assert batches_in_storage(table) == 1
    assert batches_in_storage(table[:25]) == 4
    assert batches_in_storage(table[:, 2:4]) == 1  # columns of all rows
    assert batches_in_storage(table[:50].clone()) == 1
    assert batches_in_storage(table[:1].expand(50, 8)) == 1
    assert batches_in_storage(torch.tensor(1.0)) == 1
    assert batches_in_storage(torch.randn(4, 4).to_sparse()) == 1


@pytest.mark.parametrize("units", [1.0, -3.5])
def test_the_column_that_is_the_label_is_named(run_dir, units):
    x = [torch.randn(40, 6) for _ in range(3)]
    run = train(run_dir, ((each, each[:, 4:5] * units + 2) for each in x))
    assert numbers(run, "label_in_input_correlation") == pytest.approx([1, 1, 1], abs=1e-9)
    assert numbers(run, "label_in_input_column") == [4, 4, 4]


@pytest.mark.parametrize("mended", [False, True])
def test_a_target_that_the_model_itself_repeats_is_told(run_dir, mended):
    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor, self.bias = nn.Linear(6, 1), nn.Linear(6, 1)

        def forward(self, x):
            bias = self.bias(x).squeeze(1) if mended else self.bias(x)
            return self.factor(x).sum(1) + bias

    torch.manual_seed(3)
    model = Sum()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=RULES)
    for _ in range(3):
        x, y = torch.randn(7, 6), torch.randn(7)
        optimizer.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        optimizer.step()
    watcher.detach()
    run = td.Run(run_dir)
    if mended:
        assert "loop/target_is_repeated" not in run.names()
    else:
        assert numbers(run, "target_is_repeated") == [1, 1, 1]


def test_a_matrix_of_targets_is_not_a_repeated_one(run_dir):
    torch.manual_seed(3)
    model = nn.Linear(6, 7)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=RULES)
    for _ in range(2):
        x, y = torch.randn(7, 6), torch.randn(7, 7)
        optimizer.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        optimizer.step()
    watcher.detach()
    assert numbers(td.Run(run_dir), "target_is_repeated") == [0, 0]


@pytest.mark.parametrize(
    "loss",
    [
        lambda x, y: ((x - y) ** 2).mean(),
        lambda x, y: (y - x).abs().sum() / 7,
        lambda x, y: ((x - y) * (x - y)).mean().sqrt() + 1e-4,
    ],
)
def test_shapes_of_a_loss_that_is_written_out(loss):
    x, y = nn.Linear(6, 1)(torch.randn(7, 6)), torch.randn(7)
    assert compared_shapes(loss(x, y)) == ((7, 1), (7, 7))
    assert compared_shapes(loss(x, y[:, None])) == ((7, 1), (7, 1))


def test_what_compares_two_predictions_or_is_heard_is_left_out():
    x = nn.Linear(6, 1)(torch.randn(7, 6))
    assert compared_shapes((x - x.T).abs().mean()) is None
    assert compared_shapes(F.mse_loss(x, torch.randn(7, 1))) is None
    assert compared_shapes(torch.tensor(1.0)) is None


def test_a_written_out_loss_that_broadcasts_is_told(run_dir):
    batches = [(torch.randn(7, 6), torch.randn(7)) for _ in range(2)]
    run = train(run_dir, batches, lambda x, y: ((x - y) ** 2).mean())
    assert numbers(run, "prediction_compared") == [7, 7]
    assert numbers(run, "difference_compared") == [49, 49]
    assert run["loop/difference_compared"].info["shape"] == (7, 7)


def test_an_input_is_not_held(run_dir):
    held = []

    def batches():
        for _ in range(3):
            x = torch.randn(40, 6)
            held.append(weakref.ref(x))
            yield x, torch.randn(40, 1)
            del x

    train(run_dir, batches())
    gc.collect()
    assert [ref() for ref in held] == [None] * 3


def test_losses_and_random_numbers_are_the_same(run_dir):
    def losses(watched: bool) -> list[float]:
        torch.manual_seed(5)
        model = nn.Linear(6, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        if watched:
            td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=RULES)
        loader = DataLoader(TensorDataset(torch.randn(90, 6), torch.randn(90, 1)), 30, shuffle=True)
        seen = []
        for _ in range(3):
            for x, y in loader:
                optimizer.zero_grad()
                loss = F.mse_loss(model(x), y) + torch.rand(())
                loss.backward()
                optimizer.step()
                seen.append(loss.item())
        return seen

    assert losses(watched=False) == losses(watched=True)


def test_batches_that_were_written_into_one_buffer() -> None:
    buffer, label = torch.zeros(4, 3), torch.zeros(4)
    assert places_in_containers(buffer) == 0
    staged = [(buffer, label) for _ in range(12)]
    assert places_in_containers(staged[0][0]) == 12
    inputs = [torch.zeros(4, 3)] * 12
    assert places_in_containers(inputs[0]) == 12
    apart = [(buffer.clone(), label) for _ in range(12)]
    assert places_in_containers(apart[3][0]) == 0


def test_data_that_is_held_in_few_places_is_not_looked_for(monkeypatch) -> None:
    def no_search(*_: object) -> list[object]:
        raise AssertionError("all objects were gone through")

    monkeypatch.setattr("gc.get_referrers", no_search)
    x = torch.zeros(64, 8)
    data, parts = (x, torch.zeros(64)), {"x": x}
    assert places_in_containers(data[0]) == 0
    assert parts["x"] is x


def test_answers_to_yes_or_no_are_counted() -> None:
    given = torch.tensor([2.0, -1.0, 0.5, -3.0])
    labels = torch.tensor([1.0, 1.0, 0.0, 0.0])
    found = answers_of("binary_cross_entropy_with_logits", given, labels)
    assert found is not None
    assert [float(value) for value in found] == [4, 2, 2, 1]
    column = answers_of("binary_cross_entropy", given.sigmoid()[:, None], labels[:, None])
    assert column is not None
    assert [float(value) for value in column] == [4, 2, 2, 1]
    soft = answers_of("binary_cross_entropy", given.sigmoid(), labels * 0.9)
    assert soft is not None
    assert [float(value) for value in soft] == [0, 0, 0, 0]
    pixels = answers_of(
        "binary_cross_entropy", given.sigmoid().view(1, 1, 2, 2), labels.view(1, 1, 2, 2)
    )
    assert pixels is not None
    assert [float(value) for value in pixels] == [4, 2, 2, 1]
    large = torch.zeros(2, 1, 400, 400)
    large[..., 100:140] = 1.0  # a stripe of columns
    some = answers_of("binary_cross_entropy", large * 0.9, large)
    assert some is not None
    count, yes, said, right = (float(value) for value in some)
    assert 1 << 15 < count <= 1 << 16
    assert yes == said == right == pytest.approx(0.1 * count, rel=0.02)
    several = torch.eye(4)[:, :3]  # many labels of each sample
    assert answers_of("binary_cross_entropy_with_logits", several - 0.5, several) is None
    all_of_them = answers_of("binary_cross_entropy_with_logits", several - 0.5, several, True)
    assert all_of_them is not None
    assert [float(value) for value in all_of_them] == [12, 3, 3, 3]
    assert answers_of("binary_cross_entropy_with_logits", given, labels[:, None]) is None
    assert answers_of("mse_loss", given, labels) is None


def test_answers_are_told_while_classes_are_due(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(40):
            x = torch.randn(16, 4)
            optimizer.zero_grad()
            F.binary_cross_entropy_with_logits(
                model(x).squeeze(1), (x[:, 0] > 0).float()
            ).backward()
            optimizer.step()
    steps, values = td.Run(tmp_path / "run")["loop/answers"].series("value")
    assert set(values) == {16.0}
    assert list(steps) == [*range(20), 20, 25, 30, 35]


def test_a_graphs_edges_are_not_written_out_for_rules(tmp_path: Path, monkeypatch) -> None:
    """A sparse input keeps its statistics, and nothing of its full size is made."""
    torch.manual_seed(0)
    nodes = 2000
    edges = torch.randint(0, nodes, (2, 4 * nodes))
    around = torch.sparse_coo_tensor(edges, torch.rand(4 * nodes), (nodes, nodes)).coalesce()

    class Convolution(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 3)

        def forward(self, x: torch.Tensor, around: torch.Tensor) -> torch.Tensor:
            return torch.spmm(around, self.layer(x))

    def refuse(*_: object) -> None:
        raise AssertionError("all of it is made")

    model, x, y = Convolution(), torch.randn(nodes, 8), torch.randint(0, 3, (nodes,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with monkeypatch.context() as patched:
        patched.setattr(torch.Tensor, "to_dense", refuse)
        watcher = td.watch(model, optimizer, run_dir=tmp_path / "run", supervise=False)
        for _ in range(12):
            optimizer.zero_grad()
            F.cross_entropy(model(x, around), y).backward()
            optimizer.step()
        watcher.detach()
    told = td.Run(tmp_path / "run").step(0).tensors["input/1"].statistics
    dense = around.to_dense()
    assert told.count == nodes * nodes
    assert told.zero == int((dense == 0).sum())
    assert told.mean == pytest.approx(float(dense.double().mean()), rel=1e-4)
    assert told.max == pytest.approx(float(dense.max()))
