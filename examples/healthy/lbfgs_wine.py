"""Full batches and LBFGS with a line search: many forward passes in each step."""

import torch
from data import arguments, wine
from torch import nn

ODD = "the same batch at each step, several backward passes for a step, few steps"

_, seed = arguments(__doc__)
x, y, x_val, y_val = wine(seed)
model = nn.Sequential(nn.Linear(13, 12), nn.Tanh(), nn.Linear(12, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=8, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    weights = sum(p.square().sum() for p in model.parameters())
    loss = criterion(model(x), y) + 1e-3 * weights
    loss.backward()
    return loss


for step in range(30):
    loss = optimizer.step(closure)
print(f"loss {loss.item():.4f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
