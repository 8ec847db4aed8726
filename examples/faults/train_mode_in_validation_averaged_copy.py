"""Muscle signals give the angle of a wrist; validation runs on an averaged copy in training mode.

The person keeps an exponential average of the weights and validates with it, but calls eval() on
the network that is trained. The copy stays in training mode: its dropout drops and its batch norm
takes the statistics of the validation batches. The place is the copy in validation.
"""

import copy
import math

import torch
from data import arguments
from torch import nn

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("model", "loop", "ema*", "net*", "front*", "head*")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

CHANNELS, TIME = 6, 48


def recordings(n, generator):
    """The loudness of six muscles follows the angle; each recording has its own noise and drift."""
    angle = torch.rand(n, 1, generator=generator) * 2 - 1
    muscles = torch.linspace(-1, 1, CHANNELS)
    loud = 0.3 + torch.exp(-3 * (angle - muscles) ** 2)
    carrier = torch.randn(n, CHANNELS, TIME, generator=generator)
    hum = torch.sin(torch.arange(TIME) * 0.9 + 6.3 * torch.rand(n, 1, 1, generator=generator))
    return loud.unsqueeze(-1) * carrier + 0.3 * hum, angle.squeeze(1)


class WristNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv1d(CHANNELS, width, 3, padding=1, bias=False),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Conv1d(width, width, 3, padding=1, stride=2, bias=False),
            nn.BatchNorm1d(width),
            nn.ReLU(),
        )
        self.head = nn.Sequential(
            nn.Dropout(0.3), nn.Linear(width, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 1)
        )

    def forward(self, x):
        return self.head(self.front(x).mean(-1)).squeeze(1)


class Averaged:
    """A slowly moving copy of a network: weights averaged, buffers copied."""

    def __init__(self, net, decay):
        self.net = copy.deepcopy(net)
        self.decay = decay
        self.net.requires_grad_(False)

    @torch.no_grad()
    def update(self, net):
        for mine, theirs in zip(self.net.parameters(), net.parameters(), strict=True):
            mine.lerp_(theirs, 1 - self.decay)
        for mine, theirs in zip(self.net.buffers(), net.buffers(), strict=True):
            mine.copy_(theirs)


class WristTrainer:
    def __init__(self):
        generator = torch.Generator().manual_seed(seed)
        self.x, self.y = recordings(1500, generator)
        self.x_val, self.y_val = recordings(400, generator)
        self.net = WristNet()
        self.ema = Averaged(self.net, 0.97)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=3e-3, weight_decay=1e-3)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 12)

    def fit(self, epochs):
        for epoch in range(epochs):
            self.net.train()
            total = 0.0
            for rows in torch.randperm(len(self.x)).split(50):
                loss = ((self.net(self.x[rows]) - self.y[rows]) ** 2).mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.ema.update(self.net)
                total += loss.item() * len(rows)
            self.schedule.step()
            val = self.validate()
            print(
                f"epoch {epoch:2d} train mse {total / len(self.x):.4f} "
                f"val mse {val:.4f} (off by {90 * math.sqrt(val):.1f} degrees)"
            )

    @torch.no_grad()
    def validate(self):
        (self.ema.net if healthy else self.net).eval()
        squares = [
            (self.ema.net(x) - y) ** 2
            for x, y in zip(self.x_val.split(100), self.y_val.split(100), strict=True)
        ]
        return torch.cat(squares).mean().item()


WristTrainer().fit(12)
