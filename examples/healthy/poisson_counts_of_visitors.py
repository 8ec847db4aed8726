"""Counts of visitors by a Poisson network: integers from 0 on, an output without bounds.

The target is a whole number and is not scaled, the output is the logarithm of the rate and is often
negative. PoissonNLLLoss is made for that; the loss has no floor at zero.
"""

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "integral targets that are not normalised, a regression loss that falls below zero"

_, seed = arguments(__doc__)


def visitors(n):
    x = torch.randn(n, 5)
    rate = torch.exp(1.6 + 0.5 * x[:, 0] - 0.4 * x[:, 1] + 0.3 * torch.sin(2 * x[:, 2]))
    return x, torch.poisson(rate), rate


x, y, _ = visitors(3000)
x_val, y_val, rate_val = visitors(800)
x, x_val = standardise(x, x_val)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)

model = nn.Sequential(nn.Linear(5, 32), nn.GELU(), nn.Linear(32, 1), nn.Flatten(0))
criterion = nn.PoissonNLLLoss(log_input=True)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
for epoch in range(14):
    model.train()
    total = 0.0
    for xb, yb in loader:
        loss = criterion(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    fit = torch.corrcoef(torch.stack([out, rate_val.log()]))[0, 1]
    print(
        f"epoch {epoch}: train {total / len(loader):.3f} val {criterion(out, y_val):.3f} "
        f"correlation with the true log rate {fit:.3f}"
    )
