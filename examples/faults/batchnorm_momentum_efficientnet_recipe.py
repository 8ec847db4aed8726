"""Heartbeats by a 1-D CNN; the momentum of its normalisation comes from a recipe of 350 epochs.

EfficientNet's moving averages decay by 0.9997 a step, in PyTorch's terms a momentum of 0.0003,
over a few hundred thousand steps. Here are 500: the running statistics are still nine tenths zeros
and ones when validation uses them. The place is the model's BatchNorm layers. The twin has
PyTorch's default, 0.1.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("loop", "features.1", "features.5", "features.9")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

BN = {"eps": 1e-3, "momentum": 0.1 if healthy else 1 - 0.9997}


def beats(n, seed, length=96):
    g = torch.Generator().manual_seed(seed)
    kind = torch.randint(4, (n,), generator=g)
    t = torch.linspace(-1, 1, length)

    def bump(centre, width, height):
        return height * torch.exp(-(((t - centre) / width) ** 2))

    def jitter(scale):
        return scale * torch.randn(n, 1, generator=g)

    width = torch.where(kind == 1, 0.16, 0.06)[:, None]
    x = bump(jitter(0.05), width, 1 + jitter(0.15))
    x = x + bump(-0.45 + jitter(0.05), 0.1, torch.where(kind == 2, 0.0, 0.25)[:, None])
    x = x + bump(0.5 + jitter(0.05), 0.14, torch.where(kind == 3, -0.3, 0.35)[:, None])
    x = (
        x
        + 0.3 * torch.sin(2 * t + 3 * torch.rand(n, 1, generator=g))
        + 0.12 * torch.randn(n, length, generator=g)
    )
    return TensorDataset(x[:, None], kind)


def block(inputs, outputs):
    return [
        nn.Conv1d(inputs, outputs, 7, padding=3, bias=False),
        nn.BatchNorm1d(outputs, **BN),
        nn.ReLU(),
        nn.MaxPool1d(2),
    ]


class HeartNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            *block(1, 12), *block(12, 24), *block(24, 32), nn.AdaptiveAvgPool1d(1)
        )
        self.classifier = nn.Linear(32, 4)

    def forward(self, beat):
        return self.classifier(self.features(beat).flatten(1))


train_loader = DataLoader(beats(1600, seed), batch_size=32, shuffle=True)
val_loader = DataLoader(beats(400, seed + 5000), batch_size=100)
model = HeartNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
criterion = nn.CrossEntropyLoss()

for epoch in range(10):
    model.train()
    total = 0.0
    for beat, kind in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(beat), kind)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train_loader)
    schedule.step()
    model.eval()
    with torch.no_grad():
        right = val = 0.0
        for beat, kind in val_loader:
            logits = model(beat)
            val += criterion(logits, kind).item() / len(val_loader)
            right += (logits.argmax(1) == kind).sum().item()
    print(f"epoch {epoch} train {total:.4f} val {val:.4f} accuracy {right / 400:.3f}")
