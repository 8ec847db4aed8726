"""Functions are heard wherever somebody holds them, and stay the objects that they are."""

from __future__ import annotations

import copy
import functools
import inspect
import io
import pickle
import threading

import pytest
import torch
from torch import nn
from torch.jit import script as imported_script
from torch.nn import functional as F
from torch.nn.functional import cross_entropy
from torch.nn.functional import mse_loss as distance
from torch.nn.utils import clip_grad_value_

import traindbg as td
from traindbg.hooks.torch.steps import patches

ORIGINALS = (F.cross_entropy,)
PARTIAL = functools.partial(cross_entropy, label_smoothing=0.1)


def loss_of(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return cross_entropy(logits, labels)


class Net(nn.Module):
    def __init__(self, criterion=None) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 3)
        self.criterion = criterion

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x)


class Scripted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 3)
        self.criterion = cross_entropy

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return self.criterion(self.fc(x), labels)


LABELS = torch.tensor([0, 1, 2, 0])


def train(model: nn.Module, loss) -> float:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    value = loss(model(torch.ones(4, 6)), LABELS)
    value.backward()
    optimizer.step()
    return value.item()


def watch(model: nn.Module, run_dir, **wishes):
    return td.watch(model, run_dir=run_dir, supervise=False, **wishes)


def test_a_loss_is_heard_by_any_name(run_dir):
    model = Net()
    with watch(model, run_dir, collect=("predictions", "labels")):
        value = train(model, cross_entropy)
        train(model, lambda x, _: distance(x, torch.zeros(4, 3)))
        with torch.no_grad():
            model.eval()
            evaluated = loss_of(model(torch.ones(4, 6)), LABELS).item()
    run = td.Run(run_dir)
    assert run.scalars("loss/cross_entropy").values.tolist() == pytest.approx([value])
    assert run.scalars("loss/mse_loss").steps.tolist() == [1]
    assert run.scalars("loss/cross_entropy", mode="eval").values[0] == pytest.approx(evaluated)
    assert "label/cross_entropy" in run.step(0).tensors


class Config:
    """Of a training, as it goes into checkpoints."""

    def __init__(self) -> None:
        self.loss = F.cross_entropy
        self.clip = clip_grad_value_
        self.by_name = {"ce": cross_entropy, "smooth": PARTIAL}


def is_the_same_after_pickling(thing) -> bool:
    read = pickle.loads(pickle.dumps(thing))
    return (
        read.loss is F.cross_entropy
        and read.clip is clip_grad_value_
        and read.by_name["smooth"].func is cross_entropy
    )


def test_functions_stay_what_they_are(run_dir):
    (original,) = ORIGINALS
    codes = {name: getattr(F, name).__code__ for name in patches.LOSSES}
    signature = inspect.signature(cross_entropy)
    source = inspect.getsource(cross_entropy)
    before, holder = Config(), Net(cross_entropy)
    with watch(holder, run_dir):
        during = Config()
        assert cross_entropy is F.cross_entropy is holder.criterion is original
        assert clip_grad_value_ is torch.nn.utils.clip_grad_value_
        assert imported_script is torch.jit.script
        assert F.cross_entropy.__code__ is not codes["cross_entropy"], "it is listened to"
        assert inspect.signature(cross_entropy) == signature
        assert inspect.getsource(cross_entropy) == source
        assert is_the_same_after_pickling(before)
        assert is_the_same_after_pickling(during)
        torch.save(holder, io.BytesIO())
        copied = copy.deepcopy(holder)
        with pytest.raises(TypeError, match="cross_entropy"):
            F.cross_entropy(torch.ones(2, 3), no_such_word=1)
    assert {name: getattr(F, name).__code__ for name in patches.LOSSES} == codes
    for config in (before, during):
        assert is_the_same_after_pickling(config)
    for model in (holder, copied):
        assert model.criterion is original
        torch.save(model, io.BytesIO())


@pytest.mark.parametrize("held", ["partial", "default", "dictionary", "local", "attribute"])
def test_a_loss_is_heard_wherever_it_is_held(held, run_dir):
    local = cross_entropy
    functions = {"ce": cross_entropy}

    def by_default(logits, labels, loss=cross_entropy):
        return loss(logits, labels)

    model = nn.Sequential(Net(cross_entropy))
    loss = {
        "partial": PARTIAL,
        "default": by_default,
        "dictionary": functions["ce"],
        "local": local,
        "attribute": model[0].criterion,
    }[held]
    with watch(model, run_dir, collect="labels"):
        value = train(model, loss)
    run = td.Run(run_dir)
    assert run.scalars("loss/cross_entropy").values.tolist() == pytest.approx([value])
    assert "label/cross_entropy" in run.step(0).tensors


