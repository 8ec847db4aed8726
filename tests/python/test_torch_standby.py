"""Nothing is attached to a training that waits for an evaluation, and each evaluation is seen."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
import time

import pytest
import torch
from torch.nn import functional

import traindbg as td
from traindbg.hooks.torch.base.guard import failures
from traindbg.hooks.torch.evaluations.standby import standby
from traindbg.hooks.torch.recording.forward import ForwardObserver

hooks = torch.nn.modules.module._global_forward_pre_hooks
CAPTURE = [{"collection": "inputs", "mode": "eval"}]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inside = torch.nn.Linear(3, 3)
        self.attached = []

    def forward(self, x):
        self.attached.append(len(hooks))
        return self.inside(x)


def step(model, optimizer):
    optimizer.zero_grad()
    functional.mse_loss(model(torch.randn(4, 3)), torch.randn(4, 3)).backward()
    optimizer.step()


def evaluate(model, number):
    x = torch.full((2, 3), float(number))
    functional.mse_loss(model(x), x)


def without_gradients(model, number):
    with torch.no_grad():
        evaluate(model, number)


@torch.no_grad()
def decorated(model, number):
    evaluate(model, number)


def in_inference_mode(model, number):
    with torch.inference_mode():
        evaluate(model, number)


def by_a_switch(model, number):
    with torch.set_grad_enabled(False):
        evaluate(model, number)


def switched_for_good(model, number):
    torch.set_grad_enabled(False)
    evaluate(model, number)
    torch.set_grad_enabled(True)


def in_evaluation_mode_only(model, number):
    model.eval()
    evaluate(model, number)
    model.train()


def set_to_no_training(model, number):
    model.train(False)
    evaluate(model, number)
    model.train()


def in_a_thread(model, number):
    thread = threading.Thread(target=without_gradients, args=(model, number))
    thread.start()
    thread.join()


WAYS = [
    without_gradients,
    decorated,
    in_inference_mode,
    by_a_switch,
    switched_for_good,
    in_evaluation_mode_only,
    set_to_no_training,
]


def watched(run_dir, **asked):
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    asked = {"rules": [], "supervise": False, "capture": CAPTURE, **asked}
    return model, optimizer, td.watch(model, optimizer, run_dir=run_dir, **asked)


def evaluated(run_dir):
    steps, values = td.Run(run_dir)["input/0"].series("mean", "eval")
    return dict(zip(steps.tolist(), values.tolist(), strict=True))


@pytest.mark.parametrize("way", WAYS)
def test_an_evaluation_is_seen_and_nothing_is_attached_to_the_training(run_dir, way):
    model, optimizer, watcher = watched(run_dir)
    with watcher:
        for number in range(3):
            for _ in range(4):
                step(model, optimizer)
            way(model, number)
    assert evaluated(run_dir) == {0: 0.0, 1: 1.0, 2: 2.0}
    # Of each four passes of the training the first after an evaluation finds what was attached
    # for that, and takes it off: its root was called with it, the others without.
    evaluations = model.attached[4::5]
    others = [model.attached[i : i + 4] for i in (0, 5, 10)]
    assert evaluations == [1, 1, 1]
    assert [number for round_ in others for number in round_] == [0] * 12


@pytest.mark.parametrize(
    ("around", "inside"),
    [
        (torch.no_grad, torch.enable_grad),
        (torch.no_grad, lambda: torch.set_grad_enabled(True)),
        (torch.inference_mode, lambda: torch.inference_mode(False)),
    ],
)
def test_gradients_that_are_off_again_after_a_training_inside(run_dir, around, inside):
    model, optimizer, watcher = watched(run_dir)
    with watcher, around():
        for number in range(3):
            with inside():
                for _ in range(3):
                    step(model, optimizer)
            evaluate(model, number)
    assert evaluated(run_dir) == {0: 0.0, 1: 1.0, 2: 2.0}


def test_a_switch_that_was_made_before(run_dir):
    model, optimizer, watcher = watched(run_dir)
    off = torch.set_grad_enabled(False)
    torch.set_grad_enabled(True)
    with watcher:
        for number in range(3):
            step(model, optimizer)
            with off:
                evaluate(model, number)
    assert evaluated(run_dir) == {0: 0.0, 1: 1.0, 2: 2.0}


class Decorated(torch.optim.Optimizer):
    """Switches gradients off around its step."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.sub_(parameter.grad, alpha=0.01)


class Inside(Decorated):
    """And in it."""

    def step(self, closure=None):
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.sub_(parameter.grad, alpha=0.01)


@pytest.mark.parametrize("kind", [Decorated, Inside, torch.optim.SGD, torch.optim.Adafactor])
def test_steps_and_clipping_attach_nothing(run_dir, kind):
    torch.manual_seed(0)
    model = Net()
    optimizer = kind(model.parameters())
    with td.watch(model, optimizer, run_dir=run_dir, rules=[], supervise=False, capture=CAPTURE):
        for _ in range(4):
            optimizer.zero_grad()
            functional.mse_loss(model(torch.randn(4, 3)), torch.randn(4, 3)).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            assert len(hooks) == 0
        without_gradients(model, 5)
    assert evaluated(run_dir) == {0: 5.0}


