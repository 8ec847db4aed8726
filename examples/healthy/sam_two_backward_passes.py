"""Digits with sharpness-aware minimisation: climb, a second backward pass, back again, step."""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

ODD = "two backward passes per step, and the weights are moved by hand in between"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
rho = 0.05
for xb, yb in batches(x, y, size=64, steps=200, seed=seed):
    loss = F.cross_entropy(model(xb), yb)
    loss.backward()
    with torch.no_grad():
        norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm() + 1e-12
        moves = [p.grad * (rho / norm) for p in model.parameters()]
        for p, move in zip(model.parameters(), moves, strict=False):
            p.add_(move)
    optimizer.zero_grad()
    F.cross_entropy(model(xb), yb).backward()
    with torch.no_grad():
        for p, move in zip(model.parameters(), moves, strict=False):
            p.sub_(move)
    optimizer.step()
    optimizer.zero_grad()
model.eval()
with torch.no_grad():
    print(f"loss {loss.item():.3f} accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
