"""Several trainings in one process, one after the other."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks import torch_recording


def train(model, optimizer, steps: int) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        F.mse_loss(model(torch.randn(8, 4)), torch.zeros(8, 2)).backward()
        optimizer.step()


def sgd(model, rate: float = 0.01):
    return torch.optim.SGD(model.parameters(), lr=rate)


def test_a_second_model_drives_although_the_first_optimizer_is_alive(run_dir):
    first, second = nn.Linear(4, 2), nn.Linear(4, 2)
    kept = sgd(first)
    with td.watch(first, run_dir=run_dir, every=1, supervise=False):
        train(first, kept, 3)
        with td.watch(second):
            train(second, sgd(second, 0.02), 4)
    run = td.Run(run_dir)
    assert run.steps().tolist() == list(range(7))
    assert run["gradient/weight"].steps().tolist() == [0, 1, 2]
    assert run["gradient/Linear.weight"].steps().tolist() == [3, 4, 5, 6]
    assert [o["settings"]["lr"] for o in run.worker_meta()["optimizers"]] == [0.02]


def test_optimizers_that_take_turns_are_one_training(run_dir):
    first, second = nn.Linear(4, 2), nn.Linear(4, 2)
    one, other = sgd(first), sgd(second)
    with td.watch(first, run_dir=run_dir, every=1, supervise=False), td.watch(second):
        for _ in range(3):
            train(first, one, 1)
            train(second, other, 2)
    assert len(td.Run(run_dir).worker_meta()["optimizers"]) == 2
    # The fourth is what the second optimizer did after the first one's last step.
    assert td.Run(run_dir).steps().tolist() == [0, 1, 2, 3]


def test_a_loop_that_ended_leaves_the_steps_to_the_next_optimizer(run_dir):
    model = nn.Linear(4, 2)
    kept = sgd(model)
    with td.watch(model, run_dir=run_dir, every=1, supervise=False):
        train(model, kept, 3)
        torch_recording.current.loop_ended(ValueError("the first one"))
        torch_recording.current.loop_ended(ValueError("of something else"))
        train(model, sgd(model, 0.5), 2)
        torch_recording.current.loop_ended()
        train(model, kept, 1)
    run = td.Run(run_dir)
    assert run.steps().tolist() == list(range(6))
    assert run["gradient/weight"].steps().tolist() == list(range(6))
    errors = [event["data"] for event in run.events if event["kind"] == "exception"]
    assert [(error["message"], error["step"]) for error in errors] == [("the first one", 3)]


@pytest.mark.parametrize("model_again", [True, False])
def test_zero_code_follows_trainings_whose_optimizers_stay_alive(model_again, python, run_dir):
    source = (
        "import torch\n"
        "kept = []\n"
        "model = torch.nn.Linear(4, 1)\n"
        "for fold in range(3):\n"
        f"    if not {model_again}: model = torch.nn.Linear(4, 1)\n"
        "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "    kept.append((model, optimizer))\n"
        "    for _ in range(3):\n"
        "        optimizer.zero_grad()\n"
        "        model(torch.ones(2, 4)).sum().backward()\n"
        "        optimizer.step()\n"
    )
    done = python(source, recorded=run_dir, TRAINDBG_STRICT="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert td.Run(run_dir).steps().tolist() == list(range(9))
