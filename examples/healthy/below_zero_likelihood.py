"""Distances from a lidar under rain with their uncertainties, by the Gaussian likelihood; the
forecast is a mean over dropout masks.

Looks odd: the loss is below zero and goes on falling, and dropout is on while validating. Both
are meant: the log density of small deviations is positive, and the masks are sampled on purpose
(Monte-Carlo dropout; the rest stays in evaluation mode). The held-out likelihood is as good as
that of the training, and the error is near the noise.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "Distances from a lidar under rain with their uncertainties, by the Gaussian likelihood; "
    "the forecast is a mean over dropout masks"
)

_, seed = arguments(__doc__)

config = {"n": 5000, "width": 64, "p": 0.01, "lr": 2e-3, "epochs": 20, "samples": 12}


def lidar(n, rng):
    """Four echoes' features; the deviation grows with the rain and with the distance. Unit: 10 m."""  # noqa: E501
    dist, rain, refl = rng.uniform(0.2, 5, n), rng.beta(1, 3, n), rng.uniform(0.1, 1, n)
    sigma = 0.02 + 0.12 * rain * dist / 5 + 0.03 * (1 - refl)
    power = refl * np.exp(-0.5 * rain * dist) / (0.5 + dist) ** 2
    measured = (
        dist * (1 + 0.05 * np.sin(2 * dist))
        + 0.1 * rain
        + 0.08 * np.log(power)
        + sigma * rng.normal(size=n)
    )
    return np.stack([measured, np.log(power), rain, refl + 0.05 * rng.normal(size=n)], 1), dist


class MeanVar(nn.Module):
    def __init__(self, width, p):
        super().__init__()
        self.inner = nn.Sequential(
            nn.Linear(4, width),
            nn.LayerNorm(width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Dropout(p),
        )
        self.mean, self.logvar = nn.Linear(width, 1), nn.Linear(width, 1)

    def forward(self, x):
        h = self.inner(x)
        return self.mean(h).squeeze(1), self.logvar(h).squeeze(1).clamp(-9, 3)


def nll(mean, logvar, y):
    return 0.5 * (logvar + (y - mean) ** 2 * torch.exp(-logvar)).mean()


@torch.no_grad()
def predict(model, x):
    model.eval()
    for m in model.modules():
        if isinstance(m, nn.Dropout):
            m.train()
    means, logvars = zip(*[model(x) for _ in range(config["samples"])], strict=False)
    means, var = torch.stack(means), torch.stack(logvars).exp()
    return means.mean(0), (var.mean(0) + means.var(0)).log()


def main():
    rng = np.random.default_rng(seed)
    x, y = (torch.tensor(a, dtype=torch.float32) for a in lidar(config["n"] + 1500, rng))
    n = config["n"]
    x = (x - x[:n].mean(0)) / x[:n].std(0)
    loader = DataLoader(TensorDataset(x[:n], y[:n]), 100, shuffle=True)
    model = MeanVar(config["width"], config["p"])
    model.mean.bias.data.fill_(y[:n].mean().item())
    opt = torch.optim.AdamW(model.parameters(), lr=config["lr"], weight_decay=1e-3)
    sched = torch.optim.lr_scheduler.OneCycleLR(
        opt, config["lr"], total_steps=config["epochs"] * len(loader)
    )
    for epoch in range(config["epochs"]):
        model.train()
        total = 0.0
        for xb, yb in loader:
            loss = nll(*model(xb), yb)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            opt.step()
            sched.step()
            total += loss.item() / len(loader)
        mean, logvar = predict(model, x[n:])
        inside = ((mean - y[n:]).abs() < torch.exp(0.5 * logvar)).float().mean().item()
        print(
            f"epoch {epoch}: train {total:+.3f} val {nll(mean, logvar, y[n:]).item():+.3f} "
            f"RMSE {(mean - y[n:]).square().mean().sqrt().item():.4f} within 1 sigma {inside:.3f}"
        )


main()
