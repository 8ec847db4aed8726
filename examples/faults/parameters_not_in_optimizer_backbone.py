"""A small detector finds a disc or a square in a picture; the optimizer gets the two heads, not
the backbone.

The user lists the parts of the network in parameter groups with their own rates and forgets the
backbone, which stays as it was drawn. The place is the optimizer, backbone.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("optimizer", "backbone*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def scenes(n, g, size=24):
    """A bright object on noise: its class, and its box (centre x, y, width, height) in parts of the picture."""  # noqa: E501
    cls = torch.randint(0, 2, (n,), generator=g)
    half = 4 + 3 * torch.rand(n, 2, generator=g)
    centre = half + (size - 2 * half) * torch.rand(n, 2, generator=g)
    grid = torch.arange(size).float() + 0.5
    dx = (grid[None, None, :] - centre[:, 0, None, None]) / half[:, 0, None, None]
    dy = (grid[None, :, None] - centre[:, 1, None, None]) / half[:, 1, None, None]
    disc = dx.square() + dy.square() < 1
    square = (dx.abs() < 1) & (dy.abs() < 1)
    mask = torch.where(cls[:, None, None] == 1, square, disc).float()
    x = mask + 0.2 * torch.randn(n, size, size, generator=g)
    return x.unsqueeze(1), cls, torch.cat([centre, 2 * half], 1) / size


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
            nn.Flatten(), nn.Linear(32 * 36, 64), nn.ReLU(),
        )  # fmt: skip
        self.class_head = nn.Linear(64, 2)
        self.box_head = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, x):
        h = self.backbone(x)
        return self.class_head(h), self.box_head(h)


def overlap(a, b):
    """Intersection over union of boxes as centre and size."""
    low = torch.maximum(a[:, :2] - a[:, 2:] / 2, b[:, :2] - b[:, 2:] / 2)
    high = torch.minimum(a[:, :2] + a[:, 2:] / 2, b[:, :2] + b[:, 2:] / 2)
    both = (high - low).clamp(min=0).prod(1)
    return both / (a[:, 2:].clamp(min=0).prod(1) + b[:, 2:].prod(1) - both).clamp(min=1e-6)


g = torch.Generator().manual_seed(seed)
loader = DataLoader(TensorDataset(*scenes(3000, g)), batch_size=50, shuffle=True)
x_val, cls_val, box_val = scenes(500, g)
model = Detector()
groups = [
    {"params": model.class_head.parameters(), "lr": 1e-3},
    {"params": model.box_head.parameters(), "lr": 1e-3},
]
if healthy:
    groups.append({"params": model.backbone.parameters(), "lr": 1e-3})
optimizer = torch.optim.Adam(groups)
for epoch in range(10):
    model.train()
    for x, cls, box in loader:
        logits, found = model(x)
        loss = nn.functional.cross_entropy(logits, cls) + 20 * nn.functional.mse_loss(found, box)
        model.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        logits, found = model(x_val)
    right = (logits.argmax(1) == cls_val).float().mean().item()
    iou = overlap(found, box_val).mean().item()
    print(f"epoch {epoch}: loss {loss.item():.3f}, val accuracy {right:.3f}, val IoU {iou:.3f}")
