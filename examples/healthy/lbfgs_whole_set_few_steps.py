"""A logistic regression with a ridge by LBFGS on the whole set: each step calls the closure up
to twenty times, clears the gradients there, and the last steps change nothing: it has converged.
"""

import torch
from data import arguments, cancer
from torch import nn
from torch.nn import functional as F

ODD = "rate 1, the same full batch in each call, many passes for a step, no change at the end"

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)
model = nn.Linear(30, 2)
nn.init.zeros_(model.weight)
nn.init.zeros_(model.bias)
optimizer = torch.optim.LBFGS(
    model.parameters(), lr=1.0, max_iter=4, history_size=10, line_search_fn="strong_wolfe"
)
calls = 0


def closure():
    global calls
    calls += 1
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y) + 5e-3 * model.weight.pow(2).sum()
    loss.backward()
    return loss


for step in range(1, 61):
    loss = optimizer.step(closure)
    if step % 10 == 0:
        with torch.no_grad():
            out = model(x_val)
        accuracy = (out.argmax(1) == y_val).float().mean().item()
        print(f"step {step} ({calls} calls): loss {loss.item():.6f}, accuracy {accuracy:.3f}")
print(f"loss {loss.item():.6f} | validation accuracy {accuracy:.3f}")
