"""Buffers as a step leaves them, compared with the model's own."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import torch
from test_torch_values import check
from torch import nn

import traindbg as td


@pytest.fixture(params=["cpu path", "device path"], autouse=True)
def path(request, monkeypatch):
    if request.param == "device path":
        monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
    return request.param


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.fc = nn.Linear(6, 5)
        self.bn = nn.BatchNorm1d(5)
        self.register_buffer("position", torch.linspace(-1, 1, 5), persistent=False)

    def forward(self, x):
        return self.bn(self.fc(x)) + self.position


def watch(model, run_dir, **options):
    options = {"rules": [], "collect": ["buffers"], "every": 1, "supervise": False} | options
    return td.watch(model, run_dir=run_dir, **options)


def one_step(model, optimizer) -> dict[str, torch.Tensor]:
    """The model's buffers after a step, by their names."""
    optimizer.zero_grad()
    model(torch.randn(7, 6) * 3 + 1).square().mean().backward()
    optimizer.step()
    return {name: buffer.clone() for name, buffer in model.named_buffers()}


def buffers_of(step) -> dict[str, object]:
    found = {name: tensor for name, tensor in step.tensors.items() if name.startswith("buffer/")}
    return {name.removeprefix("buffer/"): tensor.statistics for name, tensor in found.items()}


def check_all(step, seen: dict[str, torch.Tensor]) -> None:
    found = buffers_of(step)
    assert found.keys() == seen.keys()
    for name, buffer in seen.items():
        check(found[name], buffer)


def test_a_step_has_the_buffers_as_it_leaves_them(run_dir):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, run_dir):
        seen = [one_step(model, optimizer) for _ in range(3)]
    assert "position" in seen[0], "one that is not persistent is a buffer, too"
    run = td.Run(run_dir)
    for number, buffers in enumerate(seen):
        check_all(run.step(number), buffers)
    mean = run["buffer/bn.running_mean"].info
    assert (mean["role"], mean["collection"]) == ("buffer", "buffers")
    assert (mean["module"], mean["module_type"], mean["layer"]) == ("bn", "BatchNorm1d", 2)
    assert (mean["dtype"], mean["shape"]) == ("float32", (5,))
    counter = run["buffer/bn.num_batches_tracked"].info
    assert (counter["dtype"], counter["shape"]) == ("int64", ())
    assert run["buffer/position"].info["module"] == "model"
    assert set(run.names(collection="buffers")) == {f"buffer/{name}" for name in seen[0]}


def test_whole_buffers_are_the_models_own(run_dir):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, run_dir, collect=[], raw=["buffers"]):
        seen = [one_step(model, optimizer) for _ in range(2)]
    run = td.Run(run_dir)
    for number, buffers in enumerate(seen):
        for name, buffer in buffers.items():
            np.testing.assert_array_equal(run[f"buffer/{name}"].value(number), buffer.numpy())


def test_what_the_optimizers_step_does_to_buffers_is_seen(run_dir):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.register_step_post_hook(lambda *_: model.position.fill_(7))
    with watch(model, run_dir):
        one_step(model, optimizer)
    assert buffers_of(td.Run(run_dir).step(0))["position"].mean == 7


def test_nothing_is_captured_where_nobody_asks(run_dir):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, run_dir, collect=["weights", "biases", "gradients"]):
        one_step(model, optimizer)
    assert not td.Run(run_dir).names("^buffer/")


def test_only_due_steps_have_them(run_dir):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, run_dir, every=3):
        seen = [one_step(model, optimizer) for _ in range(7)]
    run = td.Run(run_dir)
    assert run["buffer/bn.running_var"].steps().tolist() == [0, 3, 6]
    for number in (0, 3, 6):
        check_all(run.step(number), seen[number])


def test_replaced_added_and_removed_buffers(run_dir):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, run_dir):
        seen = [one_step(model, optimizer)]
        model.position = torch.full((1, 5), 2.0)
        seen.append(one_step(model, optimizer))
        model.fc.register_buffer("late", torch.tensor([True, False]))
        seen.append(one_step(model, optimizer))
        del model.fc.late
        model.bn = nn.BatchNorm1d(5, track_running_stats=False)
        seen.append(one_step(model, optimizer))
    assert [sorted(buffers) for buffers in seen[2:]] == [
        [
            *("bn.num_batches_tracked", "bn.running_mean", "bn.running_var"),
            *("fc.late", "position"),
        ],
        ["position"],
    ]
    run = td.Run(run_dir)
    for number, buffers in enumerate(seen):
        check_all(run.step(number), buffers)


