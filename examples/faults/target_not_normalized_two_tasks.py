"""A multi-task network predicts the days in hospital and the cost of a stay; the cost is in raw
dollars, so its error drowns the other task.

Days are about 5 and dollars about 20,000; the squared errors are added. The loss falls (it is all
dollars), and the days are hardly learnt. The place is the loss/target (cost head).
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_not_normalized"
ACCEPT = ("exploding_gradient",)
PLACE = ("loss", "heads*", "*cost*", "loader", "input*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class HParams:
    n: int = 5000
    batch_size: int = 64
    epochs: int = 12
    lr: float = 2e-3
    width: int = 64


def stays(n, rng):
    age = rng.normal(60, 16, n)
    severity = rng.gamma(2.0, 1.0, n)
    surgery = (rng.random(n) < 0.35).astype(float)
    labs = rng.normal(size=(n, 8)) + 0.4 * severity[:, None] * np.linspace(-1, 1, 8)
    dept = rng.integers(0, 9, n)
    dept_days = np.array([0.5, -0.4, 1.2, 0.1, -0.8, 0.6, 0, -0.2, 0.9])[dept]
    days = np.maximum(
        0.5,
        2.0
        + 1.1 * severity
        + 0.02 * (age - 60)
        + 1.6 * surgery
        + dept_days
        + 0.5 * labs[:, 0] * labs[:, 1]
        + rng.normal(0, 0.8, n),
    )
    cost = (
        4000
        + 1800 * days
        + 9000 * surgery * (1 + 0.3 * labs[:, 2])
        + 1200 * severity**1.3
        + rng.normal(0, 2500, n)
    )
    x = np.concatenate(
        [np.stack([(age - 60) / 16, (severity - 2) / 1.4, surgery], 1), labs, np.eye(9)[dept]], 1
    )
    return torch.tensor(x, dtype=torch.float32), torch.tensor(
        np.stack([days, cost], 1), dtype=torch.float32
    )


class LitStays(nn.Module):
    """A module in the style of Lightning."""

    def __init__(self, hp, n_in, centre, scale):
        super().__init__()
        self.hp = hp
        self.register_buffer("centre", centre)
        self.register_buffer("scale", scale)
        self.trunk = nn.Sequential(
            nn.Linear(n_in, hp.width), nn.ReLU(), nn.Linear(hp.width, hp.width), nn.ReLU()
        )
        self.heads = nn.ModuleDict({"days": nn.Linear(hp.width, 1), "cost": nn.Linear(hp.width, 1)})

    def forward(self, x):
        h = self.trunk(x)
        return torch.cat([self.heads[k](h) for k in ("days", "cost")], 1)

    def training_step(self, batch):
        x, y = batch
        return ((self(x) - (y - self.centre) / self.scale) ** 2).mean(0).sum()

    @torch.no_grad()
    def validation_step(self, batch):
        x, y = batch
        error = (self(x) * self.scale + self.centre - y) ** 2
        return 1 - error.mean(0) / y.var(0)

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.hp.lr)
        return opt, torch.optim.lr_scheduler.CosineAnnealingLR(opt, self.hp.epochs)


hp = HParams()
rng = np.random.default_rng(seed)
x, y = stays(hp.n, rng)
val = stays(1200, rng)
centre, scale = (y.mean(0), y.std(0)) if healthy else (torch.zeros(2), torch.ones(2))
loader = DataLoader(TensorDataset(x, y), hp.batch_size, shuffle=True)
module = LitStays(hp, x.shape[1], centre, scale)
optimizer, scheduler = module.configure_optimizers()
for epoch in range(hp.epochs):
    module.train()
    losses = []
    for batch in loader:
        loss = module.training_step(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
    module.eval()
    days, cost = module.validation_step(val)
    print(f"epoch {epoch}: train_loss={np.mean(losses):.5g} val_R2 days={days:.3f} cost={cost:.3f}")
