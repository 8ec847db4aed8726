"""What is told of the training loop, and what rules make of it: real trainings, with twins."""

from __future__ import annotations

import copy
import gc
import json
import shutil
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from trainings import fingerprint

import traindbg as td
from traindbg.hooks.torch.losses.holders import holder_of
from traindbg.hooks.torch.recording import recording as recordings
from traindbg.hooks.torch.updates.resume import are_fresh

STEPS = 30
KINDS = (
    "accumulation_not_averaged",
    "detached_graph",
    "detached_loss",
    "eval_mode_while_training",
    "frozen_parameters",
    "loss_sign_flipped",
    "no_nonlinearity",
    "parameters_not_in_optimizer",
    "step_without_gradient",
    "train_mode_in_validation",
    "unregistered_parameters",
)


def batch(step: int, samples: int = 16) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(samples, 12, generator=generator)
    return x, (x[:, 0] > 0).long() + (x[:, 1] > 0).long()


def mlp(*between: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Linear(12, 32), *(between or (nn.ReLU(),)), nn.Linear(32, 3))


def sgd(model: nn.Module, rate: float = 0.1) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), lr=rate)


class Parts(nn.Module):
    """Body, head, and what may stand between them."""

    def __init__(self, cut: str = "") -> None:
        super().__init__()
        self.cut = cut
        self.body = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
        self.head = nn.Linear(16, 3)
        if cut in ("pooler", "experts"):
            self.pooler = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.cut == "no_grad":
            with torch.no_grad():
                h = self.body(x)
        else:
            h = self.body(x)
        if self.cut == "detach":
            h = h.detach()
        out = self.head(h)
        if self.cut == "pooler":
            self.pooler(h)  # nobody uses what it returns
        if self.cut == "experts":
            return out + self.pooler(h).mean() if torch.rand(()) < 0.2 else out
        return out


class Plain:
    """Holds what is to be trained, and is no module."""

    def __init__(self, kind: str) -> None:
        self.gain = nn.Parameter(torch.ones(12))
        self.layers = [nn.Linear(12, 12)]
        if kind == "object_of_loaded":
            self.layers[0].weight.data.mul_(1.3)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers[0](x)


