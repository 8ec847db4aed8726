"""A mixture density network gives the angle of an elbow; its loss falls below zero.

A negative loss is no bug here. It is the negative logarithm of a density, and a density may be
larger than 1: where the answers are sharp, the loss is negative, and lower is still better.
"""

import math

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "the loss is negative: it is the negative logarithm of a density, "
    "which exceeds 1 where it is sharp"
)
_, seed = arguments(__doc__)


def arm(n):
    """Reach of a two-piece arm and the angle of its elbow, which may bend to either side."""
    elbow = torch.empty(n).uniform_(0.4, 2.4)
    side = torch.where(torch.rand(n) < 0.6, 1.0, -1.0)
    upper, lower = 1.0, 0.8
    reach = (upper**2 + lower**2 + 2 * upper * lower * elbow.cos()).sqrt()
    load = torch.rand(n)
    angle = side * (elbow + 0.15 * load) + 0.015 * torch.randn(n)
    return torch.stack([reach + 0.002 * torch.randn(n), load], 1), angle / 2


class MDN(nn.Module):
    def __init__(self, n_inputs, n_bells=3, hidden=40):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(n_inputs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh()
        )
        self.weight = nn.Linear(hidden, n_bells)
        self.mean = nn.Linear(hidden, n_bells)
        self.log_std = nn.Linear(hidden, n_bells)
        with torch.no_grad():
            self.mean.bias.copy_(torch.linspace(-1, 1, n_bells))

    def forward(self, x):
        h = self.trunk(x)
        return self.weight(h).log_softmax(1), self.mean(h), self.log_std(h).clamp(-4, 2)


def negative_log_likelihood(output, target):
    log_weight, mean, log_std = output
    z = (target.unsqueeze(1) - mean) * (-log_std).exp()
    log_density = -0.5 * z**2 - log_std - 0.5 * math.log(2 * math.pi)
    return -torch.logsumexp(log_weight + log_density, dim=1).mean()


def nearest_mean_error(output, target):
    """The error of the better of the likely answers (weight above 0.15)."""
    log_weight, mean, _ = output
    error = (mean - target.unsqueeze(1)).abs()
    return error.masked_fill(log_weight < math.log(0.15), 9.0).min(1).values.mean().item()


def main():
    x, angle = arm(3000)
    x_val, angle_val = arm(600)
    x, x_val = standardise(x, x_val)
    loader = DataLoader(TensorDataset(x, angle), batch_size=100, shuffle=True)
    model = MDN(x.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    epochs = 25
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=3e-3, total_steps=epochs * len(loader)
    )
    for epoch in range(1, epochs + 1):
        model.train()
        total = 0.0
        for inputs, target in loader:
            optimizer.zero_grad()
            loss = negative_log_likelihood(model(inputs), target)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            scheduler.step()
            total += loss.item() * len(target)
        model.eval()
        with torch.no_grad():
            output = model(x_val)
        val_loss = negative_log_likelihood(output, angle_val).item()
        error = math.degrees(2 * nearest_mean_error(output, angle_val))
        print(
            f"epoch {epoch:2d} loss {total / len(x):+.4f} val_loss {val_loss:+.4f} "
            f"elbow off by {error:.2f} degrees"
        )


if __name__ == "__main__":
    main()
