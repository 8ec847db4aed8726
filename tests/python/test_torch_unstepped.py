"""What is told of a training that ends without an optimizer step."""

from __future__ import annotations

from torch import nn

from traindbg.hooks.torch_unstepped import Unstepped


def passed(passes: int, *, has_optimizer: bool = True) -> Unstepped:
    model = nn.Linear(4, 2)
    unstepped = Unstepped()
    unstepped.has_optimizer = has_optimizer
    for _ in range(passes):
        unstepped.loss_computed([(model, "")])
        unstepped.backward_begins([(model, "")])
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
        unstepped.backward_begins([(model, "")])
        model.bias.data += 1  # no version tells of this
    assert unstepped.found() is None


def test_a_model_that_is_gone_is_told_of_all_the_same() -> None:
    model: nn.Module | None = nn.Linear(4, 2)
    unstepped = Unstepped()
    unstepped.has_optimizer = True
    for _ in range(20):
        unstepped.backward_begins([(model, "")] if model is not None else [])
    del model
    assert unstepped.found() == ("passes_without_step", 20)
