"""Modes of training that differ in what else the process does."""

from __future__ import annotations

import random
import threading
import traceback
from collections.abc import Callable

import numpy as np
import torch
from modes_models import sgd
from modes_optimizers import CLASSES, batches, perceptron
from same import USUAL, Training, mode
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, IterableDataset, WeightedRandomSampler


class Drawn(Dataset):
    """Draws from each of three generators for every row."""

    def __len__(self) -> int:
        return 32

    def __getitem__(self, row: int) -> tuple[torch.Tensor, int]:
        return torch.randn(6) + random.random() + np.random.rand(), row % CLASSES


def loaded(t: Training, loader: DataLoader) -> None:
    model = perceptron()
    optimizer = sgd(model)
    t.watch(model, optimizer)
    for _ in range(2):
        t.fit(model, optimizer, loader)


def seed(worker: int) -> None:
    random.seed(worker)
    np.random.seed(worker)


@mode(steps=8)
def a_loader_in_the_process(t: Training) -> None:
    loaded(t, DataLoader(Drawn(), 8, sampler=WeightedRandomSampler([1.0] * 32, 32)))


@mode(steps=8)
def workers_that_are_forked(t: Training) -> None:
    context = {"multiprocessing_context": "fork", "worker_init_fn": seed}
    loaded(t, DataLoader(Drawn(), 8, shuffle=True, num_workers=2, **context))


@mode(steps=8, is_slow=True)
def workers_that_are_spawned(t: Training) -> None:
    context = {"multiprocessing_context": "spawn", "worker_init_fn": seed}
    loaded(
        t, DataLoader(Drawn(), 8, shuffle=True, num_workers=1, persistent_workers=True, **context)
    )


class Stream(IterableDataset):
    def __iter__(self):
        for _ in range(2):
            yield torch.randn(8, 6), torch.randint(0, CLASSES, (8,))


@mode(steps=4)
def a_stream_without_batches(t: Training) -> None:
    loaded(t, DataLoader(Stream(), batch_size=None, generator=torch.Generator().manual_seed(2)))


def in_threads(*works: Callable[[], None]) -> None:
    failed: list[BaseException] = []

    def kept(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=kept, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


@mode(steps=None, holds=("weights", "losses"), said=("what other threads train",))
def two_trainings_in_two_threads(t: Training) -> None:
    models = [perceptron(0), perceptron(0)]
    optimizers = [sgd(model) for model in models]
    for model, optimizer in zip(models, optimizers, strict=True):
        t.watch(model, optimizer)
    losses: list[list[float]] = [[], []]
    both = threading.Barrier(2, timeout=60)

    def work(number: int) -> None:
        for step, (x, y) in enumerate(batches(12)):
            optimizers[number].zero_grad()
            loss = F.cross_entropy(models[number](x + number), y)
            loss.backward()
            if step < 2:
                both.wait()  # each is in the middle of a step
            optimizers[number].step()
            losses[number].append(loss.item())

    in_threads(lambda: work(0), lambda: work(1))
    t.left(losses=losses)


@mode(steps=4)
def a_training_in_a_thread(t: Training) -> None:
    model = perceptron()
    optimizer = sgd(model)
    t.watch(model, optimizer)
    in_threads(lambda: t.fit(model, optimizer, batches()))


class Fails(nn.Module):
    error: BaseException | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.error is not None:
            raise self.error
        return x


def told_of(work: Callable[[], None]) -> list[str]:
    """The exception of some work, and the lines of this file, and of the place, that it came from.

    Between them there may be lines of what listens to PyTorch's functions.
    """
    try:
        work()
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        mine = [frame for frame in frames if frame.filename == __file__]
        where = [f"{frame.filename}:{frame.name}:{frame.line}" for frame in mine]
        context = [type(error.__cause__).__name__, type(error.__context__).__name__]
        return [type(error).__name__, str(error), *context, *where]
    return ["nothing was raised"]


@mode(steps=3, holds=USUAL)
def exceptions_of_the_training(t: Training) -> None:
    model = nn.Sequential(perceptron(), Fails())
    optimizer = sgd(model)
    t.watch(model, optimizer)
    x, y = next(iter(batches(1)))
    t.fit(model, optimizer, batches(1))

    def backward_fails() -> None:
        model(x).sum().register_hook(lambda _: 1 / 0)
        loss = model(x).sum()
        loss.register_hook(lambda _: 1 / 0)
        loss.backward()

    def closure_fails() -> None:
        optimizer.step(lambda: 1 / 0)

    told = [
        told_of(lambda: model(x[:, :3])),
        told_of(lambda: F.cross_entropy(model(x), y[:3])),
        told_of(lambda: F.cross_entropy(model(x), y, reduction="nothing")),
        told_of(lambda: F.cross_entropy(model(x))),
        told_of(lambda: F.mse_loss(model(x), x, nobody=1)),
        told_of(lambda: model(x).backward()),
        told_of(lambda: model(x).sum().detach().backward()),
        told_of(lambda: model(x, x)),
        told_of(backward_fails),
        told_of(closure_fails),
        told_of(lambda: nn.utils.clip_grad_norm_(model.parameters(), "much")),
        told_of(lambda: nn.utils.clip_grad_norm_(3, 1.0)),
        told_of(lambda: optimizer.load_state_dict({})),
        told_of(lambda: model.load_state_dict({})),
        told_of(lambda: list(DataLoader([1, 2, "three"], batch_size=3))),
        told_of(lambda: torch.load("nowhere/at.all")),
        told_of(lambda: model.register_module("a.b", None)),
        told_of(lambda: torch.amp.GradScaler("cpu").step(optimizer)),
    ]
    t.fit(model, optimizer, batches(1))
    for error in (KeyError("mine"), KeyboardInterrupt(), SystemExit(3), StopIteration(4)):
        model[1].error = error
        told.append(told_of(lambda: t.fit(model, optimizer, batches(1))))
    model[1].error = None
    t.fit(model, optimizer, batches(1))
    for number, each in enumerate(told):
        t.left(**{f"exception_{number}": each})


# The last one holds the losses of models that are not watched.
@mode(steps=4, holds=USUAL)
def cells_that_are_run_again(t: Training) -> None:
    """Class, model and optimizer are made anew under the same names, as in a notebook."""
    cell = (
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.inner = nn.Linear(6, 3)\n"
        "    def forward(self, x):\n"
        "        return torch.relu(self.inner(x))\n"
        "model = Net()\n"
        "optimizer = torch.optim.Adam(model.parameters())\n"
    )
    names = {"nn": nn, "torch": torch}
    for number in range(3):
        exec(cell, names)
        if number == 0:
            t.watch(names["model"], names["optimizer"])
        t.fit(names["model"], names["optimizer"], batches(3))
        t.left(model=names["model"])
