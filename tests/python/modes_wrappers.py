"""Modes of training in which the model is inside of something, or compiled."""

from __future__ import annotations

import torch
from modes_models import sgd
from modes_optimizers import batches, perceptron
from same import USUAL, Training, mode
from torch import nn
from torch.nn import functional as F


@mode(holds=(*USUAL, "activations"))
def data_parallel_without_devices(t: Training) -> None:
    model = nn.DataParallel(perceptron())
    optimizer = sgd(model)
    t.watch(model, optimizer)
    t.fit(model, optimizer, batches())


@mode(
    compiled="skip",
    holds=("weights", "gradients", "losses"),
    said=("what the modules",),
    is_slow=True,
)
def compiled_and_left_alone(t: Training) -> None:
    model = perceptron(0.3)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    optimizer = sgd(model)
    t.watch(compiled, optimizer)
    t.fit(compiled, optimizer, batches())


@mode(compiled="eager")
def compiled_in_name_only(t: Training) -> None:
    """Dynamo alone: it runs the operators that an uncompiled step runs."""
    model = perceptron(0.3)
    model.compile(backend="eager")
    optimizer = sgd(model)
    t.watch(model, optimizer)
    t.fit(model, optimizer, batches())


@mode(said=("what modules inside",), holds=("weights", "gradients"))
def scripted(t: Training) -> None:
    model = torch.jit.script(perceptron())
    optimizer = sgd(model)
    t.watch(model, optimizer)
    t.fit(model, optimizer, batches())


@mode()
def models_inside_of_models(t: Training) -> None:
    """Two watchers, of a model and of a part of it; and a wrapper around both."""
    model = nn.Sequential(perceptron(), nn.Identity())
    optimizer = sgd(model)
    t.watch(model, optimizer)
    t.watch(model[0])
    t.watch(nn.DataParallel(model))
    t.fit(model, optimizer, batches())


@mode(holds=("weights", "gradients", "losses"))
def a_loss_module_of_ones_own(t: Training) -> None:
    class Focal(nn.Module):
        def forward(self, output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            logs = F.log_softmax(output, 1).gather(1, y[:, None])
            return -((1 - logs.exp()) ** 2 * logs).mean()

    model, loss_of = perceptron(), Focal()
    optimizer = sgd(model)
    t.watch(model, optimizer, loss_fn=loss_of)
    t.fit(model, optimizer, batches(), loss_of)


@mode(steps=None, holds=())
def nothing_but_evaluations(t: Training) -> None:
    model = perceptron().eval()
    t.watch(model)
    with torch.no_grad():
        for x, y in batches():
            t.left(loss=F.cross_entropy(model(x), y))


@mode(steps=2, holds=USUAL)
def watched_twice_in_a_row(t: Training) -> None:
    model = perceptron()
    optimizer = sgd(model)
    first = t.watch(model, optimizer)
    t.fit(model, optimizer, batches(2))
    if first is not None:
        first.detach()
    t.fit(model, optimizer, batches(1))
    if first is not None:
        again = t.watch(model, optimizer, run_dir=t.folder / f"{t.run_dir.name}-again")
        assert again is not None
        assert again.is_active
    t.fit(model, optimizer, batches(2))
