"""A CNN looks for opacities in X-rays whose pixels are the detector's 12-bit counts, 0 to 4095.

The pictures are cast to float and used as they are, so the first logits are in the hundreds and the
training spends its time on repairing them. The twin takes the mean off and divides by the spread.
The place is the input: the __getitem__ of the Dataset.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input", "loader", "features.0", "features.0.weight")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SIDE = 20


def expose(n, r):
    y, x = np.mgrid[-1 : 1 : SIDE * 1j, -1 : 1 : SIDE * 1j]
    scans, labels = np.empty((n, SIDE, SIDE), dtype=np.uint16), r.integers(0, 2, n)
    for i in range(n):
        lungs = sum(np.exp(-((x - s) ** 2) / 0.1 - (y**2) / 0.5) for s in (-0.5, 0.5))
        dose = r.uniform(0.8, 1.2)
        density = 0.55 - 0.35 * lungs + 0.06 * np.sin(12 * y + r.uniform(0, 6))
        if labels[i]:
            cx, cy = r.choice([-0.5, 0.5]) + r.normal(0, 0.1), r.uniform(-0.5, 0.5)
            size = r.uniform(0.02, 0.05)
            density += r.uniform(0.25, 0.45) * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / size)
        counts = 4095 * (dose * density + r.normal(0, 0.05, x.shape))
        scans[i] = counts.clip(0, 4095).astype(np.uint16)
    return scans, labels


class ChestXray(Dataset):
    def __init__(self, scans, labels, mean, std):
        self.scans, self.labels = scans, torch.tensor(labels)
        self.mean, self.std = mean, std

    def __len__(self):
        return len(self.scans)

    def __getitem__(self, i):
        pixels = torch.from_numpy(self.scans[i].astype(np.float32)).unsqueeze(0)
        if healthy:
            pixels = (pixels - self.mean) / self.std
        return pixels, self.labels[i]


class XrayNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.classifier = nn.Sequential(nn.Linear(16 * 25, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        return np.mean([(model(x).argmax(1) == y).float().mean().item() for x, y in loader])


def main():
    r = np.random.default_rng(seed + 51)
    scans, labels = expose(1600, r)
    mean, std = scans[:1200].mean(), scans[:1200].std()
    train_loader = DataLoader(ChestXray(scans[:1200], labels[:1200], mean, std), 32, shuffle=True)
    valid_loader = DataLoader(ChestXray(scans[1200:], labels[1200:], mean, std), 200)
    model = XrayNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(10):
        model.train()
        running = 0.0
        for pixels, label in train_loader:
            loss = F.cross_entropy(model(pixels), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(f"epoch {epoch}: running loss {running / len(train_loader):.3f}, "
              f"valid accuracy {evaluate(model, valid_loader):.3f}")  # fmt: skip


main()
