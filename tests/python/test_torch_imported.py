"""Functions that were imported by name before `watch`, or are held by a model, are heard, too."""

from __future__ import annotations

import copy
import functools
import importlib.util
import io
import pickle
import sys
import types

import pytest
import torch
from torch import nn
from torch.jit import script as imported_script
from torch.nn import functional as F
from torch.nn.functional import cross_entropy
from torch.nn.functional import mse_loss as distance
from torch.nn.utils import clip_grad_value_

import traindbg as td
from traindbg.hooks import torch_patches as patches

ORIGINALS = (F.cross_entropy,)  # a module's own name for it would be found
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


def test_the_names_are_one_function_meanwhile_and_afterwards(run_dir):
    (original,) = ORIGINALS
    holder = Net(cross_entropy)
    with watch(holder, run_dir):
        assert cross_entropy is F.cross_entropy is holder.criterion is not original
        assert torch.nn.utils.clip_grad_value_ is clip_grad_value_
        assert clip_grad_value_ is sys.modules["torch.nn.utils.clip_grad"].clip_grad_value_
        assert imported_script is torch.jit.script
        assert pickle.loads(pickle.dumps(cross_entropy)) is cross_entropy
    assert cross_entropy is F.cross_entropy is holder.criterion is original
    assert pickle.loads(pickle.dumps(cross_entropy)) is original


def test_a_module_that_is_imported_meanwhile_is_put_back(run_dir, monkeypatch):
    (original,) = ORIGINALS
    late = types.ModuleType("a_late_import")
    monkeypatch.setitem(sys.modules, "a_late_import", late)
    with watch(Net(), run_dir):
        exec("from torch.nn.functional import cross_entropy as ce", vars(late))
        assert late.ce is F.cross_entropy
    assert late.ce is original


def test_what_somebody_else_put_there_stays(run_dir, monkeypatch):
    (original,) = ORIGINALS
    theirs = functools.partial(original)
    other = types.ModuleType("of_somebody")
    other.loss = other.wrapped = original
    monkeypatch.setitem(sys.modules, "of_somebody", other)
    with watch(Net(), run_dir):
        assert other.loss is F.cross_entropy
        other.wrapped = theirs
    assert (other.loss, other.wrapped) == (original, theirs)


def test_modules_are_neither_loaded_nor_asked(run_dir, monkeypatch, tmp_path):
    (original,) = ORIGINALS

    class Refuses(types.ModuleType):
        def __getattribute__(self, name):
            raise AssertionError(name)

    class Slotted:
        __slots__ = ("loss",)

    class Mapped(dict):
        def values(self):
            raise AssertionError

    (tmp_path / "loaded_when_used.py").write_text("raise AssertionError('loaded')")
    monkeypatch.syspath_prepend(tmp_path)
    spec = importlib.util.find_spec("loaded_when_used")
    spec.loader = importlib.util.LazyLoader(spec.loader)
    lazy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lazy)
    odd = types.SimpleNamespace(loss=original)
    odd_dict = Net()
    odd_dict.__dict__ = Mapped(odd_dict.__dict__)
    for number, thing in enumerate((lazy, Refuses("m"), Slotted(), odd, odd_dict, None, 3)):
        monkeypatch.setitem(sys.modules, f"an_odd_module_{number}", thing)
    with watch(Net(), run_dir):
        assert odd.loss is F.cross_entropy
    assert odd.loss is original


def test_a_loss_that_the_model_holds_is_heard(run_dir):
    (original,) = ORIGINALS
    model = nn.Sequential(Net(cross_entropy))
    with watch(model, run_dir):
        value = train(model, model[0].criterion)
        torch.save(model, io.BytesIO())
        copied = copy.deepcopy(model)
        assert copied[0].criterion is F.cross_entropy
    assert td.Run(run_dir).scalars("loss/cross_entropy").values.tolist() == pytest.approx([value])
    for other in (model, copied):  # which can be saved now as before
        assert other[0].criterion is original
        torch.save(other, io.BytesIO())


def test_a_model_that_is_made_meanwhile_holds_the_original_afterwards(run_dir):
    (original,) = ORIGINALS
    with watch(Net(), run_dir):
        second = Net(cross_entropy)
        watch(second, None)
    assert second.criterion is F.cross_entropy  # watched still
    td.hooks.torch_recording.current.close()
    assert second.criterion is F.cross_entropy is original


@pytest.mark.parametrize("by_name", [False, True])
def test_scripting_sees_the_originals(run_dir, by_name):
    (original,) = ORIGINALS
    with watch(Net(), run_dir):
        scripted = imported_script(loss_of) if by_name else torch.jit.script(loss_of)
        module = torch.jit.script(Scripted())
        x = torch.randn(4, 3)
        assert scripted(x, LABELS) == original(x, LABELS)
        x = torch.randn(4, 6)
        assert module(x, LABELS) == original(module.fc(x), LABELS)
        assert cross_entropy is F.cross_entropy is not original
        with pytest.raises(RuntimeError, match="no attribute"):
            torch.jit.script(Net(lambda *_: None).forward)
        assert cross_entropy is F.cross_entropy is not original


def test_scripting_a_watched_model_that_holds_a_loss(run_dir):
    (original,) = ORIGINALS
    model = Scripted()
    with watch(model, run_dir):
        held = model.criterion
        torch.jit.script(model)
        assert model.criterion is held is F.cross_entropy
    assert model.criterion is original


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


def test_what_is_held_elsewhere_is_not_heard_and_that_is_said(run_dir, capfd):
    model = Net()
    with watch(model, run_dir, collect="labels"):
        for _ in range(2):
            train(model, PARTIAL)
    run = td.Run(run_dir)
    assert not run.names("^loss/")
    reasons = [str(event) for event in run.events if event["kind"] == "not_captured"]
    assert len(reasons) == 1
    for word in ("functools.partial", "traindbg run", "loss_fn"):
        assert word in reasons[0]
    assert "functools.partial" in capfd.readouterr().err


def test_one_of_ours_that_is_left_hears_again_and_once(run_dir, tmp_path):
    with watch(Net(), tmp_path / "first"):
        kept = functools.partial(F.cross_entropy)
    model = Net()
    with watch(model, run_dir):
        value = train(model, kept)
    assert td.Run(run_dir).scalars("loss/cross_entropy").values.tolist() == pytest.approx([value])


def test_nothing_is_remembered_afterwards(run_dir):
    with watch(Net(cross_entropy), run_dir):
        pass
    assert not patches._pairs
    assert not patches._models
