"""Modes of training that differ in what steps the weights."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from same import USUAL, Training, mode
from torch import nn
from torch.nn import functional as F
from torch.optim import swa_utils

CLASSES = 3


def batches(steps: int = 4, rows: int = 8, width: int = 6) -> Iterator[tuple[torch.Tensor, ...]]:
    for step in range(steps):
        generator = torch.Generator().manual_seed(step)
        yield (
            torch.randn(rows, width, generator=generator),
            torch.randint(0, CLASSES, (rows,), generator=generator),
        )


def perceptron(dropout: float = 0.2) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(6, 16), nn.ReLU(), nn.Dropout(dropout), nn.BatchNorm1d(16), nn.Linear(16, CLASSES)
    )


def optimizers_of_pytorch(parameters: list[nn.Parameter]) -> Iterator[torch.optim.Optimizer]:
    optim = torch.optim
    for how in ({"foreach": True}, {"foreach": False}, {"fused": True}):
        yield optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True, **how)
        yield optim.Adam(parameters, lr=0.01, amsgrad=True, **how)
    for kind in ("NAdam", "RAdam", "Adamax", "Adadelta", "ASGD", "RMSprop", "Rprop", "Adafactor"):
        yield getattr(optim, kind)(parameters, lr=0.01)


@mode(
    steps=28,
    holds=("weights", "gradients", "losses", "optimizer_state", "weight_updates"),
    is_slow=True,
)
def optimizers_one_after_another(t: Training) -> None:
    model = perceptron()
    t.watch(model)
    for optimizer in optimizers_of_pytorch(list(model.parameters())):
        t.fit(model, optimizer, batches(2))
        t.left(state=optimizer)


@mode(steps=3, holds=("weights", "gradients", "losses", "weight_updates"))
def lbfgs_with_a_closure(t: Training) -> None:
    model = perceptron(0)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, line_search_fn="strong_wolfe")
    t.watch(model, optimizer)
    for x, y in batches(3):

        def closure(x: torch.Tensor = x, y: torch.Tensor = y) -> torch.Tensor:
            optimizer.zero_grad()
            loss = t.loss(F.cross_entropy(model(x), y))
            loss.backward()
            return loss

        optimizer.step(closure)


@mode(steps=4, holds=("weights", "gradients", "losses", "optimizer_state"))
def sparse_embeddings(t: Training) -> None:
    model = nn.Sequential(nn.EmbeddingBag(40, 8, sparse=True, mode="mean"), nn.Linear(8, CLASSES))
    sparse = torch.optim.SparseAdam(model[0].parameters(), lr=0.1)
    dense = torch.optim.Adam(model[1].parameters(), lr=0.1)
    t.watch(model, sparse, dense)
    for step in range(4):
        generator = torch.Generator().manual_seed(step)
        words = torch.randint(0, 40, (8, 5), generator=generator)
        sparse.zero_grad()
        dense.zero_grad()
        loss = t.loss(F.cross_entropy(model(words), words[:, 0] % CLASSES), words)
        loss.backward()
        sparse.step()
        dense.step()
        del words, loss
        t.stepped()


@mode(steps=5, holds=("weights", "gradients", "losses", "optimizer_state", "outputs"))
def adversaries_with_two_optimizers(t: Training) -> None:
    maker = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(), nn.Linear(8, 6), nn.Tanh())
    judge = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(), nn.Linear(8, 1))
    of_maker = torch.optim.Adam(maker.parameters(), lr=0.01, betas=(0.5, 0.999))
    of_judge = torch.optim.Adam(judge.parameters(), lr=0.01, betas=(0.5, 0.999))
    t.watch(judge, of_judge)
    t.watch(maker, of_maker)
    for real, _ in batches():
        made = maker(torch.randn(8, 4))
        of_judge.zero_grad()
        ones, zeros = torch.ones(8, 1), torch.zeros(8, 1)
        told = F.binary_cross_entropy_with_logits
        loss = t.loss(told(judge(real), ones) + told(judge(made.detach()), zeros), made)
        loss.backward()
        of_judge.step()
        of_maker.zero_grad()
        loss = t.loss(told(judge(made), ones))
        loss.backward()
        of_maker.step()
        del made, loss
        t.stepped()


@mode(steps=2)
def accumulated_micro_batches(t: Training) -> None:
    model = perceptron()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    t.watch(model, optimizer)
    for number, (x, y) in enumerate(batches(6)):
        loss = t.loss(F.cross_entropy(model(x), y) / 3, x, y)
        loss.backward()
        if number % 3 == 2:
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad(set_to_none=number < 4)
            del x, y, loss
            t.stepped()


@mode()
def bfloat16_autocast(t: Training) -> None:
    model = perceptron()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    t.watch(model, optimizer)

    def called(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(x)

    t.fit(called, optimizer, batches())


@mode(steps=4, holds=(*USUAL, "gradients_before"))
def float16_with_a_grad_scaler(t: Training) -> None:
    # Of six steps two are left out: the scale is too large at first, and one loss is not finite.
    model = perceptron()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16, growth_interval=2)
    t.watch(model, optimizer)
    for number, (x, y) in enumerate(batches(6)):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = t.loss(F.cross_entropy(model(x), y), x, y)
        if number == 4:
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        scaler.step(optimizer)
        scaler.update()
        del x, y, loss
        t.stepped()
    t.left(scaler=scaler.state_dict())


@mode()
def weights_in_bfloat16(t: Training) -> None:
    model = perceptron().to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=True)
    t.watch(model, optimizer)
    t.fit(model, optimizer, ((x.bfloat16(), y) for x, y in batches()))


@mode()
def averaged_models(t: Training) -> None:
    model = perceptron()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    average = swa_utils.AveragedModel(
        model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9), use_buffers=False
    )
    swa = swa_utils.AveragedModel(model)
    schedule = swa_utils.SWALR(optimizer, swa_lr=0.05, anneal_epochs=2)
    t.watch(model, optimizer)
    t.belongs(average)
    t.belongs(swa)
    for batch in batches():
        t.fit(model, optimizer, [batch])
        average.update_parameters(model)
        swa.update_parameters(model)
        schedule.step()
    swa_utils.update_bn([x for x, _ in batches(3)], swa)
    average.eval()
    with torch.no_grad():
        t.left(averaged=[average(x) for x, _ in batches(2)])


@mode(steps=6)
def schedules_and_groups(t: Training) -> None:
    model = perceptron()
    optimizer = torch.optim.SGD(model[0].parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler
    warm = schedule.LinearLR(optimizer, 0.1, total_iters=2)
    then = schedule.CosineAnnealingLR(optimizer, 4)
    both = schedule.SequentialLR(optimizer, [warm, then], [2])
    flat = schedule.ReduceLROnPlateau(optimizer, patience=0)
    t.watch(model, optimizer)
    for number, batch in enumerate(batches(6)):
        if number == 2:
            optimizer.add_param_group({"params": list(model[4].parameters()), "lr": 0.01})
            both = schedule.ExponentialLR(optimizer, 0.9)
        t.fit(model, optimizer, [batch])
        both.step()
        flat.step(1.0)
    t.left(rates=[group["lr"] for group in optimizer.param_groups], flat=flat.state_dict())


@mode(steps=3, holds=("weights", "gradients", "losses"))
def differentiable_steps_inside(t: Training) -> None:
    """Learning to learn: an inner optimizer whose steps the outer loss is differentiated by."""
    model = nn.Linear(6, CLASSES)
    outer = torch.optim.Adam(model.parameters(), lr=0.01)
    t.watch(model, outer)
    for x, y in batches(3):
        outer.zero_grad()
        fast = {name: weight.clone() for name, weight in model.named_parameters()}
        inner = torch.optim.SGD(fast.values(), lr=0.1, momentum=0.9, differentiable=True)
        for _ in range(2):
            loss = F.cross_entropy(torch.func.functional_call(model, fast, (x,)), y)
            gradients = torch.autograd.grad(loss, fast.values(), create_graph=True)
            for weight, gradient in zip(fast.values(), gradients, strict=True):
                weight.grad = gradient
            inner.step()
        loss = t.loss(F.cross_entropy(torch.func.functional_call(model, fast, (x,)), y))
        loss.backward()
        outer.step()


@mode(steps=None, holds=("losses",))
def a_step_for_each_parameter_in_backward(t: Training) -> None:
    model = perceptron()
    each = {p: torch.optim.SGD([p], lr=0.1, momentum=0.9) for p in model.parameters()}
    t.watch(model, *each.values())

    def step(parameter: torch.Tensor) -> None:
        each[parameter].step()
        each[parameter].zero_grad()

    for parameter in each:
        parameter.register_post_accumulate_grad_hook(step)
    for x, y in batches():
        t.loss(F.cross_entropy(model(x), y)).backward()
    each.clear()


class SignDescent(torch.optim.Optimizer):
    """An optimizer of the user's, with a `step` and hooks of its own."""

    def __init__(self, parameters, lr: float) -> None:
        super().__init__(parameters, {"lr": lr})
        self.heard: list[str] = []
        self.register_step_pre_hook(lambda *_: self.heard.append("before"))
        self.register_step_post_hook(lambda *_: self.heard.append("after"))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    noise = torch.rand_like(parameter)
                    parameter.sub_(group["lr"] * noise * parameter.grad.sign())


