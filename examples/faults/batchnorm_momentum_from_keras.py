"""Cell types from gene counts; the batch norms' momentum of 0.99 is copied from Keras.

In Keras momentum is the share of the old average that is kept, in PyTorch that of the new batch
that is taken. With 0.99 the running statistics are simply those of the last batch, here of eight
cells: training goes well, and every evaluation gets another draw. The place is the batch norms.
The twin has 0.01 for it, which is what Keras means by 0.99.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("stem", "stem.1*", "hidden", "hidden.1*", "hidden2", "hidden2.1*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
GENES, TYPES = 60, 8
BN = {"momentum": 0.01 if healthy else 0.99, "eps": 1e-3}  # as in the reference implementation


def cells(n, g):
    """Counts by gene programmes: a type is a mixture of six programmes; depth varies by cell."""
    rule = torch.Generator().manual_seed(40 + seed)
    programmes = torch.randn(6, GENES, generator=rule)
    mixture = 0.55 * torch.randn(TYPES, 6, generator=rule)
    kind = torch.randint(0, TYPES, (n,), generator=g)
    active = mixture[kind] + 0.28 * torch.randn(n, 6, generator=g)
    depth = 0.3 * torch.randn(n, 1, generator=g)
    rate = torch.exp(0.5 + depth + 0.6 * active @ programmes)
    return torch.log1p(torch.poisson(rate.clamp(max=200), generator=g)), kind


class CellNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Linear(GENES, width, bias=False), nn.BatchNorm1d(width, **BN), nn.ReLU()
        )
        self.hidden = nn.Sequential(
            nn.Linear(width, width, bias=False), nn.BatchNorm1d(width, **BN), nn.ReLU()
        )
        self.hidden2 = nn.Sequential(
            nn.Linear(width, width, bias=False), nn.BatchNorm1d(width, **BN), nn.ReLU()
        )
        self.out = nn.Linear(width, TYPES)

    def forward(self, x):
        return self.out(self.hidden2(self.hidden(self.stem(x))))


def evaluate(model, loader, criterion):
    model.eval()
    loss = hits = n = 0
    with torch.no_grad():
        for x, y in loader:
            logits = model(x)
            loss += criterion(logits, y).item() * len(y)
            hits += (logits.argmax(1) == y).sum().item()
            n += len(y)
    return loss / n, hits / n


g = torch.Generator().manual_seed(seed)
train_set, val_set = TensorDataset(*cells(1200, g)), TensorDataset(*cells(500, g))
train_loader = DataLoader(train_set, batch_size=8, shuffle=True, drop_last=True)
val_loader = DataLoader(val_set, batch_size=250)
model = CellNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, weight_decay=1e-4)

for epoch in range(1, 8 + 1):
    model.train()
    running = 0.0
    for counts, kind in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(counts), kind)
        loss.backward()
        optimizer.step()
        running += loss.item()
    val_loss, accuracy = evaluate(model, val_loader, criterion)
    print(
        f"epoch {epoch} train {running / len(train_loader):.3f} "
        f"validation {val_loss:.3f} accuracy {accuracy:.3f}"
    )
