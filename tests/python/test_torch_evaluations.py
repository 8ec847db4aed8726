"""What evaluations compute is recorded at the step of its own batch."""

from __future__ import annotations

import time

import pytest
import torch
from torch.nn import functional

import traindbg as td


def evaluate(model, batches):
    model.eval()
    with torch.no_grad():
        for batch in range(batches):
            x = torch.full((2, 3), float(batch))
            functional.mse_loss(model(x), x)  # of an identity: 0, but for the inputs
            yield batch
    model.train()


def train(run_dir, capture, batches, rounds=2, pause=0.0):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, optimizer, run_dir=run_dir, rules=[], supervise=False, capture=capture):
        for _ in range(rounds):
            time.sleep(pause)
            for _ in range(3):
                optimizer.zero_grad()
                functional.mse_loss(model(torch.randn(4, 3)), torch.randn(4, 3)).backward()
                optimizer.step()
            list(evaluate(model, batches))
    return td.Run(run_dir)


def series(run, name):
    steps, values = run[name].series("mean", "eval")
    return dict(zip(steps.tolist(), values.tolist(), strict=True))


def test_each_batch_is_a_step_with_its_own_tensors(run_dir):
    run = train(run_dir, [{"collection": "inputs", "mode": "eval"}], 6)
    assert series(run, "input/0") == {step: step % 6 for step in range(12)}


@pytest.mark.parametrize(("in_training_mode", "steps"), [(False, 4), (True, 1)])
def test_batches_whose_losses_are_not_reduced(run_dir, in_training_mode, steps):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    asked = [{"collection": "inputs", "mode": "eval"}]
    with td.watch(model, optimizer, run_dir=run_dir, rules=[], supervise=False, capture=asked):
        for _ in range(2):
            x = torch.randn(4, 3)
            optimizer.zero_grad()
            functional.mse_loss(model(x), x, reduction="none").mean().backward()
            optimizer.step()
            model.train(in_training_mode)  # then it may choose rows of the training's next batch
            with torch.no_grad():
                for value in (2.0, 3.0):
                    x = torch.full((4, 3), value)
                    functional.mse_loss(model(x), x, reduction="none").sum(1).mean().item()
            model.train()
    assert list(series(td.Run(run_dir), "input/0").values()) == [2.0, 3.0, 2.0, 3.0][:steps]


@pytest.mark.parametrize(
    ("capture", "steps"),
    [
        ({"steps": [5, 10]}, [5, 10]),
        ({"every": 5}, [0, 5, 10]),
        ({"every": 5, "mode": "every"}, [0, 5, 10]),
        ({"every": 1, "start": 3, "end": 9}, [3, 4, 5, 6, 7, 8]),
        ({"seconds": 10000}, [0]),
    ],
)
def test_the_steps_that_were_asked_for_and_no_others(run_dir, capture, steps):
    asked = {"collection": "outputs", "mode": "eval", **capture}
    run = train(run_dir, [asked, {"collection": "inputs", "mode": "eval"}], 7)
    assert sorted(series(run, "output/0")) == steps
    assert series(run, "input/0") == {step: step % 7 for step in range(14)}


def test_by_time_the_first_batch_of_a_late_evaluation_is_captured(run_dir):
    asked = {"collection": "inputs", "mode": "eval", "seconds": 0.001}
    run = train(run_dir, [asked], 1, rounds=5, pause=0.002)  # an evaluation is due in each round
    assert sorted(series(run, "input/0")) == [0, 1, 2, 3, 4]


def test_losses_in_a_generator_reach_the_training(run_dir):
    model = torch.nn.Linear(2, 1)
    with td.watch(model, run_dir=run_dir, rules=[], supervise=False):
        torch.autograd.backward(loss for loss in [model(torch.ones(3, 2)).sum()])
    assert model.weight.grad.tolist() == [[3.0, 3.0]]


def test_log_and_save_inside_of_compiled_code_are_nothing(run_dir):
    @torch.compile(backend="eager", fullgraph=True)
    def compute(x):
        td.log("number", 1.0)
        td.save("tensor", x)
        return x + 1

    model = torch.nn.Linear(2, 1)
    with td.watch(model, run_dir=run_dir, rules=[], supervise=False):
        assert compute(torch.zeros(2)).tolist() == [1.0, 1.0]
    torch._dynamo.reset()


@pytest.mark.parametrize(
    ("capture", "said"),
    [
        ({"steps": ["a"]}, "steps='a'"),
        ({"steps": 5}, "steps=5"),
        ({"steps": [1.5]}, "steps=1.5"),
        ({"seconds": "60"}, "seconds='60'"),
        ({"every": 0}, "every=0"),
        ({"start": 10, "end": 5}, "end=5"),
        ({"mode": "predict"}, "predict"),
    ],
)
def test_a_capture_that_can_never_be_is_refused(run_dir, capture, said):
    with pytest.raises(td.errors.InvalidArgument, match=said):
        td.watch(
            torch.nn.Linear(2, 2),
            run_dir=run_dir,
            supervise=False,
            capture=[{"collection": "weights", **capture}],
        )


def test_evaluations_of_a_model_that_is_never_called_are_no_part_of_a_step(run_dir):
    model = torch.nn.ModuleDict({"body": torch.nn.Linear(4, 3), "head": torch.nn.Linear(3, 2)})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    means = []
    with td.watch(model, run_dir=run_dir, collect="outputs", supervise=False):
        for _ in range(3):
            model.eval()
            with torch.no_grad():
                model["body"](torch.full((2, 4), 100.0))
            model.train()
            hidden = model["body"](torch.randn(5, 4))
            means.append(hidden.mean().item())
            functional.mse_loss(model["head"](hidden), torch.zeros(5, 2)).backward()
            optimizer.step()
    output = td.Run(run_dir)["output/body"]
    assert output.steps().tolist() == [1, 2]
    assert output.values("mean").tolist() == pytest.approx(means[1:], rel=1e-5)
