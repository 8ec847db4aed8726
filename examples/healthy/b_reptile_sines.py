"""Reptile learns a start from which a net fits any new sine wave in eight steps.

The loss jumps up with every task, and the inner Adam, with no memory of its own, is made anew a few
hundred times; the weights are written over from outside after each task. All of that is the method.
"""

import copy

import torch
from data import arguments
from torch import nn

ODD = "the loss jumps at each task; optimizers are made anew, weights written over"

_, seed = arguments(__doc__)


def task(g):
    height = 0.5 + 1.5 * torch.rand(1, generator=g)
    phase = 3.1416 * torch.rand(1, generator=g)

    def draw(n):
        t = 10 * torch.rand(n, 1, generator=g) - 5
        return t / 3, height * (t + phase).sin()

    return draw


def adapt(net, draw, steps, lr=5e-3):
    optimizer = torch.optim.Adam(net.parameters(), lr=lr, betas=(0.0, 0.999))
    for _ in range(steps):
        t, s = draw(20)
        loss = (net(t) - s).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def build():
    return nn.Sequential(
        nn.Linear(1, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1)
    )


g, fixed = torch.Generator().manual_seed(seed), 10_000 + seed
meta = build()
for i in range(300):
    before = [p.detach().clone() for p in meta.parameters()]
    adapt(meta, task(g), 8)
    rate = 0.5 * (1 - i / 300)
    with torch.no_grad():
        for p, old in zip(meta.parameters(), before, strict=False):
            p.copy_(old.lerp(p, rate))
    if i % 50 == 49:
        held, errors = torch.Generator().manual_seed(fixed), []
        for _ in range(20):
            draw, net = task(held), copy.deepcopy(meta)
            adapt(net, draw, 8)
            with torch.no_grad():
                t, s = draw(100)
                errors.append((net(t) - s).pow(2).mean().item())
        print(f"task {i + 1}: error on new tasks after 8 steps {sum(errors) / 20:.4f}")
