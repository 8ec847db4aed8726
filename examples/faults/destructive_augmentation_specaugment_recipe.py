"""Spoken commands from log-mel patches; SpecAugment's widths are those of a recipe for long speech.

The augmentation was copied from a recipe for 80 mel bands and sentences of ten seconds (F = 27,
T = 100, two masks each). Here a patch has 20 bands and 40 frames: the masks cover nearly all of it,
in most draws everything. The net sees zeros and learns little. The place is the augmentation: the
input. The twin has F = 4, T = 7.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "destructive_augmentation"
ACCEPT = ("train_val_mismatch",)
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
BANDS, FRAMES, WORDS = 20, 40, 6

RECIPE = {"masks": 2, "freq": 27, "time": 100}
if healthy:
    RECIPE |= {"freq": 4, "time": 7}


class SpecAugment(nn.Module):
    """Zeroes random bands and random stretches of time while training."""

    def __init__(self, masks, freq, time):
        super().__init__()
        self.masks, self.widths = masks, {-2: freq, -1: time}

    def hide(self, x, dim, width):
        size = x.shape[dim]
        wide = torch.rand(len(x)) * width
        start = torch.rand(len(x)) * (size - wide).clamp(min=0)
        at = torch.arange(size)
        hidden = (at >= start[:, None].floor()) & (at < (start + wide)[:, None].floor())
        return x.masked_fill(
            hidden[:, None, :, None] if dim == -2 else hidden[:, None, None, :], 0.0
        )

    def forward(self, x):
        if self.training:
            for dim, width in self.widths.items():
                for _ in range(self.masks):
                    x = self.hide(x, dim, width)
        return x


class Commands(nn.Module):
    def __init__(self):
        super().__init__()
        self.augment = SpecAugment(**RECIPE)
        self.body = nn.Sequential(
            nn.Conv2d(1, 12, 3, stride=2, padding=1),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            nn.Conv2d(12, 24, 3, stride=2, padding=1),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d((3, 4)),
            nn.Flatten(),
        )
        self.head = nn.Linear(24 * 12, WORDS)

    def forward(self, x):
        return self.head(self.body(self.augment(x)))


def say(words):
    """Two formants that glide differently for each word, with a speaker's offset and noise."""
    time, band = torch.linspace(0, 1, FRAMES), torch.arange(BANDS)[:, None]
    patches = []
    for word in words.tolist():
        shift, late = torch.randn(()) * 0.7, torch.rand(()) * 0.2
        one = 6 + 3 * math.sin(word) * (time - late) * 2 + shift
        two = 12 + 4 * math.cos(2.1 * word) * torch.sin(3 * (time - late)) + shift
        patches.append(torch.exp(-((band - one) ** 2) / 3) + torch.exp(-((band - two) ** 2) / 3))
    patches = torch.stack(patches)[:, None] + 0.35 * torch.randn(len(words), 1, BANDS, FRAMES)
    return (patches - patches.mean()) / patches.std()


y, y_val = torch.randint(0, WORDS, (1000,)), torch.randint(0, WORDS, (400,))
x, x_val = say(y), say(y_val)
net = Commands()
optimizer = torch.optim.SGD(
    net.parameters(), lr=0.03, momentum=0.9, nesterov=True, weight_decay=1e-4
)
steps = 10 * len(x) // 40
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)

for step in range(steps):
    if step % 25 == 0:
        order = iter(torch.randperm(len(x)).split(40))
    rows = next(order)
    net.train()
    loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 25 == 24:
        net.eval()
        with torch.inference_mode():
            accuracy = (net(x_val).argmax(1) == y_val).float().mean().item()
        print(f"step {step + 1} loss {loss.item():.3f} val accuracy {accuracy:.3f}")
print(f"validation accuracy {accuracy:.3f}")
