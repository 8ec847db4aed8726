"""Bicycles counted per hour: the net's column is compared with a row of targets.

The last layer gives (64, 1), the dataset hands out plain numbers, so a batch of them is (64,).
The difference of the two is (64, 64): every prediction against every target, and the best
answer to that is the mean. The place is the loss.
The twin gives the targets their second dimension.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss*", "output*")
SILENT = False
EXACT = True
EARLY = True


class Counts(Dataset):
    def __init__(self, hours, rng):
        h = rng.integers(0, 24, hours)
        weekend = rng.random(hours) < 2 / 7
        warm = rng.normal(12, 8, hours)
        rain = rng.random(hours) < 0.2
        rush = np.exp(-((h - 8) ** 2) / 3) + np.exp(-((h - 17) ** 2) / 5)
        leisure = np.exp(-((h - 14) ** 2) / 20)
        n = np.where(weekend, 250 * leisure, 400 * rush) * (1 + 0.03 * (warm - 12)).clip(0.2)
        n = rng.poisson(10 + n * np.where(rain, 0.5, 1.0))
        turn = 2 * np.pi * h / 24
        waves = [f(k * turn) for k in (1, 2, 3) for f in (np.sin, np.cos)]
        self.x = np.stack([*waves, weekend, (warm - 12) / 8, rain], 1).astype(np.float32)
        self.y = ((np.sqrt(n) - 9) / 5).astype(np.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class CountNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(9, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
        )

    def forward(self, x):
        return self.layers(x)


def main():
    healthy, seed = arguments(__doc__)
    rng = np.random.default_rng(seed)
    train = DataLoader(Counts(2560, rng), batch_size=64, shuffle=True)
    later = Counts(500, rng)
    net = CountNet()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(1, 11):
        losses = []
        for x, y in train:
            counts = y.unsqueeze(1) if healthy else y
            loss = ((net(x) - counts) ** 2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        if epoch % 2 == 0:
            with torch.no_grad():
                said = net(torch.from_numpy(later.x)).squeeze(1).numpy()
            r = np.corrcoef(said, later.y)[0, 1]
            off = np.sqrt(((said - later.y) ** 2).mean())
            print(f"epoch {epoch:2d} loss {np.mean(losses):.3f} rmse {off:.3f} correlation {r:.2f}")


main()
