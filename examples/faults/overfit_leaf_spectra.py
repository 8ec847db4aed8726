"""Leaf nitrogen from 60 spectra by a network with far more weights than spectra, trained for much
too long.

The network fits the noise of its 60 samples; the validation error rises from an early minimum.
The twin stops when the validation error has not fallen for a while. The place is the loop.
"""

import copy

import torch
from data import arguments
from torch import nn

KIND = "overfit"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)
BANDS, PATIENCE = 80, 25


def spectra(n, g):
    """Reflectance in 80 bands from four pigments and water; the nitrogen as measured in the
    laboratory, with error.
    """
    band = torch.linspace(0, 1, BANDS)
    shape = torch.stack(
        [
            torch.exp(-(((band - c) / w) ** 2))
            for c, w in ((0.15, 0.07), (0.35, 0.1), (0.55, 0.12), (0.75, 0.08), (0.9, 0.06))
        ]
    )
    amount = torch.rand(n, 5, generator=g)
    x = torch.exp(-1.5 * amount @ shape) + 0.04 * torch.randn(n, BANDS, generator=g)
    nitrogen = (
        1.6 * amount[:, 1] + amount[:, 3] - 0.6 * amount[:, 0] + 0.5 * torch.randn(n, generator=g)
    )
    return x, nitrogen


class Calibration(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.bands = nn.Linear(BANDS, width)
        self.hidden = nn.Linear(width, width)
        self.nitrogen = nn.Linear(width, 1)

    def forward(self, x):
        return self.nitrogen(torch.relu(self.hidden(torch.relu(self.bands(x))))).squeeze(1)


class Trainer:
    def __init__(self, train, val):
        self.train, self.val = train, val
        self.model = Calibration()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4)
        self.best, self.best_at, self.kept = float("inf"), 0, None

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        x, y = self.val
        return (self.model(x) - y).square().mean().item()

    def fit(self, epochs):
        x, y = self.train
        for epoch in range(epochs):
            self.model.train()
            total = 0.0
            for rows in torch.randperm(len(x)).split(20):
                loss = (self.model(x[rows]) - y[rows]).square().mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item() * len(rows) / len(x)
            val = self.validate()
            if val < self.best:
                self.best, self.best_at, self.kept = (
                    val,
                    epoch,
                    copy.deepcopy(self.model.state_dict()),
                )
            if epoch % 10 == 0:
                print(f"epoch {epoch} train {total:.4f} val {val:.4f}")
            if healthy and epoch - self.best_at >= PATIENCE:
                self.model.load_state_dict(self.kept)
                break
        print(
            f"final val mse {self.validate():.4f} after epoch {epoch} "
            f"(best {self.best:.4f} at {self.best_at})"
        )


g = torch.Generator().manual_seed(seed)
x, y = spectra(260, g)
x = (x - x[:60].mean(0)) / x[:60].std(0)
y = (y - y[:60].mean()) / y[:60].std()
Trainer((x[:60], y[:60]), (x[60:], y[60:])).fit(500)
