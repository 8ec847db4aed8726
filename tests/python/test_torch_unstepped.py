"""What is told of a training that ends without an optimizer step."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import traindbg as td
from traindbg.hooks.torch.updates.unstepped import Unstepped


def backward(unstepped: Unstepped, model: nn.Module) -> None:
    unstepped.backward_begins([(model, "")])
    model(torch.ones(1, 4)).sum().backward()
    unstepped.backward_ended()
    model.zero_grad()


@pytest.mark.parametrize("cleared", ["before the loss", "before backward", "after backward"])
def test_a_step_that_is_forgotten_is_told_wherever_gradients_are_cleared(run_dir, cleared) -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(
        model, optimizer, run_dir=run_dir, supervise=False, rules=["optimizer_never_steps"]
    ):
        for _ in range(30):
            if cleared == "before the loss":
                optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(torch.randn(3, 4)), torch.randn(3, 2))
            if cleared == "before backward":
                optimizer.zero_grad()
            loss.backward()
            if cleared == "after backward":
                optimizer.zero_grad()
    assert td.Run(run_dir).names("passes_without_step") == ["loop/passes_without_step"]


def passed(passes: int, *, has_optimizer: bool = True) -> Unstepped:
    model = nn.Linear(4, 2)
    unstepped = Unstepped()
    unstepped.has_optimizer = has_optimizer
    for _ in range(passes):
        unstepped.loss_computed([(model, "")])
        backward(unstepped, model)
    return unstepped


def test_twenty_passes_are_told_and_nineteen_are_not() -> None:
    assert passed(20).found() == ("passes_without_step", 20)
    assert passed(19).found() is None


def test_without_an_optimizer_nothing_was_to_be_trained() -> None:
    assert passed(100, has_optimizer=False).found() is None


def test_losses_count_where_there_was_no_backward() -> None:
    model, unstepped = nn.Linear(4, 2), Unstepped()
    unstepped.has_optimizer = True
    for _ in range(30):
        unstepped.loss_computed([(model, "")])
    assert unstepped.found() == ("losses_without_backward", 30)
    unstepped.backward_begins([(model, "")])
    assert unstepped.found() is None


def test_weights_that_a_loop_changes_by_hand_are_trained() -> None:
    model, unstepped = nn.Linear(4, 2), Unstepped()
    unstepped.has_optimizer = True
    for _ in range(40):
        backward(unstepped, model)
        model.bias.data += 1  # no version tells of this
    assert unstepped.found() is None


def test_a_model_that_is_gone_is_told_of_all_the_same() -> None:
    model, unstepped = nn.Linear(4, 2), Unstepped()
    unstepped.has_optimizer = True
    for _ in range(20):
        backward(unstepped, model)
    del model
    assert unstepped.found() == ("passes_without_step", 20)


def test_passes_of_another_model_are_not_its_own() -> None:
    model, other, unstepped = nn.Linear(4, 2), nn.Linear(4, 2), Unstepped()
    unstepped.has_optimizer = True
    for _ in range(40):
        unstepped.backward_begins([(model, "")])
        other(torch.ones(1, 4)).sum().backward()
        unstepped.backward_ended()
    assert unstepped.found() is None


def test_weights_that_are_replaced_are_changed() -> None:
    model, unstepped = nn.Linear(4, 2), Unstepped()
    unstepped.has_optimizer = True
    for _ in range(40):
        backward(unstepped, model)
        model.weight = nn.Parameter(model.weight.detach().clone())
    assert unstepped.found() is None


def test_what_is_not_a_number_stays_as_it_was() -> None:
    model, unstepped = nn.Linear(4, 2), Unstepped()
    unstepped.has_optimizer = True
    nn.init.constant_(model.bias, torch.nan)
    for _ in range(20):
        backward(unstepped, model)
    assert unstepped.found() == ("passes_without_step", 20)


@pytest.mark.parametrize("kind", ["lazy", "meta", "sparse", "empty"])
def test_parameters_without_values_to_read_are_left_out(kind: str) -> None:
    unstepped = Unstepped()
    unstepped.has_optimizer = True
    model = nn.Linear(4, 2)
    model.other = {
        "lazy": lambda: nn.LazyLinear(3),
        "meta": lambda: nn.Linear(2, 2, device="meta"),
        "sparse": lambda: nn.ParameterList([nn.Parameter(torch.eye(3).to_sparse())]),
        "empty": lambda: nn.ParameterList([nn.Parameter(torch.empty(0, 3))]),
    }[kind]()
    for _ in range(20):
        backward(unstepped, model)
    assert unstepped.found() == ("passes_without_step", 20)


def test_lone_weights_with_another_stride_are_told_of_too() -> None:
    """As of a convolution by 1 to one channel, in the order of channels_last."""
    model = nn.Conv2d(8, 2, 1).to(memory_format=torch.channels_last)
    unstepped = Unstepped()
    unstepped.has_optimizer = True
    for _ in range(20):
        unstepped.loss_computed([(model, "")])
        unstepped.backward_begins([(model, "")])
        model(torch.ones(1, 8, 2, 2)).sum().backward()
        unstepped.backward_ended()
        model.zero_grad()
    assert unstepped.found() == ("passes_without_step", 20)
