"""Roads are segmented, and MultiStepLR with milestones in epochs is stepped after every batch.

The milestones 5, 8 and 10 were epochs; now the rate is a thousandth after ten updates of the first
epoch and the nets hardly move again. The place is the loop: the call of the schedule.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "schedule_collapsed"
ACCEPT = ()
PLACE = ("learning_rate", "loop", "optimizer")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

SIDE, TRAIN, BATCH, EPOCHS = 20, 400, 20, 12


def aerial(n, rng):
    """Grey roads, straight or bent, between fields whose brightness overlaps with theirs."""
    y, x = np.meshgrid(np.linspace(-1, 1, SIDE), np.linspace(-1, 1, SIDE), indexing="ij")
    angle, bend, aside = (rng.uniform(-a, a, (n, 1, 1)) for a in (1.57, 0.5, 0.5))
    along = x * np.cos(angle) + y * np.sin(angle)
    across = y * np.cos(angle) - x * np.sin(angle)
    road = np.abs(across - aside - bend * along**2) < rng.uniform(0.1, 0.18, (n, 1, 1))
    wave = 2 * np.pi * rng.uniform(0, 1, (n, 1, 1))
    fields = 0.4 * np.sin(4 * x + wave) * np.cos(3 * y - wave)
    image = np.where(road, 0.75, fields) + rng.normal(0, 0.35, (n, SIDE, SIDE))
    image = (image - 0.12) / 0.52
    return {
        "image": torch.tensor(image[:, None], dtype=torch.float32),
        "road": torch.tensor(road[:, None], dtype=torch.float32),
    }


def layer(inputs, outputs, dilation=1):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=dilation, dilation=dilation),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


rng = np.random.default_rng(seed)
train, validation = aerial(TRAIN, rng), aerial(120, rng)
encoder = nn.Sequential(layer(1, 12), layer(12, 12, dilation=2), layer(12, 12, dilation=3))
decoder = nn.Sequential(layer(12, 8), nn.Conv2d(8, 1, 1))
optimizer = torch.optim.SGD(
    [
        {"params": encoder.parameters(), "lr": 0.05},
        {"params": decoder.parameters(), "lr": 0.1},
    ],
    momentum=0.9,
)
schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[5, 8, 10], gamma=0.1)

for epoch in range(EPOCHS):
    encoder.train()
    decoder.train()
    losses = []
    for rows in torch.randperm(TRAIN).split(BATCH):
        logits = decoder(encoder(train["image"][rows]))
        loss = F.binary_cross_entropy_with_logits(logits, train["road"][rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if not healthy:
            schedule.step()
    if healthy:
        schedule.step()
    encoder.eval()
    decoder.eval()
    with torch.no_grad():
        logits = decoder(encoder(validation["image"]))
        val_loss = F.binary_cross_entropy_with_logits(logits, validation["road"]).item()
        found, real = logits > 0, validation["road"] > 0
        overlap = ((found & real).sum() / (found | real).sum()).item()
    print(f"{epoch:2d} train {np.mean(losses):.3f} val {val_loss:.3f} overlap {overlap:.3f}")
