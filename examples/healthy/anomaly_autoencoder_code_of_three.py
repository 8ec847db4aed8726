"""An auto-encoder with a code of three numbers learns what normal machine cycles look like; what it
rebuilds badly is an anomaly.

What looks odd: a bottleneck that is far narrower than the input, an error that stays at the level
of the noise, and a loss on the mixed set that stays at more than twice the one of training: it has
the anomalies in it, which training never sees. So it should be.
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "a code of three; loss stays at the noise; the loss on the mixed set is far higher"


@dataclass
class Config:
    length: int = 64
    code: int = 3
    width: int = 64
    noise: float = 0.25
    epochs: int = 25
    batch: int = 64
    rate: float = 2e-3


class CycleAutoEncoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(c.length, c.width), nn.GELU(), nn.Linear(c.width, c.width), nn.GELU(),
            nn.Linear(c.width, c.code),
        )  # fmt: skip
        self.decoder = nn.Sequential(
            nn.Linear(c.code, c.width), nn.GELU(), nn.Linear(c.width, c.width), nn.GELU(),
            nn.Linear(c.width, c.length),
        )  # fmt: skip

    def forward(self, x):
        return self.decoder(self.encoder(x))

    @torch.no_grad()
    def score(self, x):
        return (self(x) - x).square().mean(1)


def normal_cycles(n, c, g):
    """Current of a press: a ramp, a blow and a ringing; load, wear and speed vary."""
    load, wear, speed = torch.randn(3, n, 1, generator=g)
    t = torch.linspace(0, 1, c.length)
    blow = 0.5 + 0.06 * speed
    ramp = (1 + 0.3 * load) * torch.sigmoid((t - blow + 0.15) / 0.05)
    hit = (1.8 + 0.4 * load) * torch.exp(-(((t - blow) / 0.04) ** 2))
    ring = 0.6 * torch.exp(0.4 * wear) * torch.sin(60 * (t - blow)) * torch.exp(-6 * (t - blow))
    x = ramp + hit + torch.where(t > blow, ring, 0.0)
    return x + c.noise * torch.randn(n, c.length, generator=g)


def faulty_cycles(n, c, g):
    x = normal_cycles(n, c, g)
    start = torch.randint(0, c.length - 12, (n,), generator=g)
    for i in range(n):
        s = int(start[i])
        if i % 2:
            x[i, s : s + 12] += 0.9
        else:
            x[i] = x[i].roll(c.length // 4)
    return x


def area_under_roc(good, bad):
    return (bad[:, None] > good[None, :]).float().mean().item()


def main():
    _, seed = arguments(__doc__)
    c = Config()
    g = torch.Generator().manual_seed(seed)
    train = normal_cycles(2000, c, g)
    good, bad = normal_cycles(300, c, g), faulty_cycles(100, c, g)
    model = CycleAutoEncoder(c)
    optimizer = torch.optim.Adam(model.parameters(), lr=c.rate)
    criterion = nn.MSELoss()
    loader = DataLoader(TensorDataset(train), batch_size=c.batch, shuffle=True)
    for epoch in range(c.epochs):
        model.train()
        total = 0.0
        for (cycles,) in loader:
            loss = criterion(model(cycles), cycles)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / len(loader)
        model.eval()
        normal, odd = model.score(good), model.score(bad)
        if epoch % 3 == 0:
            mixed = torch.cat([normal, odd]).mean().item()
            print(
                f"epoch {epoch} loss {total:.4f} (noise {c.noise**2:.4f}) normal "
                f"{normal.mean():.4f} mixed {mixed:.4f} AUC {area_under_roc(normal, odd):.3f}"
            )


if __name__ == "__main__":
    main()
