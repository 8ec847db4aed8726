"""Trains a small patch mixer on digits; the learning-rate schedule is built but never moved on.

One-cycle starts at a 25th of the top rate and climbs. When the loop was rewritten, the call of
scheduler.step() got lost, so the rate stays at its tiny start. The place is the schedule.
The twin calls it after every step.
"""

import torch
from data import arguments, batches, images
from torch import nn

KIND = "schedule_never_steps"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
STEPS, PEAK = 400, 5e-3


class Mixer(nn.Module):
    def __init__(self, patches, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.across = nn.Sequential(nn.Linear(patches, 32), nn.GELU(), nn.Linear(32, patches))
        self.within = nn.Sequential(nn.Linear(width, 48), nn.GELU(), nn.Linear(48, width))

    def forward(self, x):
        x = x + self.across(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.within(self.norm2(x))


class PatchNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.cut = nn.Conv2d(1, width, 2, stride=2)
        self.mix = nn.Sequential(Mixer(16, width), Mixer(16, width))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.norm(self.mix(self.cut(x).flatten(2).transpose(1, 2))).mean(1))


x, y, x_val, y_val = images(seed)
model = PatchNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK, weight_decay=0.02)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=PEAK, total_steps=STEPS)
for step, (xb, yb) in enumerate(batches(x, y, size=48, steps=STEPS, seed=seed), 1):
    loss = nn.functional.cross_entropy(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if healthy:
        scheduler.step()
    if step % 80 == 0:
        with torch.no_grad():
            accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
        print(f"step {step} loss {loss.item():.3f} accuracy {accuracy:.3f}")
