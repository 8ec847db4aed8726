"""A small MLP-Mixer tells crops from a year of satellite readings, at a rate two scaling rules
low.

The code comes from a paper that trains with batches of 4096 and gives a BASE rate, to be
multiplied with batch / 256. Here the batch is 32, so the base of 1.5e-4 becomes 1.9e-5, and after
all epochs the model has hardly left its start. The place is the optimizer. The twin sets the rate
itself (`lr`), which the script takes as it is.
"""

from types import SimpleNamespace

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

args = SimpleNamespace(blr=1.5e-4, lr=2e-3 if healthy else None, batch_size=32, epochs=6, width=32)
if args.lr is None:
    args.lr = args.blr * args.batch_size / 256


def seasons(n, dates=24, bands=6, crops=6):
    """Six bands on 24 dates; a crop has its own time of greening, height and harvest."""
    y = torch.randint(0, crops, (n,))
    t = torch.linspace(0, 1, dates)
    start = torch.tensor([0.15, 0.25, 0.35, 0.25, 0.45, 0.15])[y, None] + 0.03 * torch.randn(n, 1)
    end = torch.tensor([0.55, 0.75, 0.85, 0.55, 0.8, 0.9])[y, None] + 0.03 * torch.randn(n, 1)
    green = torch.sigmoid((t - start) * 25) * torch.sigmoid((end - t) * 25)
    band = torch.tensor([0.2, -0.3, -0.6, 1.0, 0.7, -0.4])
    x = (
        green[..., None] * band * 2
        + 0.3 * torch.randn(n, 1, bands)
        + 0.5 * torch.randn(n, dates, bands)
    )
    cloudy = torch.rand(n, dates, 1) < 0.15
    return torch.where(cloudy, torch.full_like(x, 1.5), x), y


class MixerBlock(nn.Module):
    def __init__(self, dates, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.over_time = nn.Sequential(nn.Linear(dates, 32), nn.GELU(), nn.Linear(32, dates))
        self.over_bands = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        x = x + self.over_time(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.over_bands(self.norm2(x))


class CropMixer(nn.Module):
    def __init__(self, width, dates=24, bands=6, crops=6):
        super().__init__()
        self.stem = nn.Linear(bands, width)
        self.blocks = nn.Sequential(*[MixerBlock(dates, width) for _ in range(2)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, crops)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.stem(x))).mean(1))


train_loader = DataLoader(TensorDataset(*seasons(2400)), args.batch_size, shuffle=True)
val_loader = DataLoader(TensorDataset(*seasons(480)), 240)
model = CropMixer(args.width)
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.05)
criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
print(f"actual lr: {args.lr:.2e}")

for epoch in range(args.epochs):
    model.train()
    total = 0.0
    for x, y in train_loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train_loader)
    model.eval()
    with torch.no_grad():
        hits = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)
    print(f"epoch {epoch} loss {total:.3f} val accuracy {hits / 480:.3f}")