def test_a_function_that_somebody_replaced_meanwhile_stays_theirs(run_dir, monkeypatch):
    def theirs(*args, **kwargs):
        return cross_entropy(*args, **kwargs)

    model = Net()
    with watch(model, run_dir):
        monkeypatch.setattr(F, "cross_entropy", theirs)
        value = train(model, F.cross_entropy)
    assert F.cross_entropy is theirs
    assert td.Run(run_dir).scalars("loss/cross_entropy").values.tolist() == pytest.approx([value])


def test_code_that_somebody_gave_it_meanwhile_stays(run_dir, monkeypatch):
    (original,) = ORIGINALS
    code = original.__code__

    def other(logits, target, **_):
        return (logits * 0).sum()

    with watch(Net(), run_dir):
        original.__code__ = other.__code__
    try:
        assert original(torch.ones(2, 3), torch.zeros(2, dtype=torch.long)).item() == 0
    finally:
        original.__code__ = code


@pytest.mark.parametrize("by_name", [False, True])
def test_scripting_sees_the_originals(run_dir, by_name):
    (original,) = ORIGINALS
    model, x, y = Net(), torch.randn(4, 3), torch.randn(4, 6)
    plain = Scripted()
    expected = original(x, LABELS), original(plain.fc(y), LABELS)
    with watch(model, run_dir):
        scripted = imported_script(loss_of) if by_name else torch.jit.script(loss_of)
        module = torch.jit.script(plain)
        assert (scripted(x, LABELS), module(y, LABELS)) == expected
        listening = original.__code__
        with pytest.raises(RuntimeError, match="no attribute"):
            torch.jit.script(Net(lambda *_: None).forward)
        assert original.__code__ is listening
        value = train(model, cross_entropy)
    assert td.Run(run_dir).scalars("loss/cross_entropy").values.tolist() == pytest.approx([value])


def test_scripting_a_watched_model_that_holds_a_loss(run_dir):
    model = Scripted()
    with watch(model, run_dir):
        scripted = torch.jit.script(model)
        x = torch.randn(4, 6)
        assert scripted(x, LABELS) == model(x, LABELS)


class Helper:
    def __init__(self) -> None:
        self.x = 1


Names = list[int]


class Scriptable:
    def __init__(self, names: Names) -> None:
        self.names = names
        self.helper = Helper()


def test_scripting_a_class_finds_the_names_of_its_module(run_dir):
    with watch(Net(), run_dir):
        torch.jit.script(Helper)
        torch.jit.script(Scriptable)

        class Local:
            def __init__(self, x: int) -> None:
                self.x = x

        torch.jit.script(Local)

        class Outer:
            def __init__(self, x: int) -> None:
                self.inner = Local(x)

        torch.jit.script(Outer)


def test_watching_again_and_again_compiles_at_most_once(run_dir):
    compilations = []

    def backend(graph, _):
        compilations.append(graph)
        return graph.forward

    holder = Net()
    step = torch.compile(lambda x, y: cross_entropy(holder(x), y), fullgraph=True, backend=backend)
    step(torch.ones(4, 6), LABELS)
    for number in range(12):  # more than the compiler puts up with
        with watch(Net(), run_dir.with_name(f"run{number}")):
            step(torch.ones(4, 6), LABELS)
        step(torch.ones(4, 6), LABELS)
    assert len(compilations) <= 2


def test_threads_may_call_while_others_watch_and_detach(run_dir):
    errors, stop = [], threading.Event()

    def calls():
        x = torch.ones(2, 3)
        while not stop.is_set():
            try:
                F.huber_loss(x, x)
            except Exception as error:
                errors.append(error)

    threads = [threading.Thread(target=calls) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        patches.acquire()
        patches.release()
    stop.set()
    for thread in threads:
        thread.join()
    assert errors == []


def test_compiled_code_may_call_it(run_dir):
    (original,) = ORIGINALS
    compiled = torch.compile(loss_of, fullgraph=True, backend="aot_eager")
    holder = Net(cross_entropy)
    of_model = torch.compile(
        lambda x, y: holder.criterion(holder(x), y), fullgraph=True, backend="aot_eager"
    )
    x = torch.randn(4, 3, requires_grad=True)
    with watch(holder, run_dir):
        assert compiled(x, LABELS).item() == pytest.approx(original(x, LABELS).item())
        value = of_model(torch.ones(4, 6), LABELS)
        value.backward()
        assert value.item() == pytest.approx(original(holder(torch.ones(4, 6)), LABELS).item())
    assert compiled(x, LABELS).item() == pytest.approx(original(x, LABELS).item())


def test_a_value_that_is_clipped_by_name(run_dir):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, run_dir, collect=("gradients", "gradients_before")):
        cross_entropy(model(torch.ones(4, 6)), LABELS).backward()
        largest = model.fc.weight.grad.max().item()
        clip_grad_value_(model.parameters(), 1e-3)
        optimizer.step()
    tensors = td.Run(run_dir).step(0).tensors
    assert tensors["gradient_before/fc.weight"].statistics.max == pytest.approx(largest)
    assert tensors["gradient/fc.weight"].statistics.max == pytest.approx(1e-3)


