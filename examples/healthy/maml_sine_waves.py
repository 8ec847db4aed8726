"""Model-agnostic meta-learning (second order) on sine waves of random phase and height."""

import torch
from data import arguments
from torch import nn
from torch.func import functional_call

ODD = "each step has other tasks, the loss jumps by factors; weights used are not the model's own"

_, seed = arguments(__doc__)
INNER_RATE, TASKS, SHOTS = 0.05, 6, 10
learner = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))
meta = torch.optim.Adam(learner.parameters(), lr=3e-3)


def task():
    height, phase = 0.3 + 1.2 * torch.rand(1), 3.14 * torch.rand(1)
    x = 6 * torch.rand(2 * SHOTS, 1) - 3
    y = height * torch.sin(x + phase)
    return (x[:SHOTS] / 2, y[:SHOTS]), (x[SHOTS:] / 2, y[SHOTS:])


def error(weights, x, y):
    return (functional_call(learner, weights, (x,)) - y).square().mean()


def adapt(support, steps, graph):
    weights = dict(learner.named_parameters())
    for _ in range(steps):
        grads = torch.autograd.grad(
            error(weights, *support), list(weights.values()), create_graph=graph
        )
        weights = {n: w - INNER_RATE * g for (n, w), g in zip(weights.items(), grads, strict=False)}
    return weights


for step in range(170):
    loss = 0.0
    for _ in range(TASKS):
        support, query = task()
        loss = loss + error(adapt(support, 2, True), *query) / TASKS
    meta.zero_grad()
    loss.backward()
    meta.step()
before = after = 0.0
for _ in range(50):
    support, query = task()
    before += error(dict(learner.named_parameters()), *query).item() / 50
    after += error(adapt(support, 4, False), *query).item() / 50
print(f"loss {loss.item():.3f}, new tasks: before {before:.3f}, after adapting {after:.3f}")
