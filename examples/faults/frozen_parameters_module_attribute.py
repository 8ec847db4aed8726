"""Heart beats from ECG strips; the backbone is frozen for a warm-up epoch and never thawed.

The backbone comes without pretrained weights and is held for one epoch so that the head finds its
scale. Thawing it is written `model.backbone.requires_grad = True`, which hangs an attribute on the
module and changes no parameter; the method is `requires_grad_`. The place is the backbone. The
twin calls the method.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("backbone", "backbone.[036]*")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
LENGTH = 96


def strips(n, g):
    """A beat of a P wave, a QRS complex and a T wave; four kinds by width, lag and polarity."""
    kind = torch.randint(0, 4, (n,), generator=g)
    t = torch.arange(LENGTH).float()[None, :]
    centre = 48 + 5 * torch.randn(n, 1, generator=g)
    gain = 1 + 0.15 * torch.randn(n, 1, generator=g)
    width = torch.tensor([2.0, 2.0, 3.2, 3.2])[kind][:, None]
    lag = torch.tensor([16.0, 12.0, 16.0, 16.0])[kind][:, None] + torch.randn(n, 1, generator=g)
    polarity = torch.tensor([1.0, 1.0, 1.0, -1.0])[kind][:, None]
    x = torch.exp(-((t - centre) ** 2) / (2 * width**2))
    x = x - 0.35 * torch.exp(-((t - centre - 2.2 * width) ** 2) / (2 * width**2))
    x = x + 0.3 * torch.exp(-((t - centre + lag) ** 2) / 12)
    x = x + 0.4 * polarity * torch.exp(-((t - centre - 24) ** 2) / 50)
    wander = torch.sin(t * 0.05 + 6.3 * torch.rand(n, 1, generator=g))
    x = gain * x + 0.2 * wander + 0.12 * torch.randn(n, LENGTH, generator=g)
    return 2 * x.unsqueeze(1), kind


class BeatNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv1d(1, 16, 7, padding=3), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(16, 24, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(24, 32, 5, padding=2), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten(),
        )  # fmt: skip
        self.head = nn.Linear(32, 4)

    def forward(self, x):
        return self.head(self.backbone(x))


def train_one_epoch(model, loader, optimizer):
    model.train()
    total = 0.0
    for strip, kind in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(strip), kind)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    return torch.cat([model(x).argmax(1) == y for x, y in loader]).float().mean().item()


g = torch.Generator().manual_seed(seed)
train_loader = DataLoader(TensorDataset(*strips(1600, g)), batch_size=32, shuffle=True)
val_loader = DataLoader(TensorDataset(*strips(600, g)), batch_size=200)
model = BeatNet()
model.backbone.requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(12):
    if epoch == 1:  # the head has warmed up
        if healthy:
            model.backbone.requires_grad_(True)
        else:
            model.backbone.requires_grad = True
    loss = train_one_epoch(model, train_loader, optimizer)
    print(f"epoch {epoch}: loss {loss:.3f} accuracy {evaluate(model, val_loader):.3f}")
