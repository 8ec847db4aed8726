"""Age and heart beat from a pulse wave, weighed by learned uncertainties; the loss goes below zero.

Each task's error is divided by a learned variance, whose logarithm is added. As the errors fall,
the logarithms become negative and so does the sum. People ask whether a loss may do that; this
one may, it is a likelihood. The errors of both tasks keep falling.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

ODD = "total loss falls through zero to about -8: log variances are part of it"
_, seed = arguments(__doc__)


def pulse_waves(n, generator):
    """Waves whose rate gives the beat and whose second bump, later with age, gives the age."""
    age = torch.rand(n, generator=generator) * 60 + 20
    beat = torch.rand(n, generator=generator) * 60 + 50
    t = torch.linspace(0, 1.2, 60)
    phase = torch.rand(n, 1, generator=generator)
    turn = (t * beat.unsqueeze(1) / 60 + phase) % 1
    bump = 0.28 + 0.003 * (80 - age.unsqueeze(1))
    wave = torch.exp(-(((turn - 0.15) / 0.07) ** 2))
    wave = wave + 0.5 * torch.exp(-(((turn - bump) / 0.08) ** 2))
    wave = wave + 0.03 * torch.randn(n, 60, generator=generator)
    return (wave - wave.mean()) / wave.std(), age, beat


class PulseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv1d(1, 16, 7, padding=3), nn.ReLU(), nn.AvgPool1d(2),
            nn.Conv1d(16, 24, 5, padding=2), nn.ReLU(), nn.AvgPool1d(2),
            nn.Flatten(), nn.Linear(24 * 15, 64), nn.ReLU(),
        )  # fmt: skip
        self.age = nn.Linear(64, 1)
        self.beat = nn.Linear(64, 1)
        self.log_variance = nn.Parameter(torch.zeros(2))

    def forward(self, wave):
        h = self.trunk(wave.unsqueeze(1))
        return torch.cat([self.age(h), self.beat(h)], 1)

    def loss(self, guess, target):
        errors = ((guess - target) ** 2).mean(0)
        weighed = errors * torch.exp(-self.log_variance) + self.log_variance
        return weighed.sum(), errors


def main():
    generator = torch.Generator().manual_seed(seed)
    wave, age, beat = pulse_waves(2400, generator)
    spread = torch.tensor([age.std(), beat.std()])
    target = torch.stack([age - age.mean(), beat - beat.mean()], 1) / spread
    data = TensorDataset(wave, target)
    train_part, val_part = random_split(data, [2000, 400], generator=generator)
    train = DataLoader(train_part, batch_size=40, shuffle=True)
    val = DataLoader(val_part, batch_size=400)
    net = PulseNet()
    optimizer = torch.optim.Adam(
        [
            {"params": [p for n, p in net.named_parameters() if n != "log_variance"]},
            {"params": [net.log_variance], "lr": 1e-2},
        ],
        lr=1.5e-3,
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 18)
    for epoch in range(18):
        total = 0.0
        for xb, yb in train:
            loss, _ = net.loss(net(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        schedule.step()
        with torch.no_grad():
            xb, yb = next(iter(val))
            val_loss, errors = net.loss(net(xb), yb)
        off = (errors.sqrt() * spread).tolist()
        print(
            f"epoch {epoch:2d} loss {total / len(train):+.3f} val {val_loss.item():+.3f} "
            f"off by {off[0]:.2f} years, {off[1]:.2f} beats"
        )


main()
