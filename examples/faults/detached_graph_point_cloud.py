"""A PointNet sorts scanned parts by shape; its encoder never gets a gradient.

`embed` was written for the retrieval service, which wants vectors and no graph, and was decorated
with `torch.no_grad()`. Later the duplicate code in `forward` was replaced by a call of `embed`.
The head still learns on the features of a random encoder, so the loss falls, only not far enough.
The place is the encoder (`point_mlp`). The twin leaves the decorator off.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("point_mlp", "point_mlp.0", "point_mlp.0.weight", "point_mlp.2", "point_mlp.4")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Parts(Dataset):
    """Points on a ball, a box, a cylinder, a ring or a cone, turned about z and noisy."""

    def __init__(self, n, g, points=48):
        self.y = torch.randint(0, 5, (n,), generator=g)
        self.x = torch.stack([self.part(int(c), points, g) for c in self.y])

    @staticmethod
    def part(c, n, g):
        u, v = torch.rand(n, generator=g), torch.rand(n, generator=g)
        a = 2 * math.pi * u
        if c == 0:
            p = nn.functional.normalize(torch.randn(n, 3, generator=g), dim=1)
        elif c == 1:
            p = torch.rand(n, 3, generator=g) * 1.6 - 0.8
            axis = torch.randint(0, 3, (n,), generator=g)
            p[torch.arange(n), axis] = 0.8 * torch.sign(v - 0.5)
        elif c == 2:
            p = torch.stack([0.75 * a.cos(), 0.75 * a.sin(), 1.7 * v - 0.85], 1)
        elif c == 3:
            b = 2 * math.pi * v
            p = torch.stack(
                [(0.8 + 0.3 * b.cos()) * a.cos(), (0.8 + 0.3 * b.cos()) * a.sin(), 0.6 * b.sin()], 1
            )
        else:
            p = torch.stack([v * a.cos(), v * a.sin(), 0.9 - 1.8 * v], 1)
        t = float(torch.rand(1, generator=g)) * 6.283
        turn = torch.tensor(
            [[math.cos(t), -math.sin(t), 0], [math.sin(t), math.cos(t), 0], [0, 0, 1]]
        )
        scale = 0.7 + 0.6 * torch.rand(3, generator=g)
        return (p * scale) @ turn.T + 0.08 * torch.randn(n, 3, generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


for_service = (lambda f: f) if healthy else torch.no_grad()


class PointNet(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.point_mlp = nn.Sequential(
            nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64)
        )
        self.head = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, classes))

    @for_service
    def embed(self, points):
        return self.point_mlp(points).amax(1)

    def forward(self, points):
        return self.head(self.embed(points))


g = torch.Generator().manual_seed(seed)
train, val = DataLoader(Parts(2000, g), 64, shuffle=True), DataLoader(Parts(500, g), 250)
model = PointNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=14)
criterion = nn.CrossEntropyLoss()
for epoch in range(14):
    model.train()
    running = 0.0
    for points, label in train:
        optimizer.zero_grad()
        loss = criterion(model(points), label)
        loss.backward()
        optimizer.step()
        running += loss.item() / len(train)
    scheduler.step()
    model.eval()
    with torch.no_grad():
        hits = sum((model(p).argmax(1) == c).sum().item() for p, c in val)
    print(f"epoch {epoch + 1:2d}  loss {running:.3f}  val accuracy {hits / 500:.3f}")
