"""Three properties of an alloy at once, weighted by learned uncertainties (Kendall et al. 2018).

The sum of exp(-s) * loss + s goes below zero, as it should where noise is small; the s are free
parameters with a rate of their own and no decay. Targets are missing for many rows (nan, masked
before any arithmetic), and one task has a class imbalance of 1 to 9, which is met by a weight.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "a negative total loss, nan among the targets (masked), scalar parameters with another rate"

_, seed = arguments(__doc__)


def alloys(n):
    mix = torch.distributions.Dirichlet(torch.full((8,), 0.7)).sample((n,))
    z = (mix - 0.125) / 0.13
    hardness = 0.6 * z[:, 0] - 0.4 * z[:, 1] + 0.3 * z[:, 2] * z[:, 3] + 0.1 * torch.randn(n)
    melting = 0.5 * z[:, 4] + 0.4 * z[:, 0] - 0.2 * z[:, 5] ** 2 + 0.05 * torch.randn(n)
    brittle = (z[:, 0] + z[:, 6] - 0.5 * z[:, 7] + 0.3 * torch.randn(n) > 1.9).float()
    targets = torch.stack([hardness, melting, brittle], 1)
    targets[torch.rand(n, 3) < 0.25] = float("nan")
    return z, targets


class MultiTask(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(8, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.heads = nn.ModuleDict(
            {name: nn.Linear(width, 1) for name in ("hardness", "melting", "brittle")}
        )
        self.log_variance = nn.Parameter(torch.zeros(3))

    def forward(self, z):
        h = self.trunk(z)
        return torch.cat([head(h) for head in self.heads.values()], 1)


def task_losses(out, targets):
    known = ~targets.isnan()
    safe = torch.where(known, targets, torch.zeros_like(targets))
    squared = (out[:, :2] - safe[:, :2]).pow(2)
    weight = torch.tensor(3.0)
    crossed = F.binary_cross_entropy_with_logits(
        out[:, 2:], safe[:, 2:], pos_weight=weight, reduction="none"
    )
    each = torch.cat([squared, crossed], 1) * known
    return each.sum(0) / known.sum(0).clamp(min=1)


train, (z_val, t_val) = TensorDataset(*alloys(2500)), alloys(800)
model = MultiTask()
optimizer = torch.optim.AdamW(
    [
        {"params": [*model.trunk.parameters(), *model.heads.parameters()], "weight_decay": 0.01},
        {"params": [model.log_variance], "lr": 1e-2, "weight_decay": 0.0},
    ],
    lr=2e-3,
)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=20)
for epoch in range(20):
    model.train()
    for z, targets in DataLoader(train, 64, shuffle=True):
        losses = task_losses(model(z), targets)
        loss = (torch.exp(-model.log_variance) * losses + 0.5 * model.log_variance).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        losses = task_losses(model(z_val), t_val).tolist()
    if epoch % 4 == 3:
        print(
            f"epoch {epoch + 1} total {loss.item():+.3f} "
            f"val hardness {losses[0]:.4f} melting {losses[1]:.4f} brittle {losses[2]:.4f}"
        )
