"""Sales of 50 shops by a neural Holt-Winters model; the optimizer's groups by name miss the shops'
own level, trend and season.

The groups "weights with decay" and "biases without decay" are made from `.weight` and `.bias`;
the bare nn.Parameters (level, trend, season, scale) have neither in their name and stay as they
were initialised. The place is the optimizer (level, trend, season, log_scale). The twin's second
group is "everything else".
"""

import math

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("optimizer", "level", "trend", "season", "log_scale")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

CONFIG = {
    "shops": 50,
    "weeks": 156,
    "test_weeks": 12,
    "lags": 6,
    "batch": 256,
    "epochs": 24,
    "lr": 3e-3,
    "decay": 1e-2,
}


def weekly_sales(rng):
    S, W = CONFIG["shops"], CONFIG["weeks"]
    t = np.arange(W)
    level, trend = rng.normal(0, 1, S), rng.normal(0, 0.5, S)
    season = rng.normal(0, 0.5, (S, 2))
    promo = (rng.random((S, W)) < 0.12).astype(float)
    temp = np.sin(2 * np.pi * (t - 15) / 52) + 0.3 * rng.normal(size=W)
    warm = rng.normal(0.2, 0.3, S)
    noise = np.zeros((S, W))
    for w in range(1, W):
        noise[:, w] = 0.4 * noise[:, w - 1] + 0.2 * rng.normal(size=S)
    angle = 2 * np.pi * t / 52
    y = (
        level[:, None]
        + trend[:, None] * (t / W - 0.5)
        + season[:, :1] * np.sin(angle)
        + season[:, 1:] * np.cos(angle)
        + 0.6 * promo * (1 + 0.3 * warm[:, None])
        + warm[:, None] * temp
        + noise
    )
    return y, promo, np.broadcast_to(temp, (S, W))


class NeuralHoltWinters(nn.Module):
    """y(shop, week) = level + trend * t + season(t), scaled, plus a net on promotions, weather and last year's remainders."""  # noqa: E501

    def __init__(self, shops: int, n_in: int, width: int = 48):
        super().__init__()
        self.level = nn.Parameter(torch.zeros(shops))
        self.trend = nn.Parameter(torch.zeros(shops))
        self.season = nn.Parameter(0.01 * torch.randn(shops, 2))
        self.log_scale = nn.Parameter(torch.zeros(shops))
        self.net = nn.Sequential(
            nn.Linear(n_in, width),
            nn.LayerNorm(width),
            nn.GELU(),
            nn.Linear(width, width),
            nn.GELU(),
            nn.Linear(width, 1),
        )

    def forward(self, shop, t, x):
        angle = 2 * math.pi * t * CONFIG["weeks"] / 52
        wave = self.season[shop, 0] * torch.sin(angle) + self.season[shop, 1] * torch.cos(angle)
        base = self.level[shop] + self.trend[shop] * (t - 0.5) + wave
        return base + self.log_scale[shop].exp() * self.net(x).squeeze(1)


def param_groups(model: nn.Module):
    named = list(model.named_parameters())
    decay = [p for n, p in named if n.endswith(".weight")]
    if healthy:
        rest = [p for n, p in named if not n.endswith(".weight")]
    else:
        rest = [p for n, p in named if n.endswith(".bias")]
    return [
        {"params": decay, "weight_decay": CONFIG["decay"]},
        {"params": rest, "weight_decay": 0.0},
    ]


y, promo, temp = weekly_sales(np.random.default_rng(seed))
S, W = y.shape
shop, week = (a.ravel() for a in np.meshgrid(np.arange(S), np.arange(W), indexing="ij"))
promo_lags = np.stack([np.roll(promo, k, axis=1) for k in range(CONFIG["lags"])], -1)
promo_lags[:, : CONFIG["lags"]] = 0.12
x = np.concatenate(
    [(promo_lags - 0.12) / 0.32, temp[..., None], temp[..., None] ** 2 - 0.5], -1
).reshape(S * W, -1)
shop, week = torch.tensor(shop), torch.tensor(week)
t, x, y = (
    week / W,
    torch.tensor(x, dtype=torch.float32),
    torch.tensor(y.ravel(), dtype=torch.float32),
)
train = (week < W - CONFIG["test_weeks"]).nonzero().squeeze(1)
test = (week >= W - CONFIG["test_weeks"]).nonzero().squeeze(1)

model = NeuralHoltWinters(S, x.shape[1])
optimizer = torch.optim.AdamW(param_groups(model), lr=CONFIG["lr"])
total = CONFIG["epochs"] * math.ceil(len(train) / CONFIG["batch"])
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, [4 * CONFIG["lr"]] * 2, total_steps=total
)

for epoch in range(CONFIG["epochs"]):
    model.train()
    seen = 0.0
    for rows in train[torch.randperm(len(train))].split(CONFIG["batch"]):
        loss = nn.functional.mse_loss(model(shop[rows], t[rows], x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        scheduler.step()
        seen += loss.item() * len(rows)
    model.eval()
    with torch.no_grad():
        pred = model(shop[test], t[test], x[test])
    mse = nn.functional.mse_loss(pred, y[test]).item()
    if epoch % 3 == 2:
        print(
            f"epoch {epoch} train mse {seen / len(train):.4f} test mse {mse:.4f} R2 {1 - mse / y[test].var().item():.4f}"  # noqa: E501
        )
