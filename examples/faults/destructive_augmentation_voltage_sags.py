"""A network that sorts mains-voltage windows into sag, normal and swell is fed windows whose gain
is drawn at random between 0.3 and 2.2.

The random gain came from an audio notebook, where loudness means nothing; here the height of the
wave is the label. Training gets little more than half right, validation windows are judged badly.
The place is the augmentation in the training dataset, that is the input.
"""

import math

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

LENGTH = 64
NAMES = ("sag", "normal", "swell")


def record(n):
    """Two periods of mains voltage with harmonics; the height makes the class."""
    label = torch.randint(0, 3, (n,))
    low, high = torch.tensor([0.55, 0.93, 1.12]), torch.tensor([0.88, 1.07, 1.4])
    height = low[label] + (high - low)[label] * torch.rand(n)
    t = torch.linspace(0, 4 * math.pi, LENGTH)
    phase = 2 * math.pi * torch.rand(n, 1)
    wave = torch.sin(t + phase) + 0.08 * torch.rand(n, 1) * torch.sin(3 * (t + phase))
    return height[:, None] * wave + 0.05 * torch.randn(n, LENGTH), label


class VoltageWindows(Dataset):
    def __init__(self, waves, labels, augment):
        self.waves, self.labels, self.augment = waves, labels, augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        wave = self.waves[i]
        if self.augment:
            wave = wave.roll(int(torch.randint(0, LENGTH // 2, (1,))))
            if not healthy:
                wave = wave * (0.3 + 1.9 * torch.rand(1))
            wave = wave + 0.02 * torch.randn(LENGTH)
        return wave.unsqueeze(0), self.labels[i]


class SagNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(1, 16, 9, stride=2, padding=4),
            nn.BatchNorm1d(16),
            nn.ReLU(),
            nn.Conv1d(16, 24, 5, stride=2, padding=2),
            nn.ReLU(),
        )
        self.classifier = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, x):
        return self.classifier(self.conv(x).mean(-1))


def run_epoch(model, loader, criterion, optimizer=None):
    model.train(optimizer is not None)
    total, right = 0.0, 0
    with torch.set_grad_enabled(optimizer is not None):
        for waves, labels in loader:
            scores = model(waves)
            loss = criterion(scores, labels)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(labels)
            right += (scores.argmax(1) == labels).sum().item()
    return total / len(loader.dataset), right / len(loader.dataset)


waves, labels = record(2000)
scale = waves[:1500].std()
train_set = VoltageWindows(waves[:1500] / scale, labels[:1500], augment=True)
val_set = VoltageWindows(waves[1500:] / scale, labels[1500:], augment=False)
train_loader = DataLoader(train_set, batch_size=50, shuffle=True)
val_loader = DataLoader(val_set, batch_size=250)

net = SagNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)
for epoch in range(1, 13):
    train_loss, train_acc = run_epoch(net, train_loader, criterion, optimizer)
    scheduler.step()
    val_loss, val_acc = run_epoch(net, val_loader, criterion)
    if epoch % 4 == 0:
        print(
            f"Epoch {epoch:2d} | train {train_loss:.3f} acc {train_acc:.3f} "
            f"| val {val_loss:.3f} acc {val_acc:.3f}"
        )
