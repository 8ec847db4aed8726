"""Hand-written meter readings from scanned files; the files and the labels are in two orders.

The labels are a column in the order of the file numbers. The files are listed by sorted(), which
sorts their names as text: 0, 1, 10, 100, 1000, 1001, ... So nearly every picture has another's
label, and the network learns nothing but the base rate (later, its training part by heart). The
place is the labels. The twin sorts by number.
"""

import io
import os

import numpy as np
import torch
from data import arguments
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

KIND = "label_misalignment"
ACCEPT = ()
PLACE = ("label*", "loss*", "input*", "loader")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def scan_archive():
    """An archive as it came from the scanner: file name to bytes, and the labels' column."""
    bunch = load_digits()
    order = np.random.default_rng(seed).permutation(len(bunch.target))
    archive = {}
    for number, i in enumerate(order):
        buffer = io.BytesIO()
        np.save(buffer, bunch.images[i].astype(np.uint8))
        archive[f"{number}.npy"] = buffer.getvalue()
    return archive, bunch.target[order]


class MeterDigits(Dataset):
    def __init__(self, archive, labels):
        by_number = lambda name: int(os.path.splitext(name)[0])  # noqa: E731
        names = sorted(archive, key=by_number) if healthy else sorted(archive)
        self.images = [np.load(io.BytesIO(archive[name])) for name in names]
        self.labels = labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = torch.from_numpy(self.images[i]).float().unsqueeze(0)
        return image / 8 - 1, int(self.labels[i])


class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc1 = nn.Linear(32 * 2 * 2, 64)
        self.fc2 = nn.Linear(64, 10)
        self.drop = nn.Dropout(0.25)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = torch.max_pool2d(torch.relu(self.conv2(x)), 2)
        x = self.drop(x.flatten(1))
        return self.fc2(torch.relu(self.fc1(x)))


dataset = MeterDigits(*scan_archive())
shuffled = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(seed)).tolist()
train_loader = DataLoader(Subset(dataset, shuffled[:1350]), batch_size=32, shuffle=True)
val_loader = DataLoader(Subset(dataset, shuffled[1350:]), batch_size=128)

model = DigitNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(12):
    model.train()
    for images, targets in train_loader:
        optimizer.zero_grad()
        loss = loss_fn(model(images), targets)
        loss.backward()
        optimizer.step()
    model.eval()
    correct, val_loss = 0, 0.0
    with torch.no_grad():
        for images, targets in val_loader:
            logits = model(images)
            val_loss += loss_fn(logits, targets).item() / len(val_loader)
            correct += (logits.argmax(1) == targets).sum().item()
    print(
        f"epoch {epoch + 1:2d} train {loss.item():.3f} val {val_loss:.3f} "
        f"accuracy {correct / len(val_loader.dataset):.3f}"
    )
