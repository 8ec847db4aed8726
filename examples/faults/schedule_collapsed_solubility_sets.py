"""Solubility of molecules as sets of atoms; the rate is gone before the first epoch ends.

The home-made trainer takes its scheduler as a dictionary with an "interval", as a well-known
library does. The rate is to fall by a tenth an EPOCH, and the dictionary says "step". After one
epoch of fifty batches it has fallen by a factor of 190 and after three there is nothing left of
it. The place is the schedule. The twin says "epoch".
"""

import torch
from data import arguments
from torch import nn
from torch.optim.lr_scheduler import ExponentialLR
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_collapsed"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def molecules(n, most=12):
    """Atoms (kind one-hot of 5, charge, polarity), a mask, and a solubility in standard units."""
    kind = torch.randint(0, 5, (n, most))
    charge, polar = torch.randn(n, most), torch.rand(n, most)
    here = (torch.arange(most) < torch.randint(4, most + 1, (n, 1))).float()
    weight = torch.tensor([-0.6, 0.9, 1.2, -1.1, 0.2])[kind]
    size = here.sum(1)
    y = (here * weight * (0.5 + polar)).sum(1) / size.sqrt() + 0.5 * (here * charge).sum(
        1
    ).abs() / size.sqrt()
    y = (y - 0.4) / 1.1 + 0.1 * torch.randn(n)
    atoms = torch.cat(
        [nn.functional.one_hot(kind, 5).float(), charge[..., None], polar[..., None]], -1
    )
    return atoms, here, y


class DeepSet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(7, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.rho = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, atoms, here):
        pooled = (self.phi(atoms) * here[..., None]).sum(1) / here.sum(1, keepdim=True).sqrt()
        return self.rho(pooled).squeeze(-1)

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=2e-3)
        return {
            "optimizer": optimizer,
            "lr_scheduler": ExponentialLR(optimizer, gamma=0.9),
            "interval": "epoch" if healthy else "step",
        }


class Trainer:
    def __init__(self, epochs):
        self.epochs = epochs

    def fit(self, model, train, val):
        setup = model.configure_optimizers()
        optimizer, scheduler = setup["optimizer"], setup["lr_scheduler"]
        for epoch in range(self.epochs):
            model.train()
            for atoms, here, y in train:
                loss = nn.functional.mse_loss(model(atoms, here), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if setup["interval"] == "step":
                    scheduler.step()
            if setup["interval"] == "epoch":
                scheduler.step()
            mse, r2 = self.validate(model, val)
            print(f"epoch {epoch:2d} train {loss.item():.3f} val mse {mse:.3f} R2 {r2:.3f}")

    @torch.no_grad()
    def validate(self, model, loader):
        model.eval()
        pairs = [(model(atoms, here), y) for atoms, here, y in loader]
        said, true = (torch.cat(part) for part in zip(*pairs, strict=False))
        mse = ((said - true) ** 2).mean()
        return float(mse), float(1 - mse / true.var())


train = DataLoader(TensorDataset(*molecules(3200)), batch_size=64, shuffle=True)
val = DataLoader(TensorDataset(*molecules(600)), batch_size=300)
Trainer(epochs=20).fit(DeepSet(), train, val)
