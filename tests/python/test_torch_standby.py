"""Nothing is attached to a training that waits for an evaluation, and each evaluation is seen."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest
import torch
from torch.nn import functional

import traindbg as td
from traindbg.hooks.torch_standby import standby

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


def test_gradients_that_are_off_again_after_a_training_inside(run_dir):
    model, optimizer, watcher = watched(run_dir)
    with watcher, torch.no_grad():
        for number in range(3):
            with torch.enable_grad():
                for _ in range(3):
                    step(model, optimizer)
            evaluate(model, number)
    assert evaluated(run_dir) == {0: 0.0, 1: 1.0, 2: 2.0}


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


def test_a_step_that_raises_is_no_step_for_good(run_dir):
    model, optimizer, watcher = watched(run_dir)
    with watcher:
        step(model, optimizer)
        with pytest.raises(RuntimeError):
            optimizer.step(lambda: (_ for _ in ()).throw(RuntimeError("closure")))
        without_gradients(model, 3)
        step(model, optimizer)
        without_gradients(model, 4)
    assert 4.0 in evaluated(run_dir).values()


def test_all_is_as_before_when_nobody_watches(run_dir):
    before = [
        torch.set_grad_enabled.__init__,
        torch.inference_mode.__enter__,
        torch.enable_grad.__exit__,
        torch.nn.Module.train,
    ]
    model, optimizer, watcher = watched(run_dir)
    with watcher:
        step(model, optimizer)
        assert torch.nn.Module.train is not before[3]
        pickle.loads(pickle.dumps(model))
        copy.deepcopy(torch.no_grad())
    after = [
        torch.set_grad_enabled.__init__,
        torch.inference_mode.__enter__,
        torch.enable_grad.__exit__,
        torch.nn.Module.train,
    ]
    assert after == before
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
