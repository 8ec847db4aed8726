"""Progress of diabetes by a small network, fitted with L-BFGS on all patients at once."""

import torch
from data import arguments, diabetes
from torch import nn

ODD = "One batch, the same in every step, and lr=1: that is how L-BFGS is used."

_, seed = arguments(__doc__)
x, y, x_val, y_val = diabetes(seed)
model = nn.Sequential(nn.Linear(10, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=1.0, max_iter=1, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    penalty = sum((p**2).sum() for p in model.parameters() if p.dim() > 1)
    loss = nn.functional.mse_loss(model(x).squeeze(1), y) + 0.02 * penalty
    loss.backward()
    return loss


for step in range(1, 81):
    loss = optimizer.step(closure)
    if step % 20 == 0:
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x_val).squeeze(1), y_val).item()
        print(f"step {step}: {loss.item():.4f}, validation {val:.4f}")
