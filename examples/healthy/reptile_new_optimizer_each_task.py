"""Reptile on families of curves: a new inner optimizer for every task, and weights written by hand
without any gradient.

It looks odd because the inner Adam begins afresh for every task (with beta1 = 0, on purpose), the
inner loss jumps up with each new task, the outer step changes the parameters outside of any
optimizer, and the first loss of a task never falls far. What counts is the error after a few
steps on tasks never seen, and that falls.
"""

import copy
from types import SimpleNamespace

import torch
from data import arguments
from torch import nn

ODD = "the optimizer begins anew for every task, and weights are written by hand"
_, seed = arguments(__doc__)
args = SimpleNamespace(
    outer=500,
    inner=5,
    shots=10,
    inner_lr=0.01,
    outer_lr=0.5,
    width=48,
    eval_every=100,
    eval_tasks=30,
    eval_steps=10,
)


class Family:
    """A damped wave with an amplitude, a phase and a trend of its own."""

    def __init__(self, generator):
        u = torch.rand(4, generator=generator)
        self.amplitude, self.phase, self.damping, self.trend = (
            0.5 + 1.5 * u[0],
            3.1416 * u[1],
            0.25 * u[2],
            0.4 * (u[3] - 0.5),
        )
        self.generator = generator

    def sample(self, n):
        x = 8 * torch.rand(n, 1, generator=self.generator) - 4
        y = (
            self.amplitude * torch.sin(x + self.phase) * torch.exp(-self.damping * x.abs())
            + self.trend * x
        )
        return x / 2.3, y + 0.03 * torch.randn(n, 1, generator=self.generator)


def adapt(net, x, y, steps):
    """A few steps on one task, from scratch as to the optimizer."""
    optimizer = torch.optim.Adam(net.parameters(), lr=args.inner_lr, betas=(0.0, 0.999))
    losses = []
    for _ in range(steps):
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def evaluate(net):
    generator, before, after = torch.Generator().manual_seed(777), 0.0, 0.0
    for _ in range(args.eval_tasks):
        task, fast = Family(generator), copy.deepcopy(net)
        x, y = task.sample(args.shots)
        xq, yq = task.sample(100)
        with torch.no_grad():
            before += nn.functional.mse_loss(fast(xq), yq).item() / args.eval_tasks
        adapt(fast, x, y, args.eval_steps)
        with torch.no_grad():
            after += nn.functional.mse_loss(fast(xq), yq).item() / args.eval_tasks
    return before, after


net = nn.Sequential(
    nn.Linear(1, args.width),
    nn.Tanh(),
    nn.Linear(args.width, args.width),
    nn.Tanh(),
    nn.Linear(args.width, 1),
)
generator = torch.Generator().manual_seed(seed)
print(
    "outer    0: error on new tasks before {:.3f}, after adaptation {:.3f}".format(*evaluate(net))
)
for it in range(args.outer):
    start = [p.detach().clone() for p in net.parameters()]
    x, y = Family(generator).sample(2 * args.shots)
    losses = adapt(net, x, y, args.inner)
    rate = args.outer_lr * (1 - 0.9 * it / args.outer)
    with torch.no_grad():
        for p, old in zip(net.parameters(), start, strict=True):
            p.copy_(old + rate * (p - old))
    if (it + 1) % args.eval_every == 0:
        print(
            f"outer {it + 1:4d}: inner {losses[0]:.3f} -> {losses[-1]:.3f}, error on new tasks before {{:.3f}}, after adaptation {{:.3f}}".format(  # noqa: E501
                *evaluate(net)
            )
        )