def test_a_loss_of_the_users_own_is_not_heard_and_that_is_said(run_dir, capfd):
    model = Net()
    with watch(model, run_dir, collect="labels"):
        for _ in range(2):
            train(model, lambda x, _: x.square().mean())
    run = td.Run(run_dir)
    assert not run.names("^loss/")
    reasons = [str(event) for event in run.events if event["kind"] == "not_captured"]
    assert len(reasons) == 1
    for word in ("torch.nn.functional", "loss_fn"):
        assert word in reasons[0]
    assert "loss_fn" in capfd.readouterr().err


class Weighted(nn.Module):
    """A loss of the user's own, with a closure over `__class__`."""

    def __init__(self, weight: float = 2.0) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        assert super().extra_repr() == ""
        return self.weight * cross_entropy(logits, labels)


def test_a_loss_module_is_heard_and_has_no_hook(run_dir):
    model, loss, other = Net(), Weighted(), Weighted(3.0)
    code = Weighted.forward.__code__
    with watch(model, run_dir, collect="labels", loss_fn=loss):
        value = train(model, loss)
        other(torch.ones(4, 3), LABELS)  # is not the one that was named
        assert not loss._forward_hooks
        copied = pickle.loads(pickle.dumps(loss))
        assert copied.weight == 2.0
    assert Weighted.forward.__code__ is code
    run = td.Run(run_dir)
    assert run.scalars("loss/Weighted").values.tolist() == pytest.approx([value])
    assert "label/Weighted" in run.step(0).tensors


def test_a_loss_module_can_be_traced_and_pickled_by_value(run_dir):
    loss = Weighted()
    parameters = inspect.signature(Weighted.forward)
    with watch(Net(), run_dir, loss_fn=loss):
        assert inspect.signature(Weighted.forward) == parameters
        traced = torch.fx.symbolic_trace(loss)
        assert {"logits", "labels"} <= {node.name for node in traced.graph.nodes}
        heard = next(
            value
            for name, value in Weighted.forward.__globals__.items()
            if name.startswith("_traindbg_forward")
        )
        make, arguments = heard.__reduce__()  # as pickling by value does, in Ray, say
        assert make(*arguments).__code__ is not Weighted.forward.__code__


class Plain(nn.Module):
    def forward(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return (logits * 2).square().mean()


def test_a_loss_module_with_a_forward_of_its_own_is_heard(run_dir):
    loss, model = Plain(), Net()
    loss.forward = lambda logits, labels: logits.square().mean()
    with watch(model, run_dir, loss_fn=loss):
        value = train(model, loss)
    assert not loss._forward_hooks
    assert td.Run(run_dir).scalars("loss/Plain").values.tolist() == pytest.approx([value])


def test_a_scripted_loss_module_is_not_heard_and_that_is_said(run_dir):
    loss, model = torch.jit.script(Plain()), Net()
    with watch(model, run_dir, loss_fn=loss):
        train(model, loss)
    (event,) = (event for event in td.Run(run_dir).events if event["kind"] == "not_captured")
    assert "ScriptModule" in str(event)


def test_a_scaler_between_two_classes_is_heard(run_dir):
    class Between(torch.amp.GradScaler):
        def scale(self, outputs):
            return super().scale(outputs)

    class Last(Between):
        pass

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, run_dir):
        scaler = Last("cpu", init_scale=1024.0)
        loss = cross_entropy(model(torch.ones(4, 6)), LABELS)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    assert "scale" in vars(Between)
    assert td.Run(run_dir).scalars("loss").values.tolist() == pytest.approx([loss.item()])


def test_nothing_is_remembered_afterwards(run_dir):
    with watch(Net(cross_entropy), run_dir):
        pass
    assert not patches._entered
    assert not patches._undo
    made = len(patches._listened)
    with watch(Net(), run_dir.with_name("second")):
        assert len(patches._listened) == made, "nothing is made anew"
