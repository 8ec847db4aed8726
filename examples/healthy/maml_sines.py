"""Meta-learning (MAML): gradients through one step of another training, on sine waves."""

import math

import torch
from data import arguments
from torch import nn
from torch.func import functional_call

ODD = "gradients of gradients, weights that are not those of the model, a very noisy loss"

_, seed = arguments(__doc__)
model = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)


def wave():
    height, phase = 0.5 + 2 * torch.rand(1), math.pi * torch.rand(1)
    return lambda x: height * torch.sin(x + phase)


losses = []
for step in range(200):
    meta_loss = 0.0
    for _ in range(4):
        f = wave()
        x, x_query = 6 * torch.rand(10, 1) - 3, 6 * torch.rand(10, 1) - 3
        weights = dict(model.named_parameters())
        inner = nn.functional.mse_loss(functional_call(model, weights, x), f(x))
        grads = torch.autograd.grad(inner, list(weights.values()), create_graph=True)
        adapted = {k: w - 0.05 * g for (k, w), g in zip(weights.items(), grads, strict=True)}
        out = functional_call(model, adapted, x_query)
        meta_loss = meta_loss + nn.functional.mse_loss(out, f(x_query)) / 4
    optimizer.zero_grad()
    meta_loss.backward()
    optimizer.step()
    losses.append(meta_loss.item())
print(f"first {sum(losses[:20]) / 20:.3f}, last {sum(losses[-20:]) / 20:.3f}")