@mode()
def an_optimizer_of_the_users(t: Training) -> None:
    model = perceptron()
    optimizer = SignDescent(model.parameters(), 0.01)
    t.watch(model, optimizer)
    t.fit(model, optimizer, batches())
    t.left(heard=optimizer.heard)


@mode(holds=("weights", "losses", "inputs", "outputs"), steps=4)
def weights_that_are_flattened(t: Training) -> None:
    """Gradients that are views of one buffer, and weights, too."""
    model = perceptron()
    parameters = list(model.parameters())
    flat = nn.utils.parameters_to_vector(parameters).detach()
    slopes = torch.zeros_like(flat)
    at = 0
    for parameter in parameters:
        until = at + parameter.numel()
        parameter.data = flat[at:until].view_as(parameter)
        parameter.grad = slopes[at:until].view_as(parameter)
        at = until
    whole = nn.Parameter(flat)
    whole.grad = slopes
    optimizer = torch.optim.Adam(parameters, lr=0.01, foreach=True)
    t.watch(model, optimizer)
    for x, y in batches():
        slopes.zero_()
        t.loss(F.cross_entropy(model(x), y)).backward()
        nn.utils.clip_grad_value_(parameters, 0.1)
        optimizer.step()
    t.left(flat=flat, slopes=slopes)
