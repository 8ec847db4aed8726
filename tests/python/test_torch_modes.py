"""A network in several modules, of which an evaluation forgets one."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.evaluations.modes import Modes
from traindbg.hooks.torch.evaluations.modes import modes as heard

X, Y = torch.randn(200, 8), torch.randint(0, 3, (200,))


def train(run_dir, *, set_to_eval, teacher=None, keep=None) -> list[float]:
    """12 steps, an evaluation without a loss after every third one. The head is watched."""
    torch.manual_seed(0)
    parts = {
        "encoder": nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)),
        "head": nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 3)),
    }
    optimizer = torch.optim.SGD([p for m in parts.values() for p in m.parameters()], lr=0.01)
    if teacher is not None:
        teacher.eval()
    with td.watch(
        parts["head"],
        optimizer,
        run_dir=run_dir,
        supervise=False,
        rules=["train_mode_in_validation"],
    ):
        for step in range(12):
            for part in parts.values():
                part.train()
            optimizer.zero_grad()
            F.cross_entropy(parts["head"](parts["encoder"](X[:64])), Y[:64]).backward()
            optimizer.step()
            if step % 3 == 2:
                for name in set_to_eval:
                    parts[name].eval()
                with torch.no_grad():
                    parts["head"](parts["encoder"](X[64:]))
    if keep is not None:
        keep.extend(parts.values())
    run = td.Run(run_dir)
    name = "loop/others_in_eval"
    return run.scalars(name).values.tolist() if run.names(f"^{name}$") else []


def test_one_that_is_forgotten_is_told_from_the_second_evaluation_on(run_dir):
    assert train(run_dir, set_to_eval=["encoder"]) == [1.0] * 3  # not the first


@pytest.mark.parametrize("parts", [[], ["encoder", "head"]])
def test_none_or_all_of_them_is_something_else(run_dir, parts):
    assert train(run_dir, set_to_eval=parts) == []


def test_a_teacher_that_stays_in_evaluation_mode_is_no_sign(run_dir):
    assert train(run_dir, set_to_eval=[], teacher=nn.Linear(8, 3)) == []


def test_parts_of_the_model_and_what_it_is_part_of_do_not_count():
    modes, model = Modes(), nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 2))
    whole = nn.Sequential(nn.Linear(2, 2), model)
    for _ in range(2):
        for module in (whole, model[0]):
            module.train()
            modes.evaluates(module, 7)
            module.training = False
    assert not modes.others_evaluate(model, 7)
    assert modes.others_evaluate(whole[0], 7)
    assert not modes.others_evaluate(whole[0], 8)  # one that was evaluated before the last step


def test_an_earlier_training_says_nothing_of_the_next_one(run_dir):
    """Whose model is called without gradients in training mode, as for the statistics."""
    kept = []
    assert train(run_dir / "earlier", set_to_eval=["encoder", "head"], keep=kept) == []
    assert [part.training for part in kept] == [False, False]
    assert train(run_dir / "next", set_to_eval=[]) == []


@pytest.mark.parametrize("is_first", [True, False])
def test_evaluations_of_one_model_say_nothing_of_the_next_one(run_dir, is_first):
    """Of the same recording; one of them is called without gradients in training mode."""
    encoder = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
    rules = ["train_mode_in_validation"]
    optimizers = []  # kept, as a list of results would

    def make() -> nn.Module:
        model = nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 3))
        optimizers.append(torch.optim.SGD(model.parameters(), lr=0.01))
        return model

    def step(model: nn.Module) -> None:
        optimizers[-1].zero_grad()
        F.cross_entropy(model(X[:64]), Y[:64]).backward()
        optimizers[-1].step()

    first = make()
    watcher = td.watch(first, optimizers[-1], run_dir=run_dir, supervise=False, rules=rules)
    for _ in range(3):
        encoder.train()
        first.train()
        step(first)
        encoder.eval()
        first.train(is_first)
    with torch.no_grad():
        first(X)
    assert len(heard._turns) > 0
    second = make()
    with td.watch(second, optimizers[-1]):
        watcher.detach()
        assert len(heard._turns) == 0
        if not is_first:
            with torch.no_grad():
                second(X)
        step(second)
    assert td.Run(run_dir).names("^loop/others_in_eval$") == []


def test_nothing_is_heard_once_nobody_watches(run_dir, monkeypatch):
    calls = []
    monkeypatch.setattr(Modes, "evaluates", lambda *args: calls.append(args))
    others = nn.Module.eval
    try:
        model = nn.Linear(8, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        with td.watch(model, optimizer, run_dir=run_dir, supervise=False):
            listening = nn.Module.eval

            def wrapped(self):  # by somebody, after us
                return listening(self)

            nn.Module.eval = wrapped
            model.eval()
            assert len(calls) == 1
        model.train().eval()
        assert len(calls) == 1
    finally:
        nn.Module.eval = others


def test_nothing_is_kept_alive():
    modes, module = Modes(), nn.Linear(2, 2)
    modes.evaluates(module, 0)
    ref = weakref.ref(module)
    del module
    gc.collect()
    assert ref() is None


@pytest.mark.parametrize("is_eval", [True, False])
def test_the_mode_of_an_evaluation_is_that_of_the_call(run_dir, is_eval):
    """A helper puts the mode back, and the loss is computed after that."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rules = ["train_mode_in_validation"]
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=rules):
        for step in range(12):
            model.train()
            optimizer.zero_grad()
            F.cross_entropy(model(X[:64]), Y[:64]).backward()
            optimizer.step()
            if step % 3 == 2:
                model.train(not is_eval)
                with torch.no_grad():
                    scores = model(X[64:])
                model.train(is_eval)
                F.cross_entropy(scores, Y[64:])
                F.multi_margin_loss(scores, Y[64:])  # of the same call
    run = td.Run(run_dir)
    (name,) = run.names("^loop/modules_in_train")
    told = run.scalars(name, mode="eval").values.tolist()
    assert told == [0.0 if is_eval else 2.0] * 4
