"""Pixels of a hyperspectral image are sorted into crops; validation stays in training mode.

torch.no_grad() is there, but not eval(). Dropout and the statistics of each batch stay on, and
batch norm goes on learning from validation pixels, so the score is too low and shaky. The place is
the loop (validation).
"""

import torch
from data import arguments
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop", "model", "*drop*", "*bn*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

BANDS = 60
CROPS = ["corn", "soy", "wheat", "oats", "alfalfa", "woods", "grass"]


def scene(n):
    """Spectra of crops: a few absorption bands each, light that varies, and mixed pixels."""
    g = torch.Generator().manual_seed(60 + seed)
    band = torch.linspace(0, 1, BANDS)
    centre = torch.rand(len(CROPS), 5, 1, generator=g)
    width = 0.03 + 0.08 * torch.rand(len(CROPS), 5, 1, generator=g)
    depth = 0.35 * torch.rand(len(CROPS), 5, 1, generator=g)
    pure = 0.7 - (depth * torch.exp(-(((band - centre) / width) ** 2))).sum(1)
    crop = torch.randint(0, len(CROPS), (n,), generator=g)
    other = torch.randint(0, len(CROPS), (n,), generator=g)
    mixed = 0.5 * torch.rand(n, 1, generator=g)
    light = 1 + 0.15 * torch.randn(n, 1, generator=g)
    spectrum = light * ((1 - mixed) * pure[crop] + mixed * pure[other])
    return spectrum + 0.12 * torch.randn(n, BANDS, generator=g), crop


class SpectralNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv = nn.Conv1d(1, 20, 9, stride=3)
        self.bn = nn.BatchNorm1d(20)
        self.fc1 = nn.Linear(20 * 18, 48)
        self.drop = nn.Dropout(0.5)
        self.fc2 = nn.Linear(48, classes)

    def forward(self, x):
        x = torch.relu(self.bn(self.conv(x.unsqueeze(1))))
        x = self.drop(torch.relu(self.fc1(x.flatten(1))))
        return self.fc2(x)


def val(net, loader, criterion):
    if healthy:
        net.eval()
    accuracy, loss, total = 0, 0.0, 0
    for pixels, target in loader:
        with torch.no_grad():
            output = net(pixels)
            loss += criterion(output, target).item() * len(target)
            accuracy += (output.argmax(dim=1) == target).sum().item()
            total += len(target)
    return loss / total, accuracy / total


spectra, crop = scene(2800)
train_x, train_y = spectra[:2200], crop[:2200]
val_x, val_y = spectra[2200:], crop[2200:]
mean, std = train_x.mean(0), train_x.std(0)
train_x, val_x = (train_x - mean) / std, (val_x - mean) / std
train_loader = DataLoader(TensorDataset(train_x, train_y), batch_size=50, shuffle=True)
val_loader = DataLoader(TensorDataset(val_x, val_y), batch_size=10)

net = SpectralNet(len(CROPS))
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-5)
losses, best = [], 0.0

for e in range(1, 11):
    net.train()
    for pixels, target in train_loader:
        optimizer.zero_grad()
        loss = criterion(net(pixels), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    val_loss, val_acc = val(net, val_loader, criterion)
    best = max(best, val_acc)
    recent = losses[-len(train_loader) :]
    print(
        f"Train (epoch {e}/10) loss {sum(recent) / len(recent):.4f} | "
        f"val loss {val_loss:.4f} acc {val_acc:.4f} (best {best:.4f})"
    )

net.eval()
with torch.no_grad():
    final = (net(val_x).argmax(1) == val_y).float().mean().item()
print(f"the same pixels, the way the net will be used: {final:.4f}")
