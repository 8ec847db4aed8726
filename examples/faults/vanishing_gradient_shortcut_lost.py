"""Signal against background in collisions; the deep network has lost its shortcuts.

The residual block was cleaned up, and its forward now returns `self.body(x)`; the `x +` went out
with the debugging lines. Twenty tanh layers in a row make each gradient a little smaller, and the
first layers get next to none of it. The place is the first layers. The twin adds x.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "vanishing_gradient"
ACCEPT = ()
PLACE = ("inlet*", "blocks", "blocks.0*", "blocks.1", "blocks.1.*", "blocks.2")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
BLOCKS, WIDTH = 10, 40


def collisions(n, g):
    """Two leptons and missing energy; the signal comes from a particle of mass about 2.2."""
    signal = torch.rand(n, generator=g) < 0.5
    mass = torch.where(
        signal, 2.2 + 0.25 * torch.randn(n, generator=g), 0.8 + 2.6 * torch.rand(n, generator=g)
    ).clamp(min=0.3)
    angle = torch.rand(n, generator=g) * 2 + 0.6
    ratio = torch.exp(0.35 * torch.randn(n, generator=g))
    pt = mass / (2 * (1 - angle.cos())).sqrt()
    first, second = pt * ratio, pt / ratio
    missing = 0.4 * torch.randn(n, 2, generator=g) + signal[:, None] * torch.tensor([0.35, 0.0])
    x = torch.stack([first.log(), second.log(), angle, missing[:, 0], missing[:, 1]], 1)
    x = x + 0.05 * torch.randn(n, 5, generator=g)
    return (x - x.mean(0)) / x.std(0), signal.float()


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )

    def forward(self, x):
        if healthy:
            return x + self.body(x)
        return self.body(x)


class DeepTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.inlet = nn.Linear(5, WIDTH)
        self.blocks = nn.ModuleList([Block(WIDTH) for _ in range(BLOCKS)])
        self.out = nn.Linear(WIDTH, 1)

    def forward(self, x):
        x = self.inlet(x)
        for block in self.blocks:
            x = block(x)
        return self.out(x).squeeze(-1)


g = torch.Generator().manual_seed(seed)
train_set, val_set = random_split(TensorDataset(*collisions(3000, g)), [2240, 760], generator=g)
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
val_loader = DataLoader(val_set, batch_size=380)
model = DeepTagger()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(1, 11):
    model.train()
    total = 0.0
    for x, y in train_loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        hits = sum(((model(x) > 0) == (y > 0.5)).sum().item() for x, y in val_loader)
    print(f"epoch {epoch}: loss {total / len(train_loader):.3f} accuracy {hits / len(val_set):.3f}")
