"""Cells are segmented with eight micro-batches per step; the loss is divided by eight after
backward().

The division is only seen by the log. The gradients of eight micro-batches add up, so that every
step of SGD is eight times as long as it was tuned to be. The place is the training loop. The loss
falls all the same (silent), late and to several times that of the twin. It is exact: eight backward
passes of a mean per step.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "loss*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def cells(n, generator):
    """Bright blobs on uneven ground, and which pixels belong to a blob."""
    yy, xx = torch.meshgrid(torch.arange(24.0), torch.arange(24.0), indexing="ij")
    image = 0.4 * torch.randn(n, 24, 24, generator=generator)
    tilt = torch.rand(n, 2, 1, 1, generator=generator) - 0.5
    image += tilt[:, 0] * (yy / 12 - 1) + tilt[:, 1] * (xx / 12 - 1)
    mask = torch.zeros(n, 24, 24)
    for _ in range(3):
        centre = torch.rand(n, 2, 1, 1, generator=generator) * 18 + 3
        radius = torch.rand(n, 1, 1, generator=generator) * 2 + 2
        inside = (yy - centre[:, 0]) ** 2 + (xx - centre[:, 1]) ** 2 < radius**2
        mask[inside] = 1
    return (image + 1.2 * mask).unsqueeze(1), mask.unsqueeze(1)


class Block(nn.Sequential):
    def __init__(self, i, o):
        super().__init__(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(4, o), nn.ReLU())


class SmallUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = Block(1, 8)
        self.down = Block(8, 16)
        self.bottom = Block(16, 16)
        self.up = Block(24, 8)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        skip = self.enter(x)
        x = self.bottom(self.down(F.max_pool2d(skip, 2)))
        x = F.interpolate(x, scale_factor=2, mode="nearest")
        return self.out(self.up(torch.cat([skip, x], 1)))


class Trainer:
    def __init__(self, model, lr, accumulate):
        self.model, self.accumulate = model, accumulate
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)

    def epoch(self, images, masks, size=4):
        self.model.train()
        total, micro = 0.0, 0
        for rows in torch.randperm(len(images)).split(size):
            loss = F.binary_cross_entropy_with_logits(self.model(images[rows]), masks[rows])
            if healthy:
                loss = loss / self.accumulate
                loss.backward()
            else:
                loss.backward()
                loss = loss / self.accumulate
            total += loss.item()
            micro += 1
            if micro % self.accumulate == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
        return total * self.accumulate / micro

    @torch.no_grad()
    def dice(self, images, masks):
        self.model.eval()
        found = (self.model(images) > 0).float()
        return (2 * (found * masks).sum() / (found.sum() + masks.sum())).item()


g = torch.Generator().manual_seed(seed)
images, masks = cells(384, g)
val_images, val_masks = cells(96, g)
trainer = Trainer(SmallUNet(), lr=0.5, accumulate=8)
for epoch in range(6):
    loss = trainer.epoch(images, masks)
    print(f"epoch {epoch}: loss {loss:.4f}, dice {trainer.dice(val_images, val_masks):.3f}")
