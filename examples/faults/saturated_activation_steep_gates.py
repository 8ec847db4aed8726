"""Soft decision rules for loan scoring; the gates are so steep that they are all shut or open.

The rules are sigmoid gates on sums of the applicant's numbers. To make them look like yes and no,
their sums are multiplied by a steepness of 200. Nearly every gate is then flat at 0 or 1, no
gradient passes, and the rules stay as they were drawn.
The place is `gate` (or `split`, which gets no gradient).
The twin uses a steepness of 2.
"""

import torch
from data import arguments
from torch import nn

KIND = "saturated_activation"
ACCEPT = ("vanishing_gradient",)
PLACE = ("gate", "split", "rules", "rules.gate", "rules.split")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
STEEPNESS = 2.0 if healthy else 200.0


class SoftRules(nn.Module):
    def __init__(self, features, rules, steepness):
        super().__init__()
        self.split = nn.Linear(features, rules)
        self.gate = nn.Sigmoid()
        self.steepness = steepness

    def forward(self, x):
        return self.gate(self.steepness * self.split(x))


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.rules = SoftRules(12, 16, STEEPNESS)
        self.points = nn.Linear(16, 1)

    def forward(self, x):
        return self.points(self.rules(x)).squeeze(1)


def applicants(n):
    x = torch.randn(n, 12)
    safe = (x[:, 0] + x[:, 1] > 0.3).float() + (x[:, 2] - x[:, 3] > -0.5).float()
    safe = safe + 0.5 * x[:, 4] * (x[:, 5] > 0)
    return x, (safe + 0.3 * torch.randn(n) > 1.2).float()


x, y = applicants(2000)
x_val, y_val = applicants(1000)
model = Scorer()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
loss_fn = nn.BCEWithLogitsLoss()

for epoch in range(1, 16):
    total = 0.0
    for rows in torch.randperm(len(x)).split(50):
        optimizer.zero_grad()
        loss = loss_fn(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        total += loss.item() / 40
    if epoch % 3 == 0:
        with torch.no_grad():
            scores = model(x_val)
        right = ((scores > 0) == (y_val > 0.5)).float().mean().item()
        held = loss_fn(scores, y_val).item()
        print(f"epoch {epoch}: loss {total:.3f} | val loss {held:.3f} right {right:.3f}")
