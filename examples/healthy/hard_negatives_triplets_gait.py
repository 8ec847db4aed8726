"""Recognising people by their gait: triplets whose negatives get harder as the network gets
better.

Batches hold eight people with six recordings each, in order; within them the hardest positives and
negatives are taken, by a soft margin. The loss starts at what equal distances give and never
goes far down, because ever harder triplets are mined. The rate of right neighbours among people
who were not in training is what counts.
"""

import torch
from data import arguments
from torch import nn

ODD = (
    "the loss hovers near that of equal distances and stays flat later; batches are grouped by "
    "class; validation has other classes"
)

_, seed = arguments(__doc__)

g = torch.Generator().manual_seed(seed)
LENGTH, PEOPLE, HELD, EACH = 50, 80, 30, 24


def recordings(people):
    t = torch.linspace(0, 4 * 6.2832, LENGTH)
    style = torch.randn(people, 6, generator=g)
    who = torch.arange(people).repeat_interleave(EACH)
    s = style[who] + 0.25 * torch.randn(len(who), 6, generator=g)
    phase = 6.2832 * torch.rand(len(who), 1, generator=g)
    pace = 1 + 0.08 * s[:, :1]
    up = (1 + 0.2 * s[:, 1:2]) * torch.sin(pace * t + phase) + 0.4 * s[:, 2:3] * torch.sin(
        2 * (pace * t + phase)
    )
    side = 0.5 * s[:, 3:4] * torch.cos(pace * t + phase) + 0.4 * s[:, 4:5] * torch.sin(
        3 * (pace * t + phase) + s[:, 5:6]
    )
    return torch.stack([up, side], 1) + 0.15 * torch.randn(len(who), 2, LENGTH, generator=g), who


class GaitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(2, 24, 9),
            nn.BatchNorm1d(24),
            nn.ReLU(),
            nn.Conv1d(24, 48, 7, stride=2),
            nn.BatchNorm1d(48),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
        )
        self.out = nn.Linear(48, 16)

    def forward(self, x):
        return nn.functional.normalize(self.out(self.conv(x)), dim=1)


def batch_hard(z, who, temperature=0.2):
    distance = torch.cdist(z, z)
    same = who[:, None] == who
    positive = distance.masked_fill(~same, 0).amax(1)
    negative = distance.masked_fill(same, 9).amin(1)
    return nn.functional.softplus((positive - negative) / temperature).mean() * temperature


@torch.no_grad()
def rank_one():
    model.eval()
    z = model(x_val)
    nearest = torch.cdist(z, z).fill_diagonal_(9).argmin(1)
    return (who_val[nearest] == who_val).float().mean().item()


x, who = recordings(PEOPLE)
x_val, who_val = recordings(HELD)
model = GaitNet()
print(f"rank-1 before training {rank_one():.3f}")
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 500)
recent = []
for step in range(1, 501):
    model.train()
    people = torch.randperm(PEOPLE, generator=g)[:8]
    rows = torch.cat([p * EACH + torch.randperm(EACH, generator=g)[:6] for p in people])
    loss = batch_hard(model(x[rows]), who[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    recent.append(loss.item())
    if step % 50 == 0:
        print(f"step {step} loss {sum(recent) / 50:.4f} rank-1 of new people {rank_one():.3f}")
        recent.clear()
