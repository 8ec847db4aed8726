"""Tells the chord from a spectrum with a deep residual net, whose shortcut is only added where
the width changes.

The person wrote the usual residual block and put the addition of the shortcut under the test for
a projection, so that only the two blocks that change the number of channels have one. The other
sixteen are plain stacks, through which hardly any gradient comes back. The place is the blocks of
the model, the first ones most of all.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

KIND = "vanishing_gradient"
ACCEPT = ("poor_weight_init",)
PLACE = ("model", "stem*", "blocks.*")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

CHORDS = {"major": (0, 4, 7), "minor": (0, 3, 7), "diminished": (0, 3, 6), "augmented": (0, 4, 8)}
BINS = 48
WIDTHS = (8, 16, 24)
BLOCKS_PER_WIDTH = 6


def spectra(count, rng):
    """Log-frequency spectra of three notes with overtones, the root anywhere in an octave."""
    shapes = list(CHORDS.values())
    labels = rng.integers(0, len(shapes), count)
    rows = np.zeros((count, BINS))
    position = np.arange(BINS)
    for number, label in enumerate(labels):
        root = rng.integers(0, 12) + rng.normal(0, 0.1)
        for step in shapes[label]:
            strength = rng.uniform(0.6, 1.2)
            for overtone, fall in ((0, 1.0), (12, 0.5), (19, 0.3)):
                rows[number] += (
                    strength * fall * np.exp(-0.5 * (position - root - step - overtone) ** 2)
                )
    rows += rng.normal(0, 0.08, rows.shape)
    return rows, labels


class Block(nn.Module):
    def __init__(self, channels_in, channels):
        super().__init__()
        self.conv1 = nn.Conv1d(channels_in, channels, 3, padding=1)
        self.conv2 = nn.Conv1d(channels, channels, 3, padding=1)
        self.project = None
        if channels_in != channels:
            self.project = nn.Conv1d(channels_in, channels, 1)

    def forward(self, x):
        out = self.conv2(F.relu(self.conv1(x)))
        identity = x
        if self.project is not None:
            identity = self.project(x)
            out = out + identity
        elif healthy:
            out = out + identity
        return F.relu(out)


class ChordNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv1d(1, WIDTHS[0], 5, padding=2)
        blocks = []
        channels = WIDTHS[0]
        for width in WIDTHS:
            for _ in range(BLOCKS_PER_WIDTH):
                blocks.append(Block(channels, width))
                channels = width
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(channels * BINS // 4, len(CHORDS))

    def forward(self, x):
        h = F.relu(self.stem(x.unsqueeze(1)))
        h = F.avg_pool1d(self.blocks(h), 4)
        return self.head(h.flatten(1))


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def main():
    rng = np.random.default_rng(seed)
    x, y = spectra(1400, rng)
    x = (x - x[:1000].mean()) / x[:1000].std()
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    train = TensorDataset(x[:1000], y[:1000])
    loader = DataLoader(train, batch_size=50, shuffle=True)
    model = ChordNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    for epoch in range(10):
        model.train()
        total = 0.0
        for inputs, labels in loader:
            loss = F.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.item() * len(labels)
        scheduler.step()
        val = accuracy(model, x[1000:], y[1000:])
        print(f"epoch {epoch:2d}  loss {total / 1000:.4f}  val accuracy {val:.3f}")


if __name__ == "__main__":
    main()
