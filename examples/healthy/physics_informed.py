"""A network learns the solution of u' = -u, u(0) = 1 from the equation alone."""

import torch
from data import arguments
from torch import nn

ODD = "gradients of gradients, inputs that require gradients, no data, a hand-made loss"

_, seed = arguments(__doc__)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(300):
    t = (3 * torch.rand(64, 1)).requires_grad_()
    u = model(t)
    (du,) = torch.autograd.grad(u.sum(), t, create_graph=True)
    start = model(torch.zeros(1, 1))
    loss = (du + u).square().mean() + (start - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
error = (model(torch.ones(1, 1)) - torch.ones(1, 1).neg().exp()).abs().item()
print(f"loss {loss.item():.5f}, error at 1 {error:.4f}")
