"""Modules of a pass that is looked at are called without PyTorch's detour for hooks."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.module import register_module_forward_hook
from torch.overrides import TorchFunctionMode

import traindbg as td
from traindbg import _core

CALL = nn.Module._call_impl
EVERYTHING = ["inputs", "outputs", "activations"]
seen: list[bool] = []  # whether the short way was taken, when `Looks` ran


class Looks(nn.Module):
    """Notes what a call of a module is at the moment."""

    def forward(self, x):
        seen.append(nn.Module._call_impl is not CALL)
        return x * 2


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.act = nn.Tanh()
        self.looks = Looks()
        self.last = nn.Linear(8, 3)

    def forward(self, x):
        return self.last(F.relu(self.looks(self.act(self.first(x))) + x))


@pytest.fixture(autouse=True)
def nothing_seen_yet():
    seen.clear()
    yield
    assert nn.Module._call_impl is CALL


def train(model, run_dir, steps=3, **settings):
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    chosen = {"rules": [], "collect": EVERYTHING, "every": 1, **settings}
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, **chosen):
        for _ in range(steps):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(torch.randn(4, 8)), torch.randint(0, 3, (4,)))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            assert nn.Module._call_impl is CALL
    return td.Run(run_dir), losses


def values(run: td.Run) -> dict[str, list[float]]:
    return {name: run[name].values("l2").tolist() for name in run.names()}


def test_the_same_is_recorded_as_by_hooks(run_dir, monkeypatch):
    torch.manual_seed(0)
    model = Block()
    short, losses = train(copy.deepcopy(model), run_dir / "short")
    assert seen == [True, True, True]
    seen.clear()
    monkeypatch.setattr(_core.ForwardPath, "shorten", lambda *_: False)
    long, same = train(copy.deepcopy(model), run_dir / "long")
    assert seen == [False, False, False]
    assert losses == same
    assert values(short) == values(long)
    assert {"output/first", "activation/act", "output/looks", "activation/model.relu"} <= set(
        short.names()
    )


def test_nothing_is_changed_at_steps_that_need_nothing(run_dir):
    train(Block(), run_dir, steps=5, every=4)
    assert seen == [True, False, False, False, True]


def test_hooks_of_the_user_are_called_and_may_change_what_is_returned(run_dir):
    model, heard = Block(), []
    model.act.register_forward_hook(lambda module, args, output: output + 1)
    model.last.register_forward_pre_hook(lambda module, args: heard.append("before"))
    model.first.register_full_backward_hook(lambda *_: heard.append("backward"))
    run, losses = train(copy.deepcopy(model), run_dir)
    assert seen == [True] * 3
    assert heard == ["before", "backward"] * 3
    assert run["output/looks"].values("min").min() >= 0  # of twice what tanh returns, and 1
    assert len(set(losses)) == 3


def test_global_hooks_of_the_user_hear_of_every_module(run_dir):
    called = []
    handle = register_module_forward_hook(lambda module, *_: called.append(type(module).__name__))
    try:
        train(Block(), run_dir, steps=1)
    finally:
        handle.remove()
    assert seen == [False]
    assert called == ["Linear", "Tanh", "Looks", "Linear", "Block"]


class Raises(Looks):
    kind: type[BaseException] = ValueError

    def forward(self, x):
        if len(seen) == 1:
            seen.append(nn.Module._call_impl is not CALL)
            raise self.kind("on purpose")
        return super().forward(x)


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_an_exception_of_a_module_goes_on_and_the_next_pass_is_whole(run_dir, kind):
    model = Block()
    model.looks = Raises()
    model.looks.kind = kind
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    chosen = {"rules": [], "collect": EVERYTHING, "every": 1}
    x, y = torch.randn(4, 8), torch.randint(0, 3, (4,))
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, **chosen):
        for step in range(4):
            optimizer.zero_grad()
            if step == 1:
                with pytest.raises(kind, match="on purpose"):
                    model(x)
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    assert seen == [True, True, False, True, True]
    steps = td.Run(run_dir)["output/last"].steps().tolist()
    assert steps == [0, 2, 3]  # of each step one pass is looked at: of 1 it is the one that raised


class Copies(Looks):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x):
        made = [copy.copy(self.inner), copy.deepcopy(self.inner)]
        made.append(pickle.loads(pickle.dumps(self.inner)))
        assert all(vars(each).keys() == vars(self.inner).keys() for each in made)
        with torch.no_grad():
            made[1].weight.add_(1)
            assert not torch.equal(made[1](x), self.inner(x))
            assert torch.equal(made[2](x), self.inner(x))
        return super().forward(x)


def test_copies_made_inside_of_a_pass_know_nothing_of_it(run_dir):
    model = Block()
    model.looks = Copies()
    train(model, run_dir)
    assert seen == [True] * 3


class Outer(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.head = nn.Linear(3, 3)

    def forward(self, x):
        return self.head(self.inner(x))


def test_a_watched_model_inside_of_another_one_is_seen_by_both(run_dir):
    inner = Block()
    outer = Outer(inner)
    optimizer = torch.optim.SGD(outer.parameters(), lr=0.1)
    chosen = {"rules": [], "collect": ["outputs"], "every": 1}
    with (
        td.watch(outer, optimizer, run_dir=run_dir, supervise=False, **chosen) as first,
        td.watch(inner, run_dir=run_dir, supervise=False, **chosen) as second,
    ):
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(outer(torch.randn(4, 8)), torch.randint(0, 3, (4,))).backward()
            optimizer.step()
        assert first is not second
    names = td.Run(run_dir).names()
    assert {"output/inner.first", "output/head"} <= set(names)
    assert len([name for name in names if name.endswith("last")]) == 2


class OwnLinear(nn.Linear):
    def forward(self, x):
        return torch.sigmoid(super().forward(x))


def test_functions_are_heard_in_what_is_the_users_own(run_dir):
    model = nn.Sequential(nn.Linear(8, 8), OwnLinear(8, 8), nn.GELU(), nn.Linear(8, 3))
    changed = nn.Linear(3, 3)
    changed.forward = lambda x: torch.tanh(F.linear(x, changed.weight, changed.bias))
    model.append(changed)
    run, _ = train(model, run_dir)
    found = {name for name in run.names() if name.startswith("activation/")}
    assert found == {"activation/1.sigmoid", "activation/2", "activation/4.tanh"}


class Counts(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.linear = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.linear += func is F.linear
        return func(*args, **(kwargs or {}))


class UsersMode(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(8, 3)
        self.mode = Counts()

    def forward(self, x):
        with self.mode:
            return self.line(F.relu(x))


def test_a_function_mode_of_the_users_hears_of_all(run_dir):
    model = UsersMode()
    run, _ = train(model, run_dir)
    assert model.mode.linear == 3
    assert run["activation/model.relu"].steps().tolist() == [0, 1, 2]
    outside = Counts()
    with outside:
        train(Block(), run_dir / "outside", steps=2)
    assert outside.linear == 4


class OtherThread(Looks):
    def __init__(self) -> None:
        super().__init__()
        self.helper = nn.Linear(8, 8)

    def forward(self, x):
        given = []
        other = threading.Thread(target=lambda: given.append(self.helper(x.detach())))
        other.start()
        other.join()
        assert len(given) == 1
        return super().forward(x)


def test_what_another_thread_calls_is_none_of_the_pass(run_dir):
    model = Block()
    model.looks = OtherThread()
    run, _ = train(model, run_dir)
    assert "output/looks.helper" not in run.names()
    assert run["output/last"].steps().tolist() == [0, 1, 2]


def test_somebody_elses_method_stays(run_dir):
    calls = []

    def theirs(self, *args, **kwargs):
        calls.append(type(self).__name__)
        return CALL(self, *args, **kwargs)

    nn.Module._call_impl = theirs
    try:
        train_model = Block()
        optimizer = torch.optim.SGD(train_model.parameters(), lr=0.1)
        chosen = {"rules": [], "collect": EVERYTHING, "every": 1}
        with td.watch(train_model, optimizer, run_dir=run_dir, supervise=False, **chosen):
            F.cross_entropy(train_model(torch.randn(4, 8)), torch.zeros(4).long()).backward()
            optimizer.step()
        assert nn.Module._call_impl is theirs
    finally:
        nn.Module._call_impl = CALL
    assert calls == ["Block", "Linear", "Tanh", "Looks", "Linear"]
    assert "output/last" in td.Run(run_dir).names()