def test_a_shared_buffer_is_taken_once_by_its_first_name(run_dir):
    model = Net()
    mask = torch.tensor([1.0, 0.0, float("-inf")])
    model.fc.register_buffer("mask", mask)
    model.bn.register_buffer("mask", mask)
    model.bn.register_buffer("again", mask)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, run_dir, collections={"masks": model.bn.mask}):
        one_step(model, optimizer)
    run = td.Run(run_dir)
    assert run.names("mask|again") == ["buffer/fc.mask"]
    statistics = run.step(0).tensors["buffer/fc.mask"].statistics
    assert (statistics.count, statistics.negative_infinite, statistics.max) == (3, 1, 1)
    assert run.names(collection="masks") == ["buffer/fc.mask"]


def test_buffers_without_elements_or_without_a_tensor(run_dir):
    model = Net()
    model.register_buffer("nothing", None)
    model.register_buffer("empty", torch.zeros(0, 3))
    model.register_buffer("bits", torch.tensor([[True, True], [False, True]]))
    model.register_buffer("bytes_", torch.arange(256, dtype=torch.uint8))
    model.register_buffer("strided", torch.arange(12.0).reshape(3, 4).t()[1:])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, run_dir):
        seen = one_step(model, optimizer)
    run = td.Run(run_dir)
    found = buffers_of(run.step(0))
    assert found.keys() == seen.keys() - {"empty"}
    for name, statistics in found.items():
        check(statistics, seen[name])
    assert "buffer/nothing" not in run
    assert not [event for event in run.events if event["kind"] == "tensor_skipped"]


def test_a_lazy_buffer_is_there_when_it_was_made(run_dir):
    model = nn.Sequential(nn.LazyLinear(5), nn.LazyBatchNorm1d())
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    with watch(model, run_dir):
        model(torch.randn(4, 6))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        seen = one_step(model, optimizer)
    check_all(td.Run(run_dir).step(0), seen)


def test_several_models_and_optimizers(run_dir):
    models = [Net(), Net()]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
    with watch(models[0], run_dir), watch(models[1], run_dir):
        for _ in range(2):
            for model, optimizer in zip(models, optimizers, strict=True):
                one_step(model, optimizer)
    found = buffers_of(td.Run(run_dir).step(1))
    assert {"bn.running_mean", "Net.bn.running_mean"} <= found.keys()


def test_a_second_call_adds_them_while_the_training_runs(run_dir):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, run_dir, collect=["losses"]):
        one_step(model, optimizer)
        with watch(model, run_dir):
            seen = one_step(model, optimizer)
    check_all(td.Run(run_dir).step(1), seen)


def test_collections_of_modules_and_buffers_have_them(run_dir):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    mine = {"norms": model.bn, "places": [model.position]}
    with watch(model, run_dir, collect=["norms", "places"], collections=mine):
        seen = one_step(model, optimizer)
    run = td.Run(run_dir)
    check_all(run.step(0), seen)
    assert run.names(collection="places") == ["buffer/position"]
    assert "buffer/bn.running_var" in run.names(collection="norms")


def test_a_compiled_model_has_them(run_dir):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled = torch.compile(model, backend="eager")
    with watch(compiled, run_dir):
        seen = [one_step(compiled, optimizer) for _ in range(2)]
    names = {f"_orig_mod.{name}" for name in buffers_of(td.Run(run_dir).step(1))}
    assert names == seen[1].keys()
    check_all(td.Run(run_dir).step(1), {name.partition(".")[2]: b for name, b in seen[1].items()})


def test_a_wrapped_model_has_them_by_their_own_names(run_dir):
    model = Net()
    wrapped = nn.DataParallel(model)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1)
    with watch(wrapped, run_dir):
        one_step(wrapped, optimizer)
    assert "buffer/bn.running_mean" in td.Run(run_dir)


def test_no_buffer_is_kept_alive(run_dir):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, run_dir):
        one_step(model, optimizer)
        gone = weakref.ref(model.position)
        model.position = torch.ones(5)
        gc.collect()
        assert gone() is None


def test_the_training_is_what_it_is_without(run_dir):
    def train(is_watched: bool) -> bytes:
        model = Net()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        watcher = watch(model, run_dir, raw=["buffers"]) if is_watched else None
        torch.manual_seed(1)
        for _ in range(4):
            one_step(model, optimizer)
        if watcher is not None:
            watcher.detach()
        return b"".join(value.numpy().tobytes() for value in model.state_dict().values())

    assert train(True) == train(False)
