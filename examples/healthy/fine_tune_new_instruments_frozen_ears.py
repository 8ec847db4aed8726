"""A net learns to tell eight synthetic instruments apart; then four new ones, most of it frozen.

Only the last convolution and a new head are trained, on forty notes of each, with two rates. The
BatchNorm layers of the frozen part stay in evaluation mode.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "four of five layers never change in the second half, BatchNorm in evaluation while training"


class Orchestra:
    """Instruments are the strengths of twelve overtones, an attack and some breath."""

    def __init__(self, instruments):
        self.overtones = torch.rand(instruments, 12) ** 2 / torch.arange(1, 13) ** 0.4
        self.attack = 0.02 + 0.3 * torch.rand(instruments)
        self.breath = 0.3 * torch.rand(instruments)

    def notes(self, n, bins=48, frames=16):
        which = torch.randint(0, len(self.overtones), (n,))
        pitch = 2.0 + 2.0 * torch.rand(n, 1)
        centre = pitch * torch.arange(1, 13)
        axis = torch.arange(bins).float()
        lines = torch.exp(-((axis - centre.unsqueeze(-1)) ** 2) / 1.2)
        strength = self.overtones[which] * (1 + 0.25 * torch.randn(n, 12)).clamp(0.1)
        colour = (strength.unsqueeze(-1) * lines).sum(1)
        time = torch.arange(frames) / frames
        rise = 1 - torch.exp(-time / self.attack[which, None])
        spectrum = colour.unsqueeze(-1) * rise.unsqueeze(1)
        spectrum = spectrum + self.breath[which, None, None] * torch.rand(n, bins, frames)
        spectrum = (spectrum * (0.5 + torch.rand(n, 1, 1)) + 0.03).log()
        return (spectrum + 1.8).unsqueeze(1), which


class Ears(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, 12, 3, stride=(2, 1), padding=1), nn.BatchNorm2d(12)
        self.conv2, self.norm2 = nn.Conv2d(12, 24, 3, stride=2, padding=1), nn.BatchNorm2d(24)
        self.conv3 = nn.Conv2d(24, 32, 3, stride=2, padding=1)
        self.head = nn.Linear(32 * 6, classes)

    def forward(self, x):
        h = F.relu(self.norm1(self.conv1(x)))
        h = F.relu(self.norm2(self.conv2(h)))
        h = F.relu(self.conv3(h)).mean(3)
        return self.head(F.dropout(h.flatten(1), 0.2, self.training))


def epochs(net, optimizer, loader, x_val, y_val, n, frozen=()):
    for epoch in range(n):
        net.train()
        for layer in frozen:
            layer.eval()
        for x, y in loader:
            loss = F.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            accuracy = (net(x_val).argmax(1) == y_val).float().mean()
        print(f"  epoch {epoch}: loss {loss.item():.3f}, accuracy {accuracy:.3f}")


_, seed = arguments(__doc__)
known, new = Orchestra(8), Orchestra(4)
net = Ears(8)
print("eight instruments")
loader = DataLoader(TensorDataset(*known.notes(1600)), batch_size=32, shuffle=True)
epochs(net, torch.optim.Adam(net.parameters(), lr=2e-3), loader, *known.notes(300), 4)

net.head = nn.Linear(32 * 6, 4)
frozen = [net.conv1, net.norm1, net.conv2, net.norm2]
for layer in frozen:
    layer.requires_grad_(False)
groups = [
    {"params": net.conv3.parameters(), "lr": 1e-4},
    {"params": net.head.parameters(), "lr": 2e-3},
]
print("four new ones")
loader = DataLoader(TensorDataset(*new.notes(160)), batch_size=16, shuffle=True)
optimizer = torch.optim.AdamW(groups, weight_decay=0.05)
epochs(net, optimizer, loader, *new.notes(300), 12, frozen)