class Hidden(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        layers = [nn.Linear(12, 12), nn.Linear(12, 12)]
        self.layers = layers if kind == "list" else nn.ModuleList(layers)
        if kind == "tensor":
            self.gain = torch.ones(12, requires_grad=True)
        if kind == "view":
            self.gain = nn.Parameter(torch.ones(12)).unsqueeze(0)
        if kind == "view_in_list":
            self.gains = [[nn.Parameter(torch.ones(12)).unsqueeze(0)]]
        if kind.startswith("object"):
            self.parts = {"plain": Plain(kind)}
        self.kind = kind
        self.head = nn.Linear(12, 3)
        self.seen = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.kind == "input":
            x = self.seen = x.clone().requires_grad_()
        for layer in self.layers:
            x = F.relu(layer(x))
        if self.kind in ("tensor", "view"):
            x = x * self.gain
        if self.kind == "view_in_list":
            x = x * self.gains[0][0]
        if self.kind == "object":
            x = x * self.parts["plain"].gain
        if self.kind.startswith("object_of"):
            x = x + self.parts["plain"](x)
        return self.head(x)


def ordinary(model, optimizer, criterion=F.cross_entropy, steps=STEPS):
    for step in range(steps):
        x, y = batch(step)
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
        yield


def order(watch, kind: str):
    model = mlp()
    optimizer = sgd(model)
    watch(model)
    for step in range(STEPS):
        x, y = batch(step)
        loss = F.cross_entropy(model(x), y)
        if kind == "backward_forgotten":
            optimizer.zero_grad()
        elif kind == "set_to_zero_between":
            loss.backward()
            optimizer.zero_grad(set_to_none=False)
        elif kind == "cleared_between":
            loss.backward()
            optimizer.zero_grad()
        elif kind == "by_hand":
            parameters = list(model.parameters())
            for p, g in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
                p.grad = g
        elif kind == "closure":

            def closure(x=x, y=y):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                return loss

            optimizer.step(closure)
            continue
        elif kind == "satisfied":
            optimizer.zero_grad(set_to_none=False)
            (loss * 0).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        else:
            optimizer.zero_grad(set_to_none=kind != "set_to_zero")
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()


def cut_loss(watch, kind: str):
    model = mlp()
    optimizer = sgd(model)
    watch(model)
    for step in range(STEPS):
        x, y = batch(step)
        optimizer.zero_grad()
        out = model(x)
        if kind == "requires_grad":
            F.cross_entropy(out.detach(), y).requires_grad_().backward()
        elif kind == "argmax":
            guess = out.argmax(1).float().requires_grad_()
            F.mse_loss(guess, y.float()).backward()
        else:  # an attack's backward pass before that of the training
            attacked = x.clone().requires_grad_()
            F.cross_entropy(model(attacked).detach() + attacked.sum(), y).backward()
            F.cross_entropy(out, y).backward()
        optimizer.step()


def cut_model(watch, kind: str):
    model = Parts(kind.removesuffix(" loaded"))
    if kind.endswith("loaded"):
        for parameter in model.parameters():
            parameter.data.mul_(1.3)
    optimizer = sgd(model)
    watch(model)
    for _ in ordinary(model, optimizer):
        pass


def left_out(watch, kind: str):
    model = Parts()
    if kind == "loaded_backbone":
        for parameter in model.body.parameters():
            parameter.data.mul_(1.3)
    if kind == "new_head":
        optimizer = sgd(model)
        model.head = nn.Linear(16, 3)
    elif kind in ("two_optimizers", "head_only", "loaded_backbone", "by_hand"):
        optimizer = sgd(model.head)
    else:
        optimizer = sgd(model)
    watch(model)
    second = sgd(model.body) if kind == "two_optimizers" else None
    for step, _ in enumerate(ordinary(model, optimizer)):
        if second is not None and step % 20 == 19:
            second.step()
        if kind == "by_hand":
            for parameter in model.body.parameters():
                parameter.data.sub_(parameter.grad, alpha=0.1)


def table(watch, kind: str):
    """A frozen table of vectors; those that were learned lie along few directions."""
    rows = 0.4 * torch.randn(200, 16)
    if kind == "table_learned":
        rows = torch.randn(200, 4) @ torch.randn(4, 16) + 0.1 * rows
    if kind == "table_of_waves":
        angles = torch.arange(200.0)[:, None] / 100 ** (torch.arange(8) / 8)
        rows = torch.cat([angles.sin(), angles.cos()], 1)
    rows[0] = 0
    model = nn.Sequential(nn.Embedding.from_pretrained(rows), nn.Flatten(), nn.Linear(64, 3))
    if kind == "table_loaded":
        watch(model)
        model[0].load_state_dict(model[0].state_dict())
    else:
        watch(model)
    optimizer = sgd(model[2])
    for step in range(STEPS):
        ids = torch.randint(0, 200, (16, 4), generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        F.cross_entropy(model(ids), ids[:, 0] % 3).backward()
        optimizer.step()


def frozen(watch, kind: str):
    if kind.startswith("table"):
        table(watch, kind)
        return
    model = Parts()
    model.body.requires_grad_(False)
    if kind == "loaded":
        for parameter in model.body.parameters():
            parameter.data.mul_(1.3)
    if kind == "no_grad":
        model.cut = "no_grad"  # the target of a distillation, say
    watch(model)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    for _ in ordinary(model, optimizer):
        if kind == "averaged":
            for parameter in model.body.parameters():
                parameter.data.mul_(0.999)


def hidden(watch, kind: str):
    model = Hidden(kind)
    watch(model)
    for _ in ordinary(model, sgd(model)):
        pass


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inside = nn.Linear(12, 16)
        self.block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.block(self.inside(x)[:, None])[:, 0])


class Stream(nn.Module):
    """Each block is given the sum of all before it, by an activation in front of its layer."""

    def __init__(self, activation: type[nn.Module]) -> None:
        super().__init__()
        self.inside = nn.Linear(12, 16)
        self.blocks = nn.ModuleList(
            nn.Sequential(activation(), nn.Linear(16, 16)) for _ in range(2)
        )
        self.head = nn.Sequential(activation(), nn.Linear(16, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.inside(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


class Wide(nn.Module):
    """Sums of linear parts: one for each half of the input, or one of low rank beside the other."""

    def __init__(self, *, has_low_rank: bool) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(12, 3), nn.Linear(6, 3)
        self.down, self.up = nn.Linear(12, 2), nn.Linear(2, 3)
        self.has_low_rank = has_low_rank

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        beside = self.up(self.down(x)) if self.has_low_rank else self.second(x[:, :6])
        return self.first(x) + beside


class System(nn.Module):
    """A linear one, step after step: the next state of the last one and an input."""

    def __init__(self) -> None:
        super().__init__()
        self.state, self.given, self.seen = nn.Linear(4, 4), nn.Linear(3, 4), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros(len(x), 4)
        for given in x.unflatten(1, (4, 3)).unbind(1):
            state = state + self.state(state) + self.given(given)
        return self.seen(state)


class Separable(nn.Module):
    """A depthwise convolution and a pointwise one after it, as usual."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = nn.Conv1d(4, 4, 3, padding=1, groups=4)
        self.point = nn.Conv1d(4, 16, 1)
        self.head = nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(F.relu(self.point(self.depth(x.view(-1, 4, 3)))).mean(2))


class Blocks(nn.Module):
    """Two residual blocks, with what stands between their layers."""

    def __init__(self, between=None) -> None:
        super().__init__()
        self.up = nn.ModuleList(nn.Linear(16, 32) for _ in range(2))
        self.down = nn.ModuleList(nn.Linear(32, 16) for _ in range(2))
        self.between = between

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for up, down in zip(self.up, self.down, strict=True):
            h = up(x) if self.between is None else self.between(up(x))
            x = x + down(h)
        return x


class Skipped(nn.Module):
    """A U-net with a way around its coarse layers, which ends in the same layer as they do."""

    def __init__(self, between=None) -> None:
        super().__init__()
        self.fine, self.norm = nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.coarse = nn.Conv2d(8, 16, 2, stride=2)
        self.up = nn.Conv2d(16, 8, 1)
        self.out = nn.Conv2d(16, 3, 1)
        self.between = between or nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        fine = self.between(self.norm(self.fine(x.view(-1, 1, 2, 6))))
        coarse = self.between(F.interpolate(self.up(self.coarse(fine)), scale_factor=2))
        return self.out(torch.cat([fine, coarse], 1)).mean((2, 3))


class TwoParts(nn.Module):
    """A linear model of two groups of columns, on purpose."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.left(x[:, :6]) + self.right(x[:, 6:])


def nonlinearity(watch, kind: str):
    deep = (nn.Linear(32, 32), nn.Linear(32, 32))
    models = {
        "none": lambda: mlp(nn.Dropout(0.2)),
        "none_deep": lambda: mlp(*deep),
        "slope_true": lambda: mlp(nn.LeakyReLU(True), nn.Linear(32, 32), nn.LeakyReLU(True)),
        "slope": lambda: mlp(nn.LeakyReLU(), nn.Linear(32, 32), nn.LeakyReLU(inplace=True)),
        "half": lambda: mlp(nn.ReLU(), *deep),
        "convolutions": lambda: nn.Sequential(
            nn.Unflatten(1, (1, 12)),
            nn.Conv1d(1, 8, 3),
            nn.Conv1d(8, 8, 3),
            nn.Flatten(),
            nn.Linear(64, 3),
        ),
        "norm_and_pooling": lambda: nn.Sequential(
            nn.Unflatten(1, (1, 3, 4)),
            nn.Conv2d(1, 8, 2),
            nn.BatchNorm2d(8),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(8, 3),
        ),
        "residual_linear": lambda: nn.Sequential(nn.Linear(12, 16), Blocks(), nn.Linear(16, 3)),
        "skipped_linear": Skipped,
        "skipped": lambda: Skipped(nn.ReLU()),
        "relu": mlp,
        "residual": lambda: nn.Sequential(nn.Linear(12, 16), Blocks(torch.relu), nn.Linear(16, 3)),
        "two_parts": TwoParts,
        "norm": lambda: mlp(nn.LayerNorm(32), nn.ReLU()),
        "one": lambda: nn.Linear(12, 3),
        "bottleneck": lambda: nn.Sequential(nn.Linear(12, 2), nn.Linear(2, 3)),
        "head": lambda: mlp(nn.ReLU(), nn.Linear(32, 32)),  # a note
        "transformer": Residual,
        "separable": Separable,
        "stream_linear": lambda: Stream(nn.Identity),
        "stream": lambda: Stream(nn.SiLU),
        "wide": lambda: Wide(has_low_rank=False),
        "low_rank": lambda: Wide(has_low_rank=True),
        "system": System,
    }
    model = models[kind]()
    watch(model)
    for _ in ordinary(model, sgd(model, 0.01)):
        pass


def modes(watch, kind: str):
    model = mlp(nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2))
    stays = kind in ("frozen_norm", "norm_that_sees_no_batch")
    if kind == "frozen_norm":
        model[1](torch.randn(64, 32))
    if stays:
        model[1].eval()
    if kind == "from_the_start":
        model.eval()
    if kind == "loaded_norms":
        model = mlp(nn.BatchNorm1d(32), nn.ReLU())
        model[1].running_mean += 0.3
        model[1].num_batches_tracked += 9
        model.eval()
    optimizer = sgd(model)
    watch(model)
    for step, _ in enumerate(ordinary(model, optimizer, steps=80)):
        if step % 8 == 7:
            model.eval()
            with torch.no_grad():
                F.cross_entropy(model(batch(999)[0]), batch(999)[1])
            if kind not in ("never_back", "from_the_start", "loaded_norms"):
                model.train()
            if stays:
                model[1].eval()


def validation(watch, kind: str):
    model = mlp(nn.ReLU(), nn.Dropout(0.2))
    optimizer = sgd(model)
    averaged = torch.optim.swa_utils.AveragedModel(model)
    watch(model)
    for step, _ in enumerate(ordinary(model, optimizer, steps=60)):
        if step % 20 != 19:
            continue
        if kind == "averaged":  # another model is evaluated
            averaged.update_parameters(model)
            averaged.eval()
        if kind == "eval":
            model.eval()
        if kind == "monte_carlo":
            model.eval()
            model[2].train()
        with torch.no_grad():
            if kind == "train_batch":
                F.cross_entropy(model(batch(step)[0]), batch(step)[1])
            elif kind == "averaged":
                for number in range(4):
                    x, y = batch(999 + number, 40)
                    F.cross_entropy(averaged(x), y)
            elif kind == "whole_set":
                F.cross_entropy(model(batch(999, 100)[0]), batch(999, 100)[1])
            else:
                for number in range(4):
                    F.cross_entropy(model(batch(999 + number)[0]), batch(999 + number)[1])
        model.train()


class Tasks(nn.Module):
    """A body that several tasks share; each has a head of its own."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.body = mlp()
        self.heads = nn.ModuleList(nn.Linear(3, 3) for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)


def accumulation(watch, kind: str):
    model = Tasks(4) if kind == "tasks" else mlp()
    optimizer = torch.optim.Adam(model.parameters()) if kind == "adam" else sgd(model, 0.05)
    watch(model)
    for step in range(STEPS):
        optimizer.zero_grad()
        if kind == "tasks":  # each with a head of its own
            for number, head in enumerate(model.heads):
                x, y = batch(4 * step + number)
                F.cross_entropy(head(model(x)), y).backward()
        elif kind == "two_losses":
            x, y = batch(step)
            out = model(x)
            F.cross_entropy(out, y).backward(retain_graph=True)
            F.multi_margin_loss(out, y).backward()
        elif kind == "same_labels":
            x, y = batch(step)
            F.cross_entropy(model(x), y).backward()
            F.cross_entropy(model(x + 0.1), y).backward()
        elif kind in ("two_sources", "two_sums"):  # a term for each, and no accumulation
            (x, y), (x_other, y_other) = batch(2 * step), batch(2 * step + 1)
            if kind == "two_sources":
                F.cross_entropy(model(x), y).backward()
                F.cross_entropy(model(x_other), y_other).backward()
            else:
                first = F.cross_entropy(model(x), y, reduction="sum") / len(y)
                other = F.cross_entropy(model(x_other), y_other, reduction="sum") / len(y)
                for loss in (first, other):
                    loss.backward()
        else:
            held = (batch(4 * step + number) for number in range(4))  # freed one by one
            for x, y in held:
                if kind == "sum":
                    loss = F.cross_entropy(model(x), y, reduction="sum") / 64
                elif kind == "sum_over_own_labels":
                    loss = F.cross_entropy(model(x), y, reduction="sum") / len(y)
                else:
                    loss = F.cross_entropy(model(x), y)
                if "terms" in kind:  # a loss of two terms
                    aside = F.multi_margin_loss(model(x), y)
                    loss = loss / 4 + aside / 4 if kind == "terms_divided" else loss + 0.5 * aside
                if kind.startswith("divided"):
                    loss = loss / (1 if kind == "divided_by_one" else 4)
                loss.backward()
                if kind == "aside":  # each pass's gradient is taken out, and their mean put back
                    for parameter in model.parameters():
                        kept = parameter.grad / 4 + getattr(parameter, "kept", 0)
                        parameter.kept, parameter.grad = kept, None
            if kind == "aside":
                for parameter in model.parameters():
                    parameter.grad, parameter.kept = parameter.kept, 0
        optimizer.step()


def sign(watch, kind: str):
    model = mlp()
    optimizer = sgd(model, 0.01)

    def by_hand(out, y):
        return torch.log_softmax(out, 1)[torch.arange(len(y)), y].mean()

    def with_advantages(out, y):
        return (torch.log_softmax(out, 1).gather(1, y[:, None])[:, 0] * torch.randn(len(y))).mean()

    def shares(out, written_out=False):
        risk = out[:, 0]
        return risk - (risk.exp().cumsum(0).log() if written_out else risk.logcumsumexp(0))

    def cox(out, y, written_out=False):
        return shares(out, written_out)[y > 0].sum() / (y > 0).sum().clamp(min=1)

    def of_another(out, y):  # of the same node
        first, second = out.unbind(1)[:2]
        return (first - second.logcumsumexp(0)).mean()

    def order_with_costs(out, y):
        return (shares(out) * torch.rand(len(y))).mean()

    def two(out, y):
        return F.cross_entropy(out, y), F.mse_loss(out, torch.zeros_like(out))

    def ranks(out):
        return F.logsigmoid(out[:, 0] - out[:, 1]).mean()

    criteria = {
        "minus_two": lambda out, y: -sum(two(out, y)) / 2,
        "minus_each_of_two": lambda out, y: -two(out, y)[0] - 0.1 * two(out, y)[1],
        "minus_stacked": lambda out, y: -torch.stack(two(out, y)).sum(),
        "two": lambda out, y: sum(two(out, y)) * 0.5,
        "one_against_the_other": lambda out, y: 0.3 * two(out, y)[1] - two(out, y)[0],
        "partial_likelihood": cox,
        "partial_likelihood_written_out": lambda out, y: cox(out, y, written_out=True),
        "partial_likelihood_of_events": lambda out, y: (shares(out) * (y > 0)).sum(),
        "partial_likelihood_of_ones": lambda out, y: (shares(out) * (y > 0).float()).sum(),
        "partial_likelihood_selected": lambda out, y: shares(out).masked_select(y > 0).sum(),
        "minus_partial_likelihood": lambda out, y: -cox(out, y),
        "of_another": of_another,
        "order_with_costs": order_with_costs,
        "minus": lambda out, y: -F.cross_entropy(out, y),
        "times_minus_half": lambda out, y: F.cross_entropy(out, y) * -0.5,
        "log_probabilities": by_hand,
        "scaled": lambda out, y: 3 * F.cross_entropy(out, y),
        "by_hand": lambda out, y: -by_hand(out, y),
        "entropy_bonus": lambda out, y: (
            F.cross_entropy(out, y) - 0.01 * F.mse_loss(out, torch.zeros_like(out))
        ),
        "policy_gradient": with_advantages,
        "log_of_softmax": lambda out, y: out.softmax(1)[torch.arange(len(y)), y].log().mean(),
        "logsigmoid": lambda out, y: F.logsigmoid(out[:, 0] - out[:, 1]).mean(),
        "minus_logsigmoid": lambda out, y: -F.logsigmoid(out[:, 0] - out[:, 1]).mean(),
        "logsigmoid_penalised": lambda out, y: ranks(out) + 1e-3 * out.pow(2).mean(),
        "minus_logsigmoid_penalised": lambda out, y: 1e-3 * out.pow(2).mean() - ranks(out),
        "with_a_little_to_avoid": lambda out, y: F.cross_entropy(out, y) + 0.1 * ranks(out),
        "logsigmoid_less_squares": lambda out, y: ranks(out) - out.pow(2).mean() / 9,
    }
    watch(model)
    for _ in ordinary(model, optimizer, criteria[kind]):
        pass


CASES = {
    "step_without_gradient": (
        order,
        ("backward_forgotten", "cleared_between", "set_to_zero_between"),
        ("usual", "set_to_zero", "by_hand", "closure", "satisfied"),
    ),
    "detached_loss": (cut_loss, ("requires_grad", "argmax"), ("attack",)),
    "detached_graph": (
        cut_model,
        ("detach", "no_grad"),
        ("", "pooler", "experts", "no_grad loaded"),
    ),
    "parameters_not_in_optimizer": (
        left_out,
        ("new_head", "head_only"),
        ("all", "two_optimizers", "loaded_backbone", "by_hand"),
    ),
    "frozen_parameters": (
        frozen,
        ("random", "table"),
        (
            *("loaded", "no_grad", "averaged"),
            *("table_learned", "table_of_waves", "table_loaded"),
        ),
    ),
    "unregistered_parameters": (
        hidden,
        ("list", "tensor", "view", "view_in_list", "object", "object_of_module"),
        ("module_list", "input", "object_of_loaded"),
    ),
    "no_nonlinearity": (
        nonlinearity,
        (
            *("none", "none_deep", "slope_true", "half"),
            *("convolutions", "norm_and_pooling", "residual_linear", "stream_linear"),
            "skipped_linear",
        ),
        (
            *(
                "slope",
                "relu",
                "residual",
                "skipped",
                "two_parts",
                "norm",
                "one",
                "bottleneck",
                "head",
            ),
            *("transformer", "separable", "stream", "wide", "low_rank", "system"),
        ),
    ),
    "eval_mode_while_training": (
        modes,
        ("never_back", "from_the_start", "norm_that_sees_no_batch"),
        ("usual", "frozen_norm", "loaded_norms"),
    ),
    "train_mode_in_validation": (
        validation,
        ("train", "whole_set"),
        ("eval", "train_batch", "monte_carlo", "averaged"),
    ),
    "accumulation_not_averaged": (
        accumulation,
        ("undivided", "divided_by_one", "sum_over_own_labels", "terms"),
        (
            *(
                "divided",
                "divided_terms",
                "terms_divided",
                "tasks",
                "sum",
                "adam",
                "two_losses",
                "same_labels",
                "aside",
            ),
            *("two_sources", "two_sums"),
        ),
    ),
    "loss_sign_flipped": (
        sign,
        (
            "minus",
            "minus_two",
            "minus_each_of_two",
            "minus_stacked",
            "times_minus_half",
            "log_probabilities",
            "log_of_softmax",
            "logsigmoid",
            "logsigmoid_penalised",
            "partial_likelihood",
            "partial_likelihood_written_out",
            "partial_likelihood_of_events",
            "partial_likelihood_of_ones",
            "partial_likelihood_selected",
        ),
        (
            "scaled",
            "two",
            "one_against_the_other",
            "by_hand",
            "entropy_bonus",
            "policy_gradient",
            "minus_logsigmoid",
            "minus_logsigmoid_penalised",
            "logsigmoid_less_squares",
            "with_a_little_to_avoid",
            "minus_partial_likelihood",
            "of_another",
            "order_with_costs",
        ),
    ),
}


def findings(run_dir: Path) -> dict[str, dict]:
    """What the rules about the loop find in a run, above a note, by kind."""
    beside = Path(sys.executable).with_name("traindbg")
    program = str(beside) if beside.is_file() else shutil.which("traindbg")
    command = [program, "check", str(run_dir), "--rules", ",".join(KINDS), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    found = json.loads(done.stdout)["findings"]
    return {finding["kind"]: finding for finding in found if finding["severity"] != "info"}


def judge(training, run_dir: Path, name: str) -> dict[str, dict]:
    torch.manual_seed(3)
    training(lambda model: td.watch(model, run_dir=run_dir, supervise=False), name)
    recordings.current.close()
    return findings(run_dir)


FAULTS = [(kind, name) for kind, (_, bad, _) in CASES.items() for name in bad]
TWINS = [(kind, name) for kind, (_, _, good) in CASES.items() for name in good]


@pytest.mark.parametrize(("kind", "name"), FAULTS)
def test_a_fault_is_found(kind, name, run_dir):
    found = judge(CASES[kind][0], run_dir, name)
    assert kind in found, found


@pytest.mark.parametrize(("kind", "name"), TWINS)
def test_what_looks_alike_is_left_alone(kind, name, run_dir):
    assert judge(CASES[kind][0], run_dir, name) == {}


def told_of_a_frozen_table(deviations: list[float], rows: int, run_dir: Path) -> list[float]:
    """Of a table whose columns are normal numbers of these standard deviations."""
    torch.manual_seed(3)
    numbers = torch.randn(rows, len(deviations)) * torch.tensor(deviations)
    table = nn.Embedding.from_pretrained(numbers)
    model = nn.Sequential(table, nn.Flatten(), nn.Linear(4 * len(deviations), 3))
    optimizer = sgd(model[2])
    with td.watch(model, run_dir=run_dir, supervise=False):
        for _ in range(6):
            ids = torch.randint(0, rows, (16, 4))
            optimizer.zero_grad()
            F.cross_entropy(model(ids), ids[:, 0] % 3).backward()
            optimizer.step()
    run = td.Run(run_dir)
    name = "loop/frozen_fresh_modules/0"
    return run[name].series("value")[1].tolist() if name in run else []


# As nn.Embedding draws them, and of a size that nothing draws.
@pytest.mark.parametrize("deviation", [1.0, 0.3])
def test_a_frozen_table_of_a_few_random_numbers_is_told(deviation, run_dir):
    told = told_of_a_frozen_table([deviation] * 5, 150, run_dir)
    assert told
    assert set(told) == {1.0}


@pytest.mark.parametrize(
    "deviations",
    [
        [1.0, 0.8, 0.5, 0.3, 0.2, 0.1],
        # Together they look normal, and no direction stands out: one is too faint for chance.
        [0.3, 0.3, 0.3, 0.3, 0.3, 0.15],
    ],
)
def test_a_frozen_table_of_learned_factors_is_not(deviations, run_dir):
    assert told_of_a_frozen_table(deviations, 200, run_dir) == []


def trained(watch=None) -> str:
    """A training with all that is looked at; what it leaves behind."""
    torch.manual_seed(5)
    model = Parts("pooler")
    model.body.add_module("drop", nn.Dropout(0.3))
    model.body.add_module("split", nn.Unflatten(1, (4, 4)))
    model.body.add_module("block", nn.TransformerEncoderLayer(4, 2, 8, batch_first=True))
    model.body.add_module("join", nn.Flatten())
    model.body[2].requires_grad_(False)
    model.eval()
    optimizer = torch.optim.AdamW([*model.head.parameters(), *model.pooler.parameters()])
    if watch is not None:
        watch(model)
    losses = []
    for step in range(30):
        if step == 12:
            model.train()
        for number in range(2):
            x, y = batch(2 * step + number)
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            losses.append(loss.item())
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            losses.append(F.cross_entropy(model(batch(77, 40)[0]), batch(77, 40)[1]).item())
    return fingerprint(model, losses)


def test_results_are_the_same_bits(run_dir):
    alone = trained()
    assert trained(lambda model: td.watch(model, run_dir=run_dir, supervise=False)) == alone


def test_nothing_is_kept_and_no_hook_is_left(run_dir):
    model = Parts("pooler")
    optimizer = sgd(model)
    with td.watch(model, run_dir=run_dir, supervise=False):
        for step in range(12):
            x, y = batch(step)
            out = model(x)
            loss = F.cross_entropy(out, y)
            loss.backward()
            kept = [weakref.ref(each) for each in (x, y, out, loss, model.head.weight.grad)]
            optimizer.step()
            optimizer.zero_grad()
            del x, y, out, loss
            assert [ref() for ref in kept] == [None] * 5, step
        gone = weakref.ref(model.pooler)
        del model.pooler
        gc.collect()
        assert gone() is None
    assert not torch.nn.modules.module._global_forward_pre_hooks


def test_a_training_in_evaluation_mode_is_recorded_as_a_training(run_dir):
    model = mlp(nn.ReLU(), nn.Dropout(0.2)).eval()
    with td.watch(model, run_dir=run_dir, every=1, supervise=False):
        for _ in ordinary(model, sgd(model), steps=12):
            pass
        with torch.no_grad():
            F.cross_entropy(model(batch(99)[0]), batch(99)[1])
    run = td.Run(run_dir)
    # Only after the first step it is known that this was no evaluation.
    assert run.scalars("loss/cross_entropy")[0].tolist() == list(range(1, 12))
    assert run.scalars("loss")[0].tolist() == list(range(12))
    assert len(run.scalars("loss/cross_entropy", mode="eval")[0]) == 2


def test_an_attack_in_evaluation_mode_does_not_make_evaluations_trainings(run_dir):
    model = mlp(nn.ReLU(), nn.Dropout(0.2))
    optimizer = sgd(model)
    with td.watch(model, run_dir=run_dir, every=1, supervise=False):
        for step in range(6):
            x, y = batch(step)
            model.eval()
            x.requires_grad_()
            F.cross_entropy(model(x), y).backward()
            model.train()
            optimizer.zero_grad()
            F.cross_entropy(model(x.detach() + x.grad.sign()), y).backward()
            optimizer.step()
        model.eval()
        F.cross_entropy(model(batch(99)[0]), batch(99)[1])  # with gradients
    run = td.Run(run_dir)
    assert len(run.scalars("loss/cross_entropy")[0]) == 6
    assert len(run.scalars("loss/cross_entropy", mode="eval")[0]) == 7


def test_a_student_is_trained_beside_a_teacher_in_evaluation_mode(run_dir):
    teacher, student = mlp().eval(), mlp()
    optimizer = sgd(student)
    with td.watch(teacher, run_dir=run_dir, every=1, supervise=False), td.watch(student):
        for step in range(6):
            x, _ = batch(step)
            with torch.no_grad():
                soft = F.softmax(teacher(x), dim=1)
            optimizer.zero_grad()
            F.kl_div(F.log_softmax(student(x), 1), soft, reduction="batchmean").backward()
            optimizer.step()
    assert len(td.Run(run_dir).scalars("loss/kl_div")[0]) == 6


def test_two_models_of_a_game_are_left_alone(run_dir):
    torch.manual_seed(2)
    maker, judge_ = mlp(nn.BatchNorm1d(32), nn.ReLU()), nn.Sequential(nn.Linear(3, 8), nn.Tanh())
    judge_.append(nn.Linear(8, 1))
    first, second = (torch.optim.Adam(m.parameters(), lr=1e-3) for m in (judge_, maker))
    one, zero = torch.ones(16, 1), torch.zeros(16, 1)
    score = F.binary_cross_entropy_with_logits
    with td.watch(judge_, run_dir=run_dir, supervise=False), td.watch(maker):
        for step in range(30):
            made = maker(batch(step)[0])
            first.zero_grad()
            score(judge_(torch.randn(16, 3)), one).backward()
            score(judge_(made.detach()), zero).backward()
            first.step()
            if step % 3 == 2:
                second.zero_grad()
                (-score(judge_(made), zero)).backward()
                second.step()
    assert findings(run_dir) == {}


class EncoderDecoder(nn.Module):
    def __init__(self, cut: bool) -> None:
        super().__init__()
        self.encoder, self.decoder, self.cut = nn.Linear(12, 8), nn.Linear(8, 3), cut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        code = self.encoder(x).relu()
        return self.decoder(code.data if self.cut else code)


@pytest.mark.parametrize("cut", [False, True])
def test_a_part_that_one_optimizer_trains_for_nothing_is_told(run_dir, cut):
    torch.manual_seed(0)
    model = EncoderDecoder(cut)
    optimizers = [
        torch.optim.Adam(part.parameters(), lr=0.01) for part in (model.encoder, model.decoder)
    ]
    watcher = td.watch(
        model, optimizers[0], run_dir=run_dir, supervise=False, rules=["detached_loss"]
    )
    for step in range(4):
        x, y = batch(step)
        for optimizer in optimizers:
            optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        for optimizer in optimizers:
            optimizer.step()
    watcher.detach()
    run = td.Run(run_dir)
    name = "loop/parameters_reached_elsewhere/encoder"
    assert (name in run.names()) == cut
    if cut:
        assert set(run.scalars(name).values.tolist()) == {2}


def test_where_a_module_holds_what_it_did_not_register():
    model, leaf = nn.Sequential(nn.Linear(2, 2)), torch.ones(2, requires_grad=True)
    assert holder_of(leaf, model) == ""
    for value in (leaf, leaf.unsqueeze(0)):
        for name, held in (
            ("0.scale", value),
            ("0.scale[1]", [None, value]),
            ("0.scale['a']", {"a": value}),
            ("0.scale['a'][0]", {"a": [value]}),
        ):
            model[0].scale = held
            assert holder_of(leaf, model) == name
    model[0].scale = [leaf * torch.ones(2, requires_grad=True)]  # made of another one, too
    assert holder_of(leaf, model) == ""


class Proxy:
    """Stands for something that may not be there, as proxies of web frameworks and configs do."""

    @property
    def __class__(self):
        raise RuntimeError("outside of its context")

    def __getattr__(self, name: str):
        raise RuntimeError("outside of its context")


class Key:
    def __repr__(self) -> str:
        raise RuntimeError("no name")


def test_proxies_that_a_module_holds_are_not_woken_up():
    model, leaf = nn.Sequential(nn.Linear(2, 2)), torch.ones(2, requires_grad=True)
    model[0].__dict__.update(config=Proxy(), parts=[Proxy(), {Key(): leaf}])
    assert holder_of(leaf, model) == "0.parts[1][a Key]"
    model[0].parts = {"a": Proxy()}
    assert holder_of(leaf, model) == ""


def test_what_is_of_one_value_says_nothing_of_where_it_came_from():
    table = nn.Embedding(200, 4)
    assert are_fresh([(table, "table.weight", table.weight)]) == [True]
    nn.init.zeros_(table.weight)
    assert are_fresh([(table, "table.weight", table.weight)]) == [None]


def test_old_gradients_of_a_network_whose_optimizer_is_gone(run_dir):
    """Copies are trained in its place, as in meta-learning; the gradients of its last step stay."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 6), nn.Tanh(), nn.Linear(6, 3))
    copies = [copy.deepcopy(model) for _ in range(2)]
    both = nn.ModuleList([model, *copies])
    with td.watch(both, run_dir=run_dir, supervise=False, rules=["parameters_not_in_optimizer"]):
        for net in (model, *copies):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for step in range(20):
                x, y = batch(step)
                optimizer.zero_grad()
                F.cross_entropy(net(x), y).backward()
                optimizer.step()
            del optimizer
    counts = {
        value
        for name in td.Run(run_dir).names("^loop/not_in_optimizer")
        for value in td.Run(run_dir).scalars(name).values.tolist()
    }
    assert counts <= {0}


@pytest.mark.parametrize("kind", ["itself", "labels", "detached", "triplet"])
def test_what_is_compared_with_itself_alone_is_told(run_dir, kind):
    torch.manual_seed(0)
    model = mlp()
    optimizer = sgd(model)
    with td.watch(model, run_dir=run_dir, supervise=False, rules=["representation_collapse"]):
        for step in range(3):
            x, y = batch(step)
            a, b = model(x), model(x + 0.1)
            if kind == "triplet":
                loss = F.triplet_margin_loss(a, b, a.flip(0))
            else:
                loss = F.mse_loss(a, target=b.detach() if kind == "detached" else b)
            if kind == "labels":
                loss = loss + F.cross_entropy(a, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    told = td.Run(run_dir).names("^loop/compared_to_itself$")
    assert bool(told) == (kind == "itself")


def _without_diagonal(kind, products, target):
    """Of a covariance, in the ways in which this is written; the last ones know a target."""
    size = len(products)
    eye = torch.eye(size)
    if kind == "taken_off":
        return products - torch.diag(torch.diagonal(products))
    if kind == "filled":
        return products.clone().fill_diagonal_(0)
    if kind == "picked":
        return products[~eye.bool()]
    if kind == "masked":
        return products.masked_fill(eye.bool(), 0)
    if kind == "multiplied":
        return products * (1 - eye)
    if kind == "triangle":
        return products.triu(1)
    of_target = target.T @ target
    if kind == "picked_by_target":
        return products[of_target > 0]
    if kind == "masked_by_target":
        return products.masked_fill(of_target > 0, 0)
    if kind == "set_to_target":
        products = products.clone()
        products.diagonal().copy_(of_target.diagonal())
        return products
    assert kind == "multiplied_by_target"
    return products * of_target


def _written_out(kind, a, b, target, free):
    """A loss that compares two outputs, and a further term that is written out."""
    compared = F.mse_loss(a, b)
    if kind == "variance":
        deviation = (a.var(dim=1) + 1e-4).sqrt()
        centred = a - a.mean(0)
        products = centred.T @ centred / (len(a) - 1)
        off = (products.pow(2).sum() - products.diagonal().pow(2).sum()) / a.shape[1]
        return 25.0 * compared + F.relu(1 - deviation).mean() / 2 + off
    if kind.startswith("diagonal_"):
        centred = a - a.mean(0)
        off = _without_diagonal(kind.removeprefix("diagonal_"), centred.T @ centred, target)
        return compared + off.pow(2).sum() / a.shape[1]
    if kind == "of_directions":
        one = F.normalize(a)
        return F.l1_loss(one, F.normalize(b)) - 0.1 * a.std(0).mean()
    if kind == "one_batch":
        return F.smooth_l1_loss(*torch.cat([a, b]).chunk(2))
    if kind == "reduced":
        return F.mse_loss(a, b, reduction="none").sum(1).mean()
    if kind == "target":
        return ((a - target) ** 2).mean() + 0.01 * compared
    if kind == "smooth":
        return ((a - target) ** 2).mean() + 0.01 * F.mse_loss(a[:, 1:], a[:, :-1])
    if kind == "smooth_alone":
        return F.mse_loss(a[:, 1:], a[:, :-1])
    if kind == "residual":
        return ((a - target) ** 2).mean() + F.mse_loss(a - target, b - target)
    if kind == "negative_target":
        return (a + target).abs().mean() + compared
    if kind == "weighed":
        return (a * target).mean() + compared
    if kind == "divided":
        return ((a + target) / 2).square().mean() + compared
    if kind == "labels":
        rows = torch.arange(len(a))
        return -a.log_softmax(1)[rows, target.argmax(1)].mean() + compared
    if kind == "distance":
        return torch.cdist(a, target).mean() + compared
    assert kind == "another_output"
    return compared + free.square().mean()


@pytest.mark.parametrize(
    ("kind", "is_told"),
    [
        ("variance", True),
        ("of_directions", True),
        ("one_batch", True),
        ("reduced", True),
        ("diagonal_taken_off", True),
        ("diagonal_filled", True),
        ("diagonal_picked", True),
        ("diagonal_masked", True),
        ("diagonal_multiplied", True),
        ("diagonal_triangle", True),
        ("diagonal_picked_by_target", False),
        ("diagonal_masked_by_target", False),
        ("diagonal_set_to_target", False),
        ("diagonal_multiplied_by_target", False),
        ("target", False),
        ("smooth", False),
        ("smooth_alone", False),
        ("residual", False),
        ("negative_target", False),
        ("weighed", False),
        ("divided", False),
        ("labels", False),
        ("distance", False),
        ("another_output", False),
    ],
)
def test_terms_that_are_written_out_may_know_a_target(run_dir, kind, is_told):
    torch.manual_seed(0)
    model = mlp()
    optimizer = sgd(model)
    with td.watch(model, run_dir=run_dir, supervise=False, rules=["representation_collapse"]):
        for step in range(3):
            x, _ = batch(step)
            a, b = model(x), model(x + 0.1)
            loss = _written_out(kind, a, b, torch.randn_like(a), model(x - 0.1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert bool(td.Run(run_dir).names("^loop/compared_to_itself$")) == is_told


def test_a_target_may_come_in_a_second_pass(run_dir):
    torch.manual_seed(0)
    model = mlp()
    optimizer = sgd(model)
    with td.watch(model, run_dir=run_dir, supervise=False, rules=["representation_collapse"]):
        for step in range(3):
            x, _ = batch(step)
            a, b = model(x), model(x + 0.1)
            optimizer.zero_grad()
            F.mse_loss(a, b).backward(retain_graph=True)
            (a - torch.randn_like(a)).square().mean().backward()
            optimizer.step()
    assert not td.Run(run_dir).names("^loop/compared_to_itself$")


def test_what_a_loss_saved_is_not_read(run_dir):
    """Reading runs the hooks of those who pack it: they run as often as they do unwatched."""
    unpacked = []

    def unpack(tensor):
        unpacked.append(tensor)
        return tensor

    def passes(model):
        torch.manual_seed(0)
        unpacked.clear()
        optimizer = sgd(model, 0.01)
        for _ in range(12):
            with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
                risk = model(torch.randn(16, 12))[:, 0]
                loss = -((risk - risk.logcumsumexp(0)) * torch.rand(16).round()).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return len(unpacked)

    alone = passes(mlp())
    model = mlp()
    td.watch(model, run_dir=run_dir, supervise=False)
    assert passes(model) == alone
