"""A 1-D conv net sorts heartbeats; its batch norms have the momentum 0.99 of a Keras model.

In Keras 0.99 is how much of the old mean is kept; in PyTorch it is how much of the newest batch is
taken, so evaluation uses the statistics of the last small batch alone, and validation jumps up and
down. The place is the batch norms (bn1 to bn4).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("bn*", "model")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

BN_MOMENTUM = 0.05 if healthy else 0.99
BATCH_SIZE = 8
EPOCHS = 7


def beats(n, length=96):
    """Heartbeats of four kinds, each a sum of bumps (P, QRS, T), of varying size and place."""
    kind = torch.multinomial(torch.tensor([0.4, 0.2, 0.2, 0.2]), n, replacement=True)
    t = torch.linspace(0, 1, length)

    def bump(place, width, height):
        return height * torch.exp(-(((t - place) / width) ** 2))

    def vary(value, spread=0.12):
        return value * (1 + spread * torch.randn(n, 1))

    shift = 0.03 * torch.randn(n, 1)
    p = bump(0.25 + shift, vary(0.04), vary(0.25))
    r = bump(0.45 + shift, vary(0.02), vary(1.3)) - bump(0.49 + shift, vary(0.02), vary(0.4))
    wide = bump(0.47 + shift, vary(0.07), vary(1.3)) - bump(0.6 + shift, vary(0.06), vary(0.5))
    wave = bump(0.72 + shift, vary(0.06), vary(0.35))
    shapes = torch.stack([p + r + wave, wide, r + wave, p + r - wave])
    signal = shapes[kind, torch.arange(n)] * torch.exp(
        0.7 * torch.randn(n, 1)
    ) + 0.12 * torch.randn(n, length)
    return ((signal - signal.mean()) / signal.std()).unsqueeze(1), kind


class BeatNet(nn.Module):
    def __init__(self, momentum):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 16, 7, padding=3)
        self.bn1 = nn.BatchNorm1d(16, momentum=momentum)
        self.conv2 = nn.Conv1d(16, 24, 5, padding=2)
        self.bn2 = nn.BatchNorm1d(24, momentum=momentum)
        self.fc1 = nn.Linear(24 * 12, 48)
        self.bn3 = nn.BatchNorm1d(48, momentum=momentum)
        self.fc2 = nn.Linear(48, 32)
        self.bn4 = nn.BatchNorm1d(32, momentum=momentum)
        self.fc3 = nn.Linear(32, 4)

    def forward(self, x):
        x = F.max_pool1d(F.relu(self.bn1(self.conv1(x))), 4)
        x = F.max_pool1d(F.relu(self.bn2(self.conv2(x))), 2)
        x = F.relu(self.bn3(self.fc1(x.flatten(1))))
        x = F.relu(self.bn4(self.fc2(x)))
        return self.fc3(x)


x, y = beats(1700)
train_set, val_set = TensorDataset(x[:1300], y[:1300]), TensorDataset(x[1300:], y[1300:])
train_loader = DataLoader(train_set, BATCH_SIZE, shuffle=True, drop_last=True)
val_loader = DataLoader(val_set, 100)

net = BeatNet(BN_MOMENTUM)
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)

for epoch in range(EPOCHS):
    net.train()
    total, right = 0.0, 0
    for signal, kind in train_loader:
        optimizer.zero_grad()
        scores = net(signal)
        loss = F.cross_entropy(scores, kind)
        loss.backward()
        optimizer.step()
        total += loss.item()
        right += (scores.argmax(1) == kind).sum().item()
    schedule.step()

    net.eval()
    val_loss, val_right = 0.0, 0
    with torch.no_grad():
        for signal, kind in val_loader:
            scores = net(signal)
            val_loss += F.cross_entropy(scores, kind, reduction="sum").item()
            val_right += (scores.argmax(1) == kind).sum().item()
    print(
        f"Epoch {epoch + 1}/{EPOCHS} - loss: {total / len(train_loader):.4f}"
        f" - acc: {right / (len(train_loader) * BATCH_SIZE):.4f}"
        f" - val_loss: {val_loss / len(val_set):.4f} - val_acc: {val_right / len(val_set):.4f}"
    )
