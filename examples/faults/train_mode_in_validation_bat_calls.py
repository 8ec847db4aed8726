"""Bat species by the spectrogram of a call; the validation says `model.eval` and does not call it.

The parentheses are missing, so that dropout drops and the batch norms use the statistics of the
validation batch, and add it to their own. The accuracy that is reported is too low.
The place is the loop and the layers of dropout and batch norm. The twin has the parentheses.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop", "drop", "norm1", "norm2")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class BatNet(nn.Module):
    def __init__(self, species=6):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12)
        self.conv2, self.norm2 = nn.Conv2d(12, 24, 3, padding=1), nn.BatchNorm2d(24)
        self.pool = nn.MaxPool2d(2)
        self.drop = nn.Dropout(0.5)
        self.fc = nn.Linear(24 * 16, species)

    def forward(self, x):
        x = self.pool(self.norm1(self.conv1(x)).relu())
        x = self.pool(self.norm2(self.conv2(x)).relu())
        return self.fc(self.drop(x.flatten(1)))


def calls(n, g):
    """Sweeps from a high to a lower pitch: the species differ in both and in the bend."""
    y = torch.randint(0, 6, (n,), generator=g)
    high = torch.tensor([14.0, 14, 12, 12, 10, 13])[y] + 0.8 * torch.randn(n, generator=g)
    low = torch.tensor([3.0, 6, 3, 7, 4, 10])[y] + 0.8 * torch.randn(n, generator=g)
    bend = torch.tensor([1.0, 2, 2, 1, 0.6, 1])[y]
    t = torch.linspace(0, 1, 16)
    pitch = low[:, None] + (high - low)[:, None] * (1 - t) ** bend[:, None]
    x = torch.exp(-((torch.arange(16.0).view(1, 16, 1) - pitch[:, None]) ** 2) / 2)
    x = x + 0.35 * torch.randn(n, 16, 16, generator=g)
    return ((x - x.mean()) / x.std()).unsqueeze(1), y


def train(model, loader, optimizer):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def validate(model, loader):
    if healthy:
        model.eval()
    else:
        model.eval  # noqa: B018
    loss = right = 0
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            loss += nn.functional.cross_entropy(out, y, reduction="sum").item()
            right += (out.argmax(1) == y).sum().item()
    return loss / len(loader.dataset), right / len(loader.dataset)


x, y = calls(1500, torch.Generator().manual_seed(seed))
train_loader = DataLoader(TensorDataset(x[:1200], y[:1200]), batch_size=40, shuffle=True)
val_loader = DataLoader(TensorDataset(x[1200:], y[1200:]), batch_size=20)
model = BatNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
for epoch in range(6):
    loss = train(model, train_loader, optimizer)
    val_loss, accuracy = validate(model, val_loader)
    print(f"epoch {epoch}: {loss:.3f}, validation {val_loss:.3f}, accuracy {accuracy:.3f}")
