"""Next-day returns of two hundred stocks: nearly all is noise, and the loss hardly moves.

An R2 of some per cent is what such data hold and what pays; the loss falls from 1.00 to about 0.96
and stays. The linear path and the small network are enough: more capacity would only fit noise. The
rank correlation of the forecasts with the returns, day by day, says that it learned.
"""

import torch
from data import arguments
from torch import nn

ODD = "the loss stays within a few per cent of its start: the data hold no more signal"

_, seed = arguments(__doc__)
STOCKS, DAYS, SIGNALS = 200, 260, 12


def market():
    g = torch.Generator().manual_seed(460 + seed)
    x = torch.randn(DAYS, STOCKS, SIGNALS, generator=g)
    true = (
        0.10 * x[..., 0]
        - 0.09 * x[..., 1]
        + 0.10 * x[..., 2] * (x[..., 3] > 0)
        + 0.07 * x[..., 4].abs()
    )
    noise = torch.distributions.StudentT(5.0)
    torch.manual_seed(461 + seed)
    returns = true + noise.sample((DAYS, STOCKS)) * 0.77
    torch.manual_seed(seed)
    returns = returns - returns.mean(1, keepdim=True)  # against the market
    return x, returns / returns[:180].std()


class Alpha(nn.Module):
    def __init__(self, width: int = 24):
        super().__init__()
        self.line = nn.Linear(SIGNALS, 1)
        self.net = nn.Sequential(
            nn.Linear(SIGNALS, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, 1)
        )
        for last in (self.line, self.net[-1]):
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)

    def forward(self, x):
        return (self.line(x) + self.net(x)).squeeze(-1)


def rank_correlation(score, returns):
    a, b = (t.argsort(1).argsort(1).float() for t in (score, returns))
    a, b = a - a.mean(1, keepdim=True), b - b.mean(1, keepdim=True)
    return ((a * b).sum(1) / (a.norm(dim=1) * b.norm(dim=1))).mean().item()


x, returns = market()
fit, held = slice(0, 180), slice(185, None)  # by time, with a gap
features, target = x[fit].flatten(0, 1), returns[fit].flatten()
model = Alpha()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.02)
epochs = 5
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)

for epoch in range(epochs):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(target)).split(200):
        loss = nn.functional.mse_loss(model(features[rows]), target[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows) / len(target)
    schedule.step()
    model.eval()
    with torch.no_grad():
        score = model(x[held])
        val = nn.functional.mse_loss(score, returns[held]).item()
        base = returns[held].square().mean().item()
        rank = rank_correlation(score, returns[held])
    print(
        f"epoch {epoch + 1}: train {total:.4f}, validation {val:.4f} "
        f"(zero forecast {base:.4f}), rank correlation {rank:.4f}"
    )
print(f"validation R2 {1 - val / base:.4f}, rank correlation {rank:.4f}")
