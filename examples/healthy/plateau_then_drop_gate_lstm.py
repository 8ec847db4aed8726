"""An LSTM adds up the marked numbers of a sequence; the loss stands still for epochs, then drops.

First the net learns the mean answer, which the bias alone can give; the way to use the marks is
found later and then goes fast. Nothing is wrong with the gradient.
"""

import torch
from data import arguments
from torch import nn

ODD = "the loss stays at the variance of the target and then drops at once: a plateau of the task"

_, seed = arguments(__doc__)

LENGTH = 30


def marked_numbers(n):
    """Numbers and marks (two of them); the target is the sum of the two marked numbers."""
    numbers = torch.rand(n, LENGTH) * 2 - 1
    marks = torch.zeros(n, LENGTH)
    first = torch.randint(0, LENGTH // 2, (n, 1))
    second = torch.randint(LENGTH // 2, LENGTH, (n, 1))
    marks.scatter_(1, first, 1.0)
    marks.scatter_(1, second, 1.0)
    return torch.stack([numbers, marks], dim=2), (numbers * marks).sum(1)


class Adder(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.lstm = nn.LSTM(2, hidden, batch_first=True)
        self.linear = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.linear(out[:, -1]).squeeze(1)


x, y = marked_numbers(2400)
x_val, y_val = marked_numbers(600)
model = Adder()
loss_fn = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
print(f"variance of the target: {y.var().item():.4f}")

for epoch in range(1, 26):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(60):
        optimizer.zero_grad()
        loss = loss_fn(model(x[rows]), y[rows])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() * len(rows)
    model.eval()
    with torch.no_grad():
        val_loss = loss_fn(model(x_val), y_val).item()
    print(f"epoch {epoch:2d}, train MSE {total / len(x):.5f}, val MSE {val_loss:.5f}")
