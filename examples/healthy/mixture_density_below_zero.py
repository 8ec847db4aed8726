"""Joint angles of a robot arm for a wanted position, by a mixture density network.

Two elbows reach each point, so the answer is a density with two peaks. The negative log-likelihood
of a sharp density goes well below zero and goes on falling: no sign is wrong. Validation has the
same density on held-out points, and how far the likeliest peak's hand is from the wanted position.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = "the loss is negative and falls on below zero"

_, seed = arguments(__doc__)
UPPER, LOWER, PEAKS = 1.0, 0.7, 4


def hand(angle):
    a, b = angle[:, 0], angle[:, 0] + angle[:, 1]
    return torch.stack([UPPER * a.cos() + LOWER * b.cos(), UPPER * a.sin() + LOWER * b.sin()], 1)


def recordings(n: int):
    g = torch.Generator().manual_seed(440 + seed)
    shoulder = torch.rand(n, generator=g) * 1.8 - 0.2
    elbow = (0.4 + 2.0 * torch.rand(n, generator=g)) * (
        1 - 2 * torch.randint(0, 2, (n,), generator=g)
    )
    angle = torch.stack([shoulder, elbow], 1)
    return hand(angle), angle + 0.02 * torch.randn(n, 2, generator=g)


class Mixture(nn.Module):
    def __init__(self, width: int = 96):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(2, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
        )
        self.weight, self.mean = nn.Linear(width, PEAKS), nn.Linear(width, 2 * PEAKS)
        self.log_std = nn.Linear(width, 2 * PEAKS)
        with torch.no_grad():  # the peaks start apart
            self.mean.bias.copy_(
                torch.tensor([[0.3, 1.2], [1.0, -1.2], [0.0, 2.0], [1.5, -2.0]]).flatten()
            )

    def forward(self, x):
        h = self.body(x)
        log_std = self.log_std(h).clamp(-4.5, 1.5).unflatten(1, (PEAKS, 2))
        return torch.log_softmax(self.weight(h), 1), self.mean(h).unflatten(1, (PEAKS, 2)), log_std


def nll(parts, angle):
    weight, mean, log_std = parts
    z = (angle[:, None] - mean) / log_std.exp()
    each = (-0.5 * z.square() - log_std - 0.5 * math.log(2 * math.pi)).sum(2)
    return -torch.logsumexp(weight + each, 1).mean()


x, y = recordings(8000)
mean, std = x[:6500].mean(0), x[:6500].std(0)
scaled = (x - mean) / std
model = Mixture()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=16 * 51)

for epoch in range(16):
    model.train()
    total = 0.0
    for rows in torch.randperm(6500).split(128):
        loss = nll(model(scaled[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        total += loss.item() * len(rows) / 6500
    model.eval()
    with torch.no_grad():
        parts = model(scaled[6500:])
        val = nll(parts, y[6500:]).item()
        best = (parts[0] - parts[2].sum(2)).argmax(1)
        reach = (hand(parts[1][torch.arange(1500), best]) - x[6500:]).norm(dim=1).median().item()
    if epoch % 3 == 0 or epoch == 15:
        print(
            f"epoch {epoch + 1}: train {total:.4f}, validation {val:.4f}, hand off by {reach:.4f}"
        )
print(f"validation nll {val:.4f}")
