"""Protein of grain by near-infrared spectra; Adam has a weight decay of 1.

The decay was 1 in the AdamW run of a large model that served as a pattern, where it is
multiplied by the rate. Adam adds it to the gradient, which it outweighs by far: the weights go to
zero and all grain gets the mean protein.
The place is the optimizer. The twin has 1e-5.
"""

import torch
from data import arguments
from torch import nn

KIND = "over_regularized"
ACCEPT = ("bad_optimizer_settings",)
PLACE = ("optimizer", ", ")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
SETTINGS = {"lr": 2e-3, "weight_decay": 1e-5 if healthy else 1.0}


class SpectraNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 12, 7, stride=2, padding=3),
            nn.ReLU(),
            nn.Conv1d(12, 24, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.head = nn.Sequential(nn.Linear(24 * 20, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.head(self.features(x.unsqueeze(1))).squeeze(1)


def spectra(n, g):
    band = torch.linspace(0, 1, 80)
    amount = torch.rand(n, 3, generator=g)
    peaks = torch.stack([torch.exp(-(((band - c) / 0.08) ** 2)) for c in (0.3, 0.4, 0.75)])
    x = amount @ peaks + 0.4 * torch.rand(n, 1, generator=g) * band
    x = x + 0.04 * torch.randn(n, 80, generator=g)
    y = amount[:, 0] - 0.4 * amount[:, 1] * amount[:, 2]
    return (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()


x, y = spectra(1000, torch.Generator().manual_seed(seed))
x, x_val, y, y_val = x[:800], x[800:], y[:800], y[800:]
net = SpectraNet()
optimizer = torch.optim.Adam(net.parameters(), **SETTINGS)
for epoch in range(1, 21):
    net.train()
    for rows in torch.randperm(len(x)).split(32):
        loss = nn.functional.mse_loss(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        fit = nn.functional.mse_loss(net(x), y).item()
        val = nn.functional.mse_loss(net(x_val), y_val).item()
    if epoch % 5 == 0:
        print(f"epoch {epoch} calibration {fit:.3f} validation {val:.3f}")