def test_an_evaluation_after_a_step_that_raised(run_dir, monkeypatch):
    model, optimizer, watcher = watched(run_dir)

    def boom(*_, **__):
        raise RuntimeError("out of memory")

    with watcher:
        for number in range(3):
            step(model, optimizer)
            with monkeypatch.context() as patch:
                patch.setattr(sys.modules["torch.optim.adam"], "adam", boom)
                with pytest.raises(RuntimeError, match="out of memory"):
                    step(model, optimizer)
            without_gradients(model, number)
    assert list(evaluated(run_dir).values()) == [0.0, 1.0, 2.0]


def test_an_evaluation_in_a_hook_of_the_optimizer(run_dir):
    model, optimizer, watcher = watched(run_dir)
    with watcher:
        step(model, optimizer)
        optimizer.register_step_post_hook(lambda *_: without_gradients(model, 3))
        step(model, optimizer)
    assert list(evaluated(run_dir).values()) == [3.0]


def test_what_an_optimizer_does_attaches_nothing(run_dir):
    model, optimizer, watcher = watched(run_dir)
    with watcher:
        for _ in range(3):
            step(model, optimizer)
            assert len(hooks) == 0
            assert standby.is_on


def test_metrics_without_gradients_at_every_step(run_dir):
    model, optimizer, watcher = watched(run_dir)
    with watcher:
        for _ in range(4):
            step(model, optimizer)
            with torch.no_grad():
                model.inside.weight.norm()
        step(model, optimizer)
        assert len(hooks) == 0
        without_gradients(model, 7)
    assert evaluated(run_dir) == {0: 7.0}
    assert model.attached == [0] * 5 + [1]


def test_an_evaluation_in_another_thread_attaches_and_harms_nothing(run_dir):
    model, optimizer, watcher = watched(run_dir)
    with watcher:
        for number in range(3):
            step(model, optimizer)
            in_a_thread(model, number)
    assert td.Run(run_dir).is_complete


def test_several_models(run_dir):
    model, optimizer, watcher = watched(run_dir)
    other = torch.nn.Linear(3, 3)
    with watcher, td.watch(other, run_dir=run_dir, rules=[], supervise=False):
        for number in range(3):
            step(model, optimizer)
            assert len(hooks) == 0
            without_gradients(model, number)
    assert evaluated(run_dir) == {0: 0.0, 1: 1.0, 2: 2.0}


def test_where_nothing_of_evaluations_is_asked_for_nobody_waits(run_dir):
    model, optimizer, watcher = watched(run_dir, capture=None)
    with watcher:
        step(model, optimizer)
        step(model, optimizer)
        assert not standby.is_on
        without_gradients(model, 1)
    assert model.attached[-1] == 0


def suspended_in(monkeypatch, name):
    """Another thread that stays in a method of the observer for a moment, once it is there."""
    inside = threading.Event()
    real = getattr(ForwardObserver, name)
    main = threading.get_ident()

    def slow(self, *args, **kwargs):
        result = real(self, *args, **kwargs)
        if threading.get_ident() != main:
            inside.set()
            time.sleep(0.2)
        return result

    monkeypatch.setattr(ForwardObserver, name, slow)

    def switch():
        with torch.no_grad():
            pass

    thread = threading.Thread(target=switch)
    thread.start()
    assert inside.wait(10)
    return thread


@pytest.mark.parametrize("name", ["_arm", "evaluation_may_begin"])
def test_detached_while_another_thread_switches_gradients_off(run_dir, monkeypatch, name):
    model, optimizer, watcher = watched(run_dir)
    step(model, optimizer)
    thread = suspended_in(monkeypatch, name)
    watcher.detach()
    thread.join()
    assert len(hooks) == 0
    assert not standby.is_on


@pytest.mark.parametrize("name", ["_arm", "evaluation_may_begin"])
def test_trained_while_another_thread_switches_gradients_off(run_dir, monkeypatch, name):
    capture = [*CAPTURE, {"collection": "outputs", "every": 2}]
    model, optimizer, watcher = watched(run_dir, capture=capture)
    with watcher:
        for _ in range(3):
            step(model, optimizer)
        assert standby.is_on
        thread = suspended_in(monkeypatch, name)
        for _ in range(4):
            step(model, optimizer)
        thread.join()
        step(model, optimizer)
        without_gradients(model, 8)
    assert failures.get("forward", 0) == 0
    assert evaluated(run_dir) == {0: 8.0}
    assert len(hooks) == 0


def test_all_is_as_before_when_nobody_watches(run_dir):
    def patched():
        switches = [torch.set_grad_enabled, torch.inference_mode, torch.enable_grad]
        names = ["__init__", "__enter__", "__exit__"]
        return [getattr(kind, name) for kind in switches for name in names] + [
            torch.nn.Module.train
        ]

    before = patched()
    model, optimizer, watcher = watched(run_dir)
    with watcher:
        step(model, optimizer)
        assert torch.nn.Module.train is not before[-1]
        pickle.loads(pickle.dumps(model))
        copy.deepcopy(torch.no_grad())
    assert patched() == before
    assert not standby.is_on
    assert len(hooks) == 0


def test_a_model_that_is_gone_waits_for_nothing(run_dir):
    model, optimizer, watcher = watched(run_dir)
    step(model, optimizer)
    assert standby.is_on
    watcher.detach()
    assert not standby.is_on
    with torch.no_grad():
        model(torch.ones(1, 3))
    assert len(hooks) == 0
