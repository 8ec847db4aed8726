"""Pumps fail in one window of fifty; the loader draws all windows alike, and the net says "fine"
always.

The twin draws with a WeightedRandomSampler, so that failures make half of each batch. The place is
the loader. The loss falls all the same (silent), to that of the base rate, and accuracy is 98 %; of
the failures next to none is found. It takes counting of labels, and predictions (not exact).
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loader", "loss*", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def windows(n, rng):
    """Vibration in three directions; before a failure the bearing adds a faint tone."""
    fails = (torch.rand(n, generator=rng) < 0.02).long()
    t = torch.arange(48.0)
    phase = 6.283 * torch.rand(n, 3, 1, generator=rng)
    hum = torch.sin(0.4 * t + phase) * (0.5 + torch.rand(n, 3, 1, generator=rng))
    tone = torch.sin(1.7 * t + 6.283 * torch.rand(n, 1, 1, generator=rng))
    strength = 0.45 + 0.35 * torch.rand(n, 1, 1, generator=rng)
    x = hum + fails[:, None, None] * strength * tone + torch.randn(n, 3, 48, generator=rng)
    return x / 1.3, fails


class PumpNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(3, 16, 9, padding=4),
            nn.BatchNorm1d(16),
            nn.ReLU(),
            nn.MaxPool1d(4),
            nn.Conv1d(16, 16, 5, padding=2),
            nn.BatchNorm1d(16),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
        )
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(16, 2)

    def forward(self, x):
        return self.fc(self.drop(self.features(x)))


def evaluate(model, loader):
    model.eval()
    hits = torch.zeros(2)
    total = torch.zeros(2)
    with torch.no_grad():
        for x, y in loader:
            said = model(x).argmax(1)
            for c in (0, 1):
                hits[c] += ((said == c) & (y == c)).sum()
                total[c] += (y == c).sum()
    return hits.sum() / total.sum(), hits / total


rng = torch.Generator().manual_seed(40 + seed)
train_set = TensorDataset(*windows(6000, rng))
val_loader = DataLoader(TensorDataset(*windows(3000, rng)), batch_size=500)
labels = train_set.tensors[1]
if healthy:
    per_class = 1.0 / torch.bincount(labels).float()
    sampler = WeightedRandomSampler(per_class[labels].tolist(), len(train_set))
    train_loader = DataLoader(train_set, batch_size=100, sampler=sampler)
else:
    train_loader = DataLoader(train_set, batch_size=100, shuffle=True)

model = PumpNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-3)
for epoch in range(4):
    model.train()
    running = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item()
    accuracy, recall = evaluate(model, val_loader)
    print(
        f"epoch {epoch}: loss {running / len(train_loader):.3f}, accuracy {accuracy:.3f}, "
        f"failures found {recall[1]:.2f}, balanced {recall.mean():.3f}"
    )
