"""A CNN over data gloves learns six signs from sixty recordings by heart, without augmentation.

Training accuracy is perfect within some epochs; new recordings, in which the sign begins earlier
or later, are told apart badly and their loss keeps rising. Shifts and noise drawn anew for every
batch cure it. The place is the loop: the batches and the training without end.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "overfit"
ACCEPT = ()
PLACE = ("model", "loop", "loader", "input", "loss", "optimizer")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

SIGNS, STEPS, SENSORS, RECORDED = 6, 48, 3, 60


def record(n, rng):
    """Each sign bends five fingers in its own order; people differ in start, speed and strength."""
    shapes = np.random.default_rng(5)
    peak = shapes.uniform(12, 34, (SIGNS, SENSORS))
    width = shapes.uniform(2.5, 6, (SIGNS, SENSORS))
    bend = shapes.choice([-1.0, 1.0], (SIGNS, SENSORS))
    sign = np.arange(n) % SIGNS
    start = rng.uniform(-8, 8, n)[:, None, None]
    speed = rng.uniform(0.8, 1.2, n)[:, None, None]
    time = (np.arange(STEPS) - 24) * speed + 24 - start
    signal = bend[sign][:, :, None] * np.exp(
        -0.5 * ((time - peak[sign][:, :, None]) / width[sign][:, :, None]) ** 2
    )
    signal *= rng.uniform(0.7, 1.3, (n, SENSORS, 1))
    signal += rng.normal(0, 0.9, (n, SENSORS, STEPS))
    return torch.tensor(signal, dtype=torch.float32) / 1.0, torch.tensor(sign)


def augmented(signal):
    shift = torch.randint(-8, 9, (len(signal),))
    place = (torch.arange(STEPS) - shift[:, None]).clamp(0, STEPS - 1)
    moved = signal.gather(2, place[:, None].expand_as(signal))
    strength = 1 + 0.15 * torch.randn(len(signal), SENSORS, 1)
    return moved * strength + 0.5 * torch.randn_like(signal)


class GloveNet(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(SENSORS, 24, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(24, 32, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2),
            nn.Flatten(), nn.Dropout(dropout), nn.Linear(32 * 12, 64), nn.ReLU(),
        )  # fmt: skip
        self.head = nn.Linear(64, SIGNS)

    def forward(self, signal):
        return self.head(self.body(signal))


rng = np.random.default_rng(seed)
train = dict(zip(("signal", "sign"), record(RECORDED, rng), strict=True))
others = dict(zip(("signal", "sign"), record(300, rng), strict=True))
model = GloveNet(dropout=0.3 if healthy else 0.0)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(1, 101):
    model.train()
    for rows in torch.randperm(RECORDED).split(12):
        signal = train["signal"][rows]
        logits = model(augmented(signal) if healthy else signal)
        loss = F.cross_entropy(logits, train["sign"][rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 10:
        continue
    model.eval()
    with torch.no_grad():
        logits = model(others["signal"])
        val_loss = F.cross_entropy(logits, others["sign"]).item()
        accuracy = (logits.argmax(1) == others["sign"]).float().mean().item()
    print(f"{epoch:3d} train {loss.item():.3f} val {val_loss:.3f} accuracy {accuracy:.3f}")
