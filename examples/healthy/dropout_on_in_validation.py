"""Blood glucose in half an hour with error bars: dropout stays on in validation, for that is the
method.

Monte-Carlo dropout: forty passes with dropout on give a mean and a spread per patient. The norm
layers are in evaluation mode; only the dropout layers are switched back on, under `no_grad`.
Reported are the error of the mean, the error in plain evaluation mode beside it, and whether the
spread tells large errors from small ones.
"""

import torch
from data import arguments, standardise
from torch import nn

ODD = "the dropout layers are in training mode in validation: Monte-Carlo dropout, on purpose"

_, seed = arguments(__doc__)


def patients(count, g, length=24):
    """Two hours every five minutes, carbohydrates and insulin; the change in thirty minutes."""
    trend = torch.randn(count, 1, generator=g)
    bend = 0.5 * torch.randn(count, 1, generator=g)
    t = torch.linspace(-2, 0, length)
    curve = trend * t + bend * t**2 + 0.1 * torch.randn(count, length, generator=g)
    meal, insulin = torch.rand(count, 2, generator=g).unbind(1)
    change = (
        0.5 * trend[:, 0] + 0.25 * bend[:, 0] + 1.5 * meal * (1 - insulin) - 0.8 * insulin.pow(2)
    )
    noise = 0.05 + 0.3 * meal
    change = change + noise * torch.randn(count, generator=g)
    return torch.cat([curve, meal[:, None], insulin[:, None]], 1), change[:, None]


class Glucose(nn.Module):
    def __init__(self, inputs, width=64, rate=0.1):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Dropout(rate),
            nn.Linear(width, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Dropout(rate),
        )
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.layers(x))

    @torch.no_grad()
    def sample(self, x, passes=40):
        """Mean and spread over passes with dropout; everything else as in evaluation."""
        self.eval()
        for layer in self.modules():
            if isinstance(layer, nn.Dropout):
                layer.train()
        drawn = torch.stack([self(x) for _ in range(passes)])
        self.eval()
        return drawn.mean(0), drawn.std(0)


g = torch.Generator().manual_seed(seed)
(x, y), (x_val, y_val) = patients(5000, g), patients(1000, g)
x, x_val = standardise(x, x_val)
y, y_val = standardise(y, y_val)
model = Glucose(x.shape[1])
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
for epoch in range(10):
    model.train()
    total = 0.0
    batches = torch.randperm(len(x), generator=g).split(100)
    for rows in batches:
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(batches)
    schedule.step()
    mean, spread = model.sample(x_val)
    with torch.no_grad():
        plain = nn.functional.mse_loss(model(x_val), y_val)
    off = (mean - y_val).abs()
    sure = off[spread < spread.median()].mean()
    print(
        f"epoch {epoch} loss {total:.4f} val loss {plain:.4f} validation R2 of the mean "
        f"{1 - (mean - y_val).pow(2).mean() / y_val.var():.3f} error where sure {sure:.3f}, "
        f"where not {off[spread >= spread.median()].mean():.3f}"
    )
