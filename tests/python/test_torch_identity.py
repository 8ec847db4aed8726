"""Results are bit for bit the same with and without traindbg."""

from __future__ import annotations

import pytest
import torch
import trainings
from torch import nn

import traindbg as td
from traindbg import _core


@pytest.mark.parametrize("kind", trainings.KINDS)
def test_watching_changes_no_bit(kind, run_dir):
    plain = trainings.train(kind)

    def watch(model, optimizer):
        td.watch(model, optimizer, run_dir=run_dir, every=1, supervise=False)

    assert trainings.train(kind, watch) == plain
    recorded = td.Run(run_dir)
    assert len(recorded.steps()) > 0
    assert recorded.names(collection="gradients")


@pytest.mark.parametrize("path", ["cpu path", "device path"])
@pytest.mark.parametrize("kind", trainings.KINDS)
def test_all_collections_change_no_bit(kind, path, run_dir, monkeypatch):
    plain = trainings.train(kind)
    if path == "device path":
        monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")

    watchers = []

    def watch(model, optimizer):
        watcher = td.watch(
            model,
            optimizer,
            run_dir=run_dir,
            collect=_core.builtin_collections(),
            raw=("optimizer_state", "weight_updates"),
            supervise=False,
        )
        watchers.append(watcher)

    assert trainings.train(kind, watch) == plain
    watchers.pop().detach()  # all of it is written then, however busy the machine is
    recorded = td.Run(run_dir)
    steps = list(range(4 if kind == "accumulation" else 12))  # that the optimizer makes
    assert recorded.steps().tolist()[: len(steps)] == steps
    for collection in ("optimizer_state", "weight_updates"):
        # A parameter that begins at zero has no ratio there.
        names = recorded.names(r"^(?!update_ratio/)", collection=collection)
        assert names
        assert all(recorded[name].steps().tolist() == steps for name in names)


def test_device_path_changes_no_bit(run_dir, monkeypatch):
    plain = trainings.train("eval")
    monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
    watched = trainings.train(
        "eval", lambda m, o: td.watch(m, o, run_dir=run_dir, every=1, supervise=False)
    )
    assert watched == plain


def test_whole_tensors_change_no_bit(run_dir):
    plain = trainings.train("sgd")
    watched = trainings.train(
        "sgd",
        lambda m, o: td.watch(m, o, run_dir=run_dir, raw=("weights", "outputs"), supervise=False),
    )
    assert watched == plain


SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
import trainings
print(trainings.train({kind!r}))
"""


@pytest.mark.parametrize("kind", ["eval", "workers"])
def test_zero_code_changes_no_bit_and_records(kind, run_dir, python, request):
    source = SCRIPT.format(folder=str(request.path.parent), kind=kind)
    plain = python(source)
    assert plain.returncode == 0, plain.stderr
    recorded = python(source, recorded=run_dir, TRAINDBG_STRICT="1")
    assert recorded.returncode == 0, recorded.stderr
    assert recorded.stdout == plain.stdout
    run = td.Run(run_dir)
    assert run.workers == [0]
    assert len(run.steps()) == 12
    assert "loss/cross_entropy" in run
    assert "gradient/fc1.weight" in run
    assert "activation/model.tanh" in run


def test_compiled_model_trains_identically(run_dir, capfd):
    def run(watched: bool) -> str:
        torch._dynamo.reset()
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        watcher = (
            td.watch(compiled, optimizer, run_dir=run_dir, supervise=False) if watched else None
        )
        losses = []
        for step in range(6):
            generator = torch.Generator().manual_seed(step)
            optimizer.zero_grad()
            loss = compiled(torch.randn(4, 8, generator=generator)).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if watcher:
            watcher.detach()
        return trainings.fingerprint(model, losses)

    assert run(True) == run(False)
    recorded = td.Run(run_dir)
    assert [event["kind"] for event in recorded.events].count("not_captured") == 1
    assert "gradient/0.weight" in recorded
    assert "compiled" in capfd.readouterr().err


@pytest.mark.parametrize("compile_first", [True, False])
def test_model_compiled_beside_the_watched_one_is_not_recompiled(compile_first, run_dir):
    torch._dynamo.reset()
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled = None
    if compile_first:
        compiled = torch.compile(model, backend=counter, fullgraph=True)
    with td.watch(model, optimizer, run_dir=run_dir, every=2, supervise=False):
        if compiled is None:
            compiled = torch.compile(model, backend=counter, fullgraph=True)
        for _ in range(6):
            optimizer.zero_grad()
            compiled(torch.randn(4, 8)).square().mean().backward()
            optimizer.step()
    assert counter.frame_count == 1


def test_compiled_loss_function_is_left_alone(run_dir):
    torch._dynamo.reset()
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @torch.compile(backend="aot_eager", fullgraph=True)
    def loss_of(x, y):
        return nn.functional.cross_entropy(x, y)

    with td.watch(model, optimizer, run_dir=run_dir, supervise=False):
        for _ in range(3):
            optimizer.zero_grad()
            loss_of(model(torch.ones(2, 4)), torch.tensor([0, 1])).backward()
            optimizer.step()
    assert len(td.Run(run_dir).scalars("loss").values) == 3


def test_scripting_and_tracing_work_while_watched(run_dir):
    model = nn.Linear(4, 3)
    x, y = torch.randn(5, 4), torch.tensor([0, 1, 2, 0, 1])
    expected = nn.CrossEntropyLoss()(model(x), y)
    with td.watch(model, run_dir=run_dir, supervise=False):
        scripted = torch.jit.script(nn.CrossEntropyLoss())
        traced = torch.jit.trace(nn.CrossEntropyLoss(), (model(x), y))
        assert scripted(model(x), y).item() == expected.item()
        assert traced(model(x), y).item() == expected.item()
