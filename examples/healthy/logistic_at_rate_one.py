"""A logistic regression on the tumours by gradient descent at a rate of 1, over the full batch.

The problem is convex, the features are standardised and a penalty bounds the weights: the largest
curvature is below two, and a rate of 1 is right.
"""

import torch
from data import arguments, cancer
from torch import nn

ODD = "a rate of 1 from a start at zero, no hidden layer, and the same batch in each step"

_, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)
x, x_val = x / 30**0.5 * 2, x_val / 30**0.5 * 2
y, y_val = y.float(), y_val.float()

model = nn.Linear(30, 1)
nn.init.zeros_(model.weight)
nn.init.zeros_(model.bias)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0, weight_decay=2e-3)
bce = nn.BCEWithLogitsLoss()

for step in range(1, 401):
    optimizer.zero_grad()
    loss = bce(model(x).squeeze(1), y)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        with torch.no_grad():
            out = model(x_val).squeeze(1)
            val, accuracy = (
                bce(out, y_val).item(),
                ((out > 0) == (y_val > 0.5)).float().mean().item(),
            )
        print(f"step {step}: train {loss.item():.4f}  val {val:.4f}  accuracy {accuracy:.3f}")

with torch.no_grad():
    strongest = model.weight[0].abs().topk(5).indices.tolist()
print(f"the five measurements with the largest weights: {strongest}")
