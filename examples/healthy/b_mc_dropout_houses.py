"""House prices with a measure of doubt: dropout stays on when predicting, on purpose, and the mean
of thirty passes is the answer.

Two validation passes over the same rows differ and a single pass is worse than the mean; the net
has no batch norm, and the spread of the passes is what is wanted.
"""

import torch
from data import arguments, batches, houses
from torch import nn
from torch.nn import functional as F

ODD = "dropout is on in validation, on purpose"

_, seed = arguments(__doc__)


class Dropping(nn.Module):
    def __init__(self, columns, width=96, p=0.1):
        super().__init__()
        self.a, self.b, self.out = (
            nn.Linear(columns, width),
            nn.Linear(width, width),
            nn.Linear(width, 1),
        )
        self.p = p

    def forward(self, x):
        h = F.dropout(F.relu(self.a(x)), self.p)
        h = F.dropout(F.relu(self.b(h)), self.p)
        return self.out(h).squeeze(1)

    @torch.no_grad()
    def predict(self, x, passes=30):
        drawn = torch.stack([self(x) for _ in range(passes)])
        return drawn.mean(0), drawn.std(0)


x, y, x_val, y_val = houses(seed)
model = Dropping(x.shape[1])
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
for step, (a, b) in enumerate(batches(x, y, size=64, steps=500, seed=seed)):
    loss = F.mse_loss(model(a), b)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        mean, spread = model.predict(x_val)
        print(
            f"step {step + 1}: loss {loss.item():.4f}"
            f" val {F.mse_loss(mean, y_val).item():.4f} doubt {spread.mean().item():.3f}"
        )
