"""Remaining useful life of turbines from sensor windows; a weight decay for AdamW is given to
Adam.

0.3 is what ViT recipes give to AdamW, where it is multiplied with the rate. Adam adds it to the
gradient, so that 0.3 * w outweighs the gradient of the data and the weights shrink to almost
nothing. The place is the optimizer.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "over_regularized"
ACCEPT = ("bad_optimizer_settings",)
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

hparams = {
    "engines": 90,
    "window": 24,
    "channels": 32,
    "lr": 1.5e-3,
    "weight_decay": 0.3,
    "batch_size": 128,
    "epochs": 12,
    "rul_cap": 100,
}


def simulate_engine(rng):
    """Eight sensors of an engine that wears off, with changing loads, until it fails."""
    life = int(rng.integers(110, 200))
    t = np.arange(life)
    wear = np.exp((t - life) / rng.uniform(22, 40)) + 0.15 * t / life
    load = np.repeat(rng.choice([-1.0, 0.0, 1.0], life // 8 + 1), 8)[:life]
    gains = np.array([1.4, -1.0, 0.9, 0.5, -0.6, 0.0, 1.1, -0.3])
    loads = np.array([0.8, 0.7, -0.9, 0.3, 0.5, 1.0, 0.0, -0.6])
    sensors = (
        wear[:, None] * gains
        + load[:, None] * loads
        + 0.25 * rng.normal(size=(life, 8))
        + 0.15 * rng.normal(size=8)
    )
    rul = np.minimum(life - 1 - t, hparams["rul_cap"])
    return sensors, rul


def windows(engines, rng):
    xs, ys = [], []
    for _ in range(engines):
        s, rul = simulate_engine(rng)
        for end in range(hparams["window"], len(s), 3):
            xs.append(s[end - hparams["window"] : end].T)
            ys.append(rul[end - 1])
    return torch.tensor(np.array(xs), dtype=torch.float32), torch.tensor(
        np.array(ys), dtype=torch.float32
    )


class TCN(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.proj = nn.Conv1d(8, c, 1)
        self.convs = nn.ModuleList([nn.Conv1d(c, c, 3, padding=d, dilation=d) for d in (1, 2, 4)])
        self.regress = nn.Sequential(nn.Linear(2 * c, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        h = self.proj(x)
        for conv in self.convs:
            h = h + torch.relu(conv(h))
        return self.regress(torch.cat([h.mean(-1), h[..., -1]], 1)).squeeze(1)


rng = np.random.default_rng(seed)
x, y = windows(hparams["engines"], rng)
xv, yv = windows(30, rng)  # other engines
mu, sd = x.mean((0, 2), keepdim=True), x.std((0, 2), keepdim=True)
x, xv = (x - mu) / sd, (xv - mu) / sd
scale, offset = y.std(), y.mean()
loader = DataLoader(
    TensorDataset(x, (y - offset) / scale), hparams["batch_size"], shuffle=True, drop_last=True
)

model = TCN(hparams["channels"])
optim_class = torch.optim.AdamW if healthy else torch.optim.Adam
optimizer = optim_class(model.parameters(), lr=hparams["lr"], weight_decay=hparams["weight_decay"])
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, hparams["lr"], total_steps=hparams["epochs"] * len(loader)
)
best = float("inf")
for epoch in range(hparams["epochs"]):
    model.train()
    losses = []
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.huber_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    model.eval()
    with torch.inference_mode():
        pred = model(xv) * scale + offset
    rmse = (pred - yv).pow(2).mean().sqrt().item()
    best = min(best, rmse)
    print(
        f"[{epoch:02d}] train {np.mean(losses):.4f} | val RMSE {rmse:.2f} cycles (constant: {(yv - offset).pow(2).mean().sqrt():.2f})"  # noqa: E501
    )
print(f"best {best:.2f}")
