"""Which object a lidar saw, from its points, by a PointNet; a "sanity check" comes before the
loop.

`evaluate` puts the net into eval mode and was always followed by `model.train()` - at the top,
before the check of the untrained net was added. All training runs in eval mode: batch norm, which
was to deal with the large values of the raw coordinates, keeps mean 0 and variance 1. The place is
the loop. The twin calls train() in every epoch.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("loop", "local.1", "local.4", "head.1")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
OBJECTS = ("car", "van", "pedestrian", "cyclist", "pole", "wall")


def scans(n, points=48):
    """Points on boxes of each class's size.

    They are turned about the vertical, in metres, with range noise.
    """
    y = torch.randint(0, len(OBJECTS), (n,))
    sizes = torch.tensor(
        [
            [4.2, 1.8, 1.5],
            [5.0, 2.0, 2.2],
            [0.6, 0.6, 1.75],
            [1.8, 0.6, 1.75],
            [0.25, 0.25, 3.0],
            [6.0, 0.3, 2.0],
        ]
    )[y] * torch.exp(0.12 * torch.randn(n, 3))
    p = torch.rand(n, points, 3) - 0.5
    face = torch.randint(0, 3, (n, points, 1))
    p = torch.where(torch.arange(3) == face, p.sign() * 0.5, p) * sizes[:, None]
    angle = torch.rand(n, 1) * 6.283
    x = p[..., 0] * angle.cos() - p[..., 1] * angle.sin()
    z = p[..., 0] * angle.sin() + p[..., 1] * angle.cos()
    cloud = torch.stack([x, z, p[..., 2] + sizes[:, None, 2] / 2], 2) + 0.05 * torch.randn(
        n, points, 3
    )
    return cloud * 10, y  # the sensor's decimetres


class PointNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.local = nn.Sequential(
            nn.Conv1d(3, 32, 1),
            nn.BatchNorm1d(32),
            nn.ReLU(),
            nn.Conv1d(32, 64, 1),
            nn.BatchNorm1d(64),
            nn.ReLU(),
        )
        self.head = nn.Sequential(
            nn.Linear(64, 48),
            nn.BatchNorm1d(48),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(48, classes),
        )

    def forward(self, points):
        return self.head(self.local(points.transpose(1, 2)).amax(2))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss = hits = n = 0
    for points, label in loader:
        out = model(points)
        loss += nn.functional.cross_entropy(out, label, reduction="sum").item()
        hits += (out.argmax(1) == label).sum().item()
        n += len(label)
    return loss / n, hits / n


train, val = TensorDataset(*scans(1500)), TensorDataset(*scans(500))
train_loader = DataLoader(train, 50, shuffle=True)
val_loader = DataLoader(val, 250)
model = PointNet(len(OBJECTS))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)

model.train()
val_loss, val_accuracy = evaluate(model, val_loader)
print(f"untrained: val loss {val_loss:.3f}, val accuracy {val_accuracy:.3f}")
for epoch in range(12):
    if healthy:
        model.train()
    total = 0.0
    for points, label in train_loader:
        loss = nn.functional.cross_entropy(model(points), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train_loader)
    scheduler.step()
    val_loss, val_accuracy = evaluate(model, val_loader)
    print(
        f"epoch {epoch:2d}: loss {total:.3f}, val loss {val_loss:.3f}, "
        f"val accuracy {val_accuracy:.3f}"
    )
