"""Sorting stamps cut from a sky survey; an empty stamp has features of length zero to divide by.

Stamps at the rim of the detector are filled with zeros. Their features are zero too, for the
convolutions have no bias, and the cosine classifier divides them by their length: 0 / 0. One such
stamp in a batch turns the loss and, one step later, all weights into NaN.
The place is the scaling of the features in front of the classifier. The twin uses `F.normalize`,
which divides by at least 1e-12.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "division_by_zero_norm"
ACCEPT = ()
PLACE = ("classifier", "output*", "features")
SILENT = False
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)

CLASSES = ("star", "spiral", "elliptical", "artefact")
SIZE = 12


class Stamps(Dataset):
    def __init__(self, n, generator):
        g = generator
        axis = torch.linspace(-1, 1, SIZE)
        gy, gx = torch.meshgrid(axis, axis, indexing="ij")
        self.label = torch.randint(0, 4, (n,), generator=g)
        shift = 0.3 * (torch.rand(n, 2, 1, 1, generator=g) - 0.5)
        turn = 3.1416 * torch.rand(n, 1, 1, generator=g)
        dx, dy = gx - shift[:, 0], gy - shift[:, 1]
        u, v = dx * turn.cos() + dy * turn.sin(), dy * turn.cos() - dx * turn.sin()
        r = (u**2 + v**2).sqrt()
        kinds = torch.stack(
            [
                torch.exp(-((r / 0.2) ** 2)),
                torch.exp(-r / 0.5) * (1 + torch.cos(2 * torch.atan2(v, u) + 6 * r)) / 1.3,
                torch.exp(-((u / 0.75) ** 2 + (v / 0.3) ** 2)),
                torch.exp(-((v / 0.1) ** 2)),
            ]
        )
        bright = 0.5 + torch.rand(n, 1, 1, generator=g)
        flux = bright * kinds[self.label, torch.arange(n)]
        flux = flux + 0.12 * torch.randn(flux.shape, generator=g)
        outside = torch.randperm(n, generator=g)[: n // 1000]
        flux[outside] = 0.0
        self.flux = flux.unsqueeze(1)

    def __len__(self):
        return len(self.label)

    def __getitem__(self, index):
        return self.flux[index], self.label[index]


class CosineNet(nn.Module):
    def __init__(self, width=16, scale=12.0):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1, bias=False),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1, bias=False),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )
        self.classifier = nn.Linear(8 * width, len(CLASSES), bias=False)
        self.scale = scale

    def forward(self, x):
        z = self.features(x)
        z = F.normalize(z, dim=1) if healthy else z / z.norm(dim=1, keepdim=True)
        return self.scale * F.linear(z, F.normalize(self.classifier.weight, dim=1))


g = torch.Generator().manual_seed(seed)
train_set, val_set = Stamps(3000, g), Stamps(800, g)
train_loader = DataLoader(train_set, batch_size=50, shuffle=True, generator=g)
val_loader = DataLoader(val_set, batch_size=400)
net = CosineNet()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)

for epoch in range(6):
    net.train()
    for i, (stamp, label) in enumerate(train_loader):
        opt.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(stamp), label)
        loss.backward()
        opt.step()
        if i % 30 == 0:
            print(f"[{epoch}:{i:3d}] loss {loss.item():.4f}")
    net.eval()
    with torch.no_grad():
        right = sum((net(s).argmax(1) == c).sum().item() for s, c in val_loader)
    print(f"[{epoch}] validation accuracy {right / len(val_set):.3f}")
