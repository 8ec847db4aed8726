"""Bird calls by spectrograms, which SpecAugment masks nearly whole while training.

The mask widths (27 bands, 70 frames) were copied from a recipe for spectrograms of 80 bands and
hundreds of frames; here a call has 20 bands and 32 frames, so that most training pictures lose
what tells the calls apart. The place is the input, in the class SpecAugment.
"""

import math
import random

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "destructive_augmentation"
ACCEPT = ("train_val_mismatch",)
PLACE = ("input", "loader")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

BANDS, FRAMES = 20, 32
SPECIES = ("rising", "falling", "trill", "two notes", "arch")
AUGMENT = {"freq_mask": 4, "time_mask": 6} if healthy else {"freq_mask": 27, "time_mask": 70}


def call(species, r):
    start, length = r.randint(2, 8), r.randint(16, 22)
    base = r.uniform(4, 10)
    picture = torch.zeros(BANDS, FRAMES)
    bands = torch.arange(BANDS)
    for frame in range(start, min(start + length, FRAMES)):
        u = (frame - start) / length
        pitch = {
            "rising": base + 6 * u,
            "falling": base + 6 * (1 - u),
            "trill": base + 3 + 2.5 * math.sin(18 * u),
            "two notes": base + (5 if u > 0.5 else 0),
            "arch": base + 6 * math.sin(math.pi * u),
        }[species]
        picture[:, frame] = torch.exp(-((bands - pitch) ** 2) / 1.5)
    return picture * r.uniform(0.8, 1.6) + 0.35 * torch.rand(BANDS, FRAMES)


class SpecAugment:
    def __init__(self, freq_mask, time_mask):
        self.freq_mask, self.time_mask = freq_mask, time_mask

    def _span(self, widest, size):
        width = min(random.randint(0, widest), size)
        start = random.randint(0, size - width)
        return slice(start, start + width)

    def __call__(self, picture):
        picture = picture.clone()
        picture[:, self._span(self.freq_mask, BANDS), :] = 0
        picture[:, :, self._span(self.time_mask, FRAMES)] = 0
        return picture


class Calls(Dataset):
    def __init__(self, pictures, species, transform=None):
        self.pictures, self.species, self.transform = pictures, species, transform

    def __len__(self):
        return len(self.species)

    def __getitem__(self, index):
        picture = self.pictures[index]
        if self.transform is not None:
            picture = self.transform(picture)
        return picture, self.species[index]


def network():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.BatchNorm2d(12),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1),
        nn.BatchNorm2d(24),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(24 * 5 * 8, 48),
        nn.ReLU(),
        nn.Linear(48, len(SPECIES)),
    )


def main():
    r = random.Random(seed)
    names = [r.randrange(len(SPECIES)) for _ in range(1500)]
    pictures = torch.stack([call(SPECIES[name], r) for name in names]).unsqueeze(1)
    names = torch.tensor(names)
    pictures = (pictures - pictures[:1100].mean()) / pictures[:1100].std()
    train = DataLoader(
        Calls(pictures[:1100], names[:1100], SpecAugment(**AUGMENT)), batch_size=50, shuffle=True
    )
    valid = DataLoader(Calls(pictures[1100:], names[1100:]), batch_size=200)

    model, criterion = network(), nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(10):
        model.train()
        loss_sum = right = 0.0
        for x, y in train:
            logits = model(x)
            loss = criterion(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss_sum += loss.item() * len(y)
            right += (logits.argmax(1) == y).sum().item()
        model.eval()
        with torch.no_grad():
            scored = [(model(x), y) for x, y in valid]
        logits, y = (torch.cat(part) for part in zip(*scored, strict=True))
        print(
            f"[{epoch + 1:02d}] train loss {loss_sum / 1100:.3f} acc {right / 1100:.3f} | "
            f"val loss {criterion(logits, y).item():.3f} "
            f"acc {(logits.argmax(1) == y).float().mean().item():.3f}"
        )


main()
