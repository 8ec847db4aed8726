"""A small regularised network on the diabetes data, fitted by L-BFGS over the full batch.

step() calls the closure several times, each with its own backward pass; a rate of 1 with a strong
Wolfe line search is how the method is meant to be used.
"""

import torch
from data import arguments, diabetes
from torch import nn

ODD = "a rate of 1, the same batch each time, several backward passes in one step, few steps"

_, seed = arguments(__doc__)
x, y, x_val, y_val = diabetes(seed)
y, y_val = y.unsqueeze(1), y_val.unsqueeze(1)

model = nn.Sequential(nn.Linear(10, 8), nn.Tanh(), nn.Linear(8, 1))
mse = nn.MSELoss()
optimizer = torch.optim.LBFGS(
    model.parameters(), lr=1.0, max_iter=5, history_size=10, line_search_fn="strong_wolfe"
)


def penalised():
    penalty = sum(p.square().sum() for name, p in model.named_parameters() if "weight" in name)
    return mse(model(x), y) + 0.03 * penalty


def closure():
    optimizer.zero_grad()
    loss = penalised()
    loss.backward()
    return loss


for step in range(60):
    model.train()
    loss = optimizer.step(closure)
    if step % 6 == 5:
        model.eval()
        with torch.no_grad():
            train, val = mse(model(x), y).item(), mse(model(x_val), y_val).item()
        print(
            f"step {step + 1}: objective {loss.item():.4f}  train {train:.3f}  val {val:.3f}"
            f"  R2 {1 - val / y_val.var().item():.3f}"
        )
