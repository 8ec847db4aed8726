"""Regression on the diabetes table by L-BFGS, the whole set in each step.

A small model and a smooth problem, so a quasi-Newton method with a line search is the right tool:
ten steps are all it takes.
"""

import torch
from data import arguments, diabetes
from torch import nn

ODD = "the same batch in each step, a rate of 1, several backward passes per step, few steps"

_, seed = arguments(__doc__)

x, y, x_val, y_val = diabetes(seed)
y, y_val = y[:, None], y_val[:, None]
model = nn.Sequential(nn.Linear(10, 6), nn.Tanh(), nn.Linear(6, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=1.0, max_iter=8, line_search_fn="strong_wolfe")


def penalised():
    decay = sum(p.pow(2).sum() for p in model.parameters() if p.dim() > 1)
    return nn.functional.mse_loss(model(x), y) + 0.02 * decay


def closure():
    optimizer.zero_grad()
    loss = penalised()
    loss.backward()
    return loss


for step in range(10):
    model.train()
    loss = optimizer.step(closure)
    model.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x_val), y_val)
    print(f"step {step}: train {loss.item():.4f} val {val:.4f} R2 {1 - val / y_val.var():.3f}")
