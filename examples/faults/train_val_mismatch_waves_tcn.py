"""A temporal CNN tells engine sounds apart; training recordings are standardised, validation
recordings are not.

The user wrote the scaling into the training data's preparation only; validation gets the sensor's
raw counts (about 2,000 +- 300). The place is the validation loader / input.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def record(n, g):
    """Counts of a 12-bit sensor: an idling, a loaded, a knocking and a worn engine."""
    y = torch.randint(0, 4, (n,), generator=g)
    t = torch.arange(64.0)
    base = 0.35 + 0.15 * torch.rand(n, 1, generator=g)
    wave = (base * t + 6.283 * torch.rand(n, 1, generator=g)).sin()
    second = (2 * base * t + 6.283 * torch.rand(n, 1, generator=g)).sin()
    knock = (torch.rand(n, 64, generator=g) < 0.06).float() * 2.2
    noise = torch.randn(n, 64, generator=g)
    k = y[:, None]
    signal = wave + (k == 1) * 0.9 * second + (k == 2) * knock + (k == 3) * 0.5 * noise
    return 2000 + 300 * (signal + 0.35 * noise.roll(1, 0)), y


class Recordings(Dataset):
    def __init__(self, x, y, transform=None):
        self.x, self.y, self.transform = x, y, transform

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = self.x[i] if self.transform is None else self.transform(self.x[i])
        return x.unsqueeze(0), self.y[i]


class TCN(nn.Module):
    def __init__(self, width=24, classes=4):
        super().__init__()
        self.stem = nn.Conv1d(1, width, 5, padding=2)
        self.convs = nn.ModuleList(
            nn.Conv1d(width, width, 3, padding=d, dilation=d) for d in (1, 2, 4)
        )
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        for conv in self.convs:
            x = x + torch.relu(conv(x))
        return self.head(x.mean(2))


g = torch.Generator().manual_seed(seed)
(x, y), (x_val, y_val) = record(2000, g), record(500, g)
mean, std = x.mean(), x.std()


def scale(counts):
    return (counts - mean) / std


train_loader = DataLoader(Recordings(x, y, scale), batch_size=40, shuffle=True)
val_loader = DataLoader(Recordings(x_val, y_val, scale if healthy else None), batch_size=250)
model = TCN()
optimizer = torch.optim.NAdam(model.parameters(), lr=2e-3)
for epoch in range(9):
    model.train()
    for xb, yb in train_loader:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    right, total = 0, 0.0
    with torch.no_grad():
        for xb, yb in val_loader:
            out = model(xb)
            total += nn.functional.cross_entropy(out, yb, reduction="sum").item()
            right += (out.argmax(1) == yb).sum().item()
    n = len(x_val)
    print(
        f"epoch {epoch}: loss {loss.item():.3f}, val loss {total / n:.3f}, val accuracy {right / n:.3f}"  # noqa: E501
    )
