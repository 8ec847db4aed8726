"""A detector of one bright patch predicts its box in pixels of the original photo (640 x 480).

The head starts near zero and Adam moves it by a thousandth per step: after all steps the boxes fit
much worse than they could. The twin gives the box as shares of width and height. The place is the
loss (or the head).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_not_normalized"
ACCEPT = ()
PLACE = ("loss", "loader", "input", "", "head", "head.2", "head.2.weight", "head.2.bias")
SILENT = True
EXACT = False
EARLY = True

WIDTH, HEIGHT = 640, 480


def photos(n):
    """Thumbnails of 20 x 20 pixels, and x, y, w, h of the patch in the photo."""
    centre = 0.25 + 0.5 * torch.rand(n, 2)
    size = 0.15 + 0.3 * torch.rand(n, 2)
    at = (torch.arange(20) + 0.5) / 20
    across = ((at - centre[:, :1]).abs() < size[:, :1] / 2).float()
    down = ((at - centre[:, 1:]).abs() < size[:, 1:] / 2).float()
    images = 1.6 * down[:, :, None] * across[:, None, :] + 0.4 * torch.randn(n, 20, 20) - 0.15
    boxes = torch.cat([centre, size], 1) * torch.tensor([WIDTH, HEIGHT, WIDTH, HEIGHT])
    return images.unsqueeze(1), boxes


def iou(a, b):
    low = torch.maximum(a[:, :2] - a[:, 2:] / 2, b[:, :2] - b[:, 2:] / 2)
    high = torch.minimum(a[:, :2] + a[:, 2:] / 2, b[:, :2] + b[:, 2:] / 2)
    both = (high - low).clamp(min=0).prod(1)
    return both / (a[:, 2:].clamp(min=0).prod(1) + b[:, 2:].prod(1) - both)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        )  # fmt: skip
        self.head = nn.Sequential(nn.Linear(400, 48), nn.ReLU(), nn.Linear(48, 4))

    def forward(self, x):
        return self.head(self.backbone(x))


healthy, seed = arguments(__doc__)
unit = torch.tensor([WIDTH, HEIGHT, WIDTH, HEIGHT]) if healthy else torch.ones(4)
images, boxes = photos(1600)
val_images, val_boxes = photos(300)
loader = DataLoader(TensorDataset(images, boxes / unit), batch_size=40, shuffle=True)
detector = Detector()
optimizer = torch.optim.Adam(detector.parameters(), lr=1e-3)
for epoch in range(9):
    detector.train()
    for image, box in loader:
        loss = F.smooth_l1_loss(detector(image), box)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    detector.eval()
    with torch.no_grad():
        out = detector(val_images)
        val = F.smooth_l1_loss(out, val_boxes / unit)
        overlap = iou(out * unit, val_boxes).mean()
    print(f"epoch {epoch}: loss {loss:.4f}, val loss {val:.4f}, IoU {overlap:.3f}")
