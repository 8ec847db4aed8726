"""A GRU estimates pumps' health, and one channel is the share of the run to failure that is over.

Records of the training pumps end with the failure, so the share of the record is one minus the
health that is to be estimated. Validation is nearly perfect; for pumps still at work the channel
means something else, and the error is large. The place is the input: its last channel.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "target_leak"
ACCEPT = ("future_leak",)
PLACE = ("input", "gru*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

SENSORS, WINDOW = 5, 16
LONGEST = 200


def pump(g):
    """A record up to the failure: sensor values (cycles, SENSORS)."""
    cycles = int(torch.randint(90, LONGEST, (1,), generator=g))
    used = torch.arange(cycles) / cycles
    slope = torch.tensor([1.5, -1.0, 0.8, 0.5, -0.7])
    wear = slope * (torch.exp(2.2 * used)[:, None] - 1) / 4
    offset = 0.15 * torch.randn(SENSORS, generator=g)
    return wear + offset + 0.45 * torch.randn(cycles, SENSORS, generator=g)


def windows(record, end_of_life, every):
    cycles = torch.arange(1, len(record) + 1, dtype=torch.float32)
    clock = cycles / LONGEST if healthy else cycles / len(record)
    channels = torch.cat([record, 2 * clock[:, None] - 1], 1)
    ends = range(WINDOW, len(record) + 1, every)
    x = torch.stack([channels[end - WINDOW : end] for end in ends])
    health = torch.tensor([1 - end / end_of_life for end in ends])
    return x, health


class HealthNet(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.gru = nn.GRU(SENSORS + 1, hidden, batch_first=True)
        self.head = nn.Sequential(nn.Linear(hidden, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x):
        return self.head(self.gru(x)[0][:, -1]).squeeze(1)


def joined(parts):
    x, y = zip(*parts, strict=True)
    return torch.cat(x), torch.cat(y)


def error(model, x, y):
    model.eval()
    with torch.no_grad():
        value = (model(x) - y).abs().mean().item()
    model.train()
    return value


g = torch.Generator().manual_seed(seed)
pumps = [pump(g) for _ in range(110)]
train = joined([windows(record, len(record), 4) for record in pumps[:70]])
val = joined([windows(record, len(record), 4) for record in pumps[70:90]])
at_work = []
for record in pumps[90:]:
    seen = int(len(record) * (0.3 + 0.5 * torch.rand(1, generator=g)))
    x, y = windows(record[:seen], len(record), 1)
    at_work.append((x[-1:], y[-1:]))
at_work = joined(at_work)
mean, std = train[0].mean((0, 1)), train[0].std((0, 1))
x_train, x_val, x_work = ((x - mean) / std for x in (train[0], val[0], at_work[0]))

model = HealthNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
for epoch in range(10):
    total = 0.0
    for rows in torch.randperm(len(x_train), generator=g).split(64):
        loss = F.mse_loss(model(x_train[rows]), train[1][rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() * len(rows)
    scheduler.step()
    print(
        f"epoch {epoch + 1:2d}  train mse {total / len(x_train):.5f}  "
        f"val error {error(model, x_val, val[1]):.4f}"
    )
print(f"error for pumps at work: {error(model, x_work, at_work[1]):.3f}")
