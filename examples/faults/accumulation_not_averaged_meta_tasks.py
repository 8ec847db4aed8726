"""First-order MAML on sine-like tasks: each task of the meta-batch calls backward(), and nobody
divides by their number.

Sixteen tasks add up their gradients before one SGD step, while the outer rate was found for their
mean. The place is the loop (the outer update) or the loss.
"""

import argparse
import math

import torch
from data import arguments
from torch import nn
from torch.func import functional_call

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "loss", "optimizer")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

cfg = argparse.Namespace(
    meta_batch=16,
    shots=10,
    queries=15,
    inner_lr=0.02,
    inner_steps=3,
    outer_lr=0.015,
    momentum=0.9,
    iterations=260,
    log_every=65,
)


class Regressor(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.l1 = nn.Linear(1, hidden)
        self.l2 = nn.Linear(hidden, hidden)
        self.l3 = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.l3(torch.relu(self.l2(torch.relu(self.l1(x)))))


def sample_task(g):
    a = 0.5 + 1.5 * torch.rand(1, generator=g)
    phase = math.pi * torch.rand(1, generator=g)
    x = 6 * torch.rand(cfg.shots + cfg.queries, 1, generator=g) - 3
    y = a * torch.sin(x + phase) + 0.05 * torch.randn(x.shape, generator=g)
    return x[: cfg.shots], y[: cfg.shots], x[cfg.shots :], y[cfg.shots :]


def adapt(net, xs, ys):
    params = dict(net.named_parameters())
    for _ in range(cfg.inner_steps):
        loss = (functional_call(net, params, (xs,)) - ys).square().mean()
        grads = torch.autograd.grad(loss, list(params.values()), create_graph=False)
        params = {k: p - cfg.inner_lr * g for (k, p), g in zip(params.items(), grads, strict=False)}
    return params


def query_loss(net, task):
    xs, ys, xq, yq = task
    return (functional_call(net, adapt(net, xs, ys), (xq,)) - yq).square().mean()


def evaluate(net, tasks):
    return sum(query_loss(net, t).item() for t in tasks) / len(tasks)


g = torch.Generator().manual_seed(seed)
val_tasks = [sample_task(g) for _ in range(60)]
net = Regressor()
outer = torch.optim.SGD(net.parameters(), lr=cfg.outer_lr, momentum=cfg.momentum)
decay = torch.optim.lr_scheduler.CosineAnnealingLR(outer, cfg.iterations)

for it in range(1, cfg.iterations + 1):
    outer.zero_grad()
    total = 0.0
    for _ in range(cfg.meta_batch):
        loss = query_loss(net, sample_task(g))
        (loss / cfg.meta_batch if healthy else loss).backward()
        total += loss.item()
    nn.utils.clip_grad_norm_(net.parameters(), 10.0)
    outer.step()
    decay.step()
    if it % cfg.log_every == 0:
        print(
            f"iteration {it} query loss {total / cfg.meta_batch:.4f} val query loss {evaluate(net, val_tasks):.4f}"  # noqa: E501
        )
