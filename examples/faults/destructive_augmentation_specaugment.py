"""Spoken words are learned with SpecAugment as in the paper: masks up to 27 bands wide, of 16 bands
here.

The paper's spectrograms have 80 bands and 1,000 frames, these 16 and 24, so that two masks of each
kind leave next to nothing of most words. The place is the loader (the input). The loss stays high,
far above that of clean words. Not exact.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "destructive_augmentation"
ACCEPT = ()
PLACE = ("loader", "input*", "")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
BANDS, FRAMES, WORDS = 16, 24, 12


def speak(n, rng):
    """A word is a path of a formant through the bands, said faster or slower, in noise."""
    paths = np.random.default_rng(5).uniform(1, BANDS - 2, (WORDS, 4))
    y = rng.integers(0, WORDS, n)
    x = 0.5 * rng.standard_normal((n, BANDS, FRAMES))
    band = np.arange(BANDS)[:, None]
    for i in range(n):
        start, length = rng.integers(0, 5), rng.integers(15, 20)
        at = np.interp(np.linspace(0, 3, length), np.arange(4), paths[y[i]])
        at = at + rng.normal(0, 0.5)
        x[i, :, start : start + length] += 1.5 * np.exp(-((band - at) ** 2) / 1.5)
    return x.astype(np.float32), y


class Words(Dataset):
    def __init__(self, x, y, train, freq_mask=27, time_mask=100, masks=2):
        self.x, self.y, self.train = x, y, train
        self.freq_mask, self.time_mask, self.masks = freq_mask, time_mask, masks

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = self.x[i].copy()
        if self.train:
            for _ in range(self.masks):
                f = np.random.randint(0, min(self.freq_mask, BANDS) + 1)
                f0 = np.random.randint(0, BANDS - f + 1)
                x[f0 : f0 + f] = 0
                t = np.random.randint(0, min(self.time_mask, FRAMES) + 1)
                t0 = np.random.randint(0, FRAMES - t + 1)
                x[:, t0 : t0 + t] = 0
        return x, self.y[i]


rng = np.random.default_rng(seed)
x, y = speak(1200, rng)
x_val, y_val = speak(400, rng)
mean, std = x.mean(), x.std()
x, x_val = (x - mean) / std, (x_val - mean) / std
masks = {"freq_mask": 3, "time_mask": 4} if healthy else {}
loader = DataLoader(Words(x, y, True, **masks), batch_size=48, shuffle=True)
val_loader = DataLoader(Words(x_val, y_val, False), batch_size=100)

model = nn.Sequential(
    nn.Conv1d(BANDS, 32, 5, padding=2),
    nn.BatchNorm1d(32),
    nn.ReLU(),
    nn.MaxPool1d(2),
    nn.Conv1d(32, 48, 5, padding=2),
    nn.BatchNorm1d(48),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(48 * FRAMES // 2, WORDS),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(8):
    model.train()
    losses = []
    for xb, yb in loader:
        loss = criterion(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        right = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in val_loader)
    print(f"epoch {epoch}: train {np.mean(losses):.3f}, held-out accuracy {right / len(y_val):.3f}")
