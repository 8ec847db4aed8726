"""SimSiam on sensor windows: the targets of the cosine loss are not detached.

In the paper's pseudo-code `D(p, z)` begins with `z = z.detach()`; it was left out when the loss
was written with F.cosine_similarity. All windows get the same embedding and the loss runs to -1
(silent). The place is the encoder/projector, the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "representation_collapse"
ACCEPT = ()
PLACE = ("encoder*", "projector*", "predictor*", "loss*", "")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
LENGTH, CHANNELS = 32, 3


def windows(n):
    """Accelerometer-like windows of five activities."""
    y = torch.randint(0, 5, (n,))
    speed = torch.tensor([0.15, 0.3, 0.5, 0.8, 1.2])[y] * (1 + 0.08 * torch.randn(n))
    amps = torch.tensor(
        [[1, 0.2, 0.5], [0.5, 1, 0.2], [1, 1, 0.2], [0.2, 0.5, 1], [0.6, 0.6, 1.0]]
    )[y]
    t = torch.arange(LENGTH) * speed[:, None] + 6.283 * torch.rand(n, 1)
    wave = torch.stack([t.sin(), (2 * t).sin(), (t + 1).cos()], 1)
    return wave * amps[:, :, None] + 0.4 * torch.randn(n, CHANNELS, LENGTH), y


def augment(x):
    x = x * (1 + 0.2 * torch.randn(len(x), 1, 1))
    x = torch.roll(x, int(torch.randint(0, LENGTH, ())), dims=2)
    return x + 0.15 * torch.randn_like(x)


class SimSiam(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(CHANNELS, 16, 5, stride=2),
            nn.ReLU(),
            nn.Conv1d(16, 32, 5, stride=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
        )
        self.projector = nn.Sequential(
            nn.Linear(32, dim), nn.BatchNorm1d(dim), nn.ReLU(), nn.Linear(dim, dim)
        )
        self.predictor = nn.Sequential(nn.Linear(dim, 16), nn.ReLU(), nn.Linear(16, dim))

    def forward(self, x1, x2):
        z1, z2 = self.projector(self.encoder(x1)), self.projector(self.encoder(x2))
        p1, p2 = self.predictor(z1), self.predictor(z2)
        return p1, p2, z1, z2


def distance(p, z):
    if healthy:
        z = z.detach()
    return -F.cosine_similarity(p, z, dim=1).mean()


def knn_accuracy(model, x, y, x_val, y_val):
    model.eval()
    with torch.no_grad():
        a, b = (F.normalize(model.projector(model.encoder(part)), dim=1) for part in (x, x_val))
    near = (b @ a.T).topk(5, dim=1).indices
    return (y[near].mode(1).values == y_val).float().mean().item(), a.std(0).mean().item()


x, y = windows(1024)
x_val, y_val = windows(300)
mean, std = x.mean((0, 2), keepdim=True), x.std((0, 2), keepdim=True)
x, x_val = (x - mean) / std, (x_val - mean) / std
model = SimSiam()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
for epoch in range(15):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(128):
        p1, p2, z1, z2 = model(augment(x[rows]), augment(x[rows]))
        loss = distance(p1, z2) / 2 + distance(p2, z1) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / 8
    if epoch % 5 == 4:
        acc, spread = knn_accuracy(model, x, y, x_val, y_val)
        print(
            f"epoch {epoch + 1}: loss {total:.4f}  kNN val "
            f"accuracy {acc:.3f}  embedding std {spread:.4f}"
        )
