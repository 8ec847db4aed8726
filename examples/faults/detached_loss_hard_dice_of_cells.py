"""Segmentation of bright cells with a Dice loss over thresholded masks.

Dice as the papers report it needs masks, so the logits are compared with 0, and a comparison has
no gradient. "element 0 of tensors does not require grad" was answered by `loss.requires_grad_()`:
backward runs, and no weight ever gets a gradient. The place is the loss. The twin's Dice takes the
sigmoid.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "detached_loss"
ACCEPT = ("detached_graph", "step_without_gradient")
PLACE = ("loss",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def fields(n, size=20):
    g = torch.Generator().manual_seed(seed + n)
    axis = torch.arange(size).float()
    image, mask = 0.3 * torch.randn(n, size, size, generator=g), torch.zeros(n, size, size)
    for _ in range(3):
        cx, cy = (size * torch.rand(n, 1, 1, generator=g) for _ in range(2))
        radius = 2 + 2 * torch.rand(n, 1, 1, generator=g)
        inside = ((axis[:, None] - cx) ** 2 + (axis - cy) ** 2 < radius**2).float()
        image, mask = image + 0.8 * inside, torch.maximum(mask, inside)
    image = (
        image + torch.randn(n, 1, 1, generator=g) * 0.2 + 0.03 * (axis - size / 2)
    )  # uneven light
    return image[:, None], mask[:, None]


def soft_dice(logits, mask):
    predicted = torch.sigmoid(logits) if healthy else (logits > 0).float()
    overlap = (predicted * mask).sum((1, 2, 3))
    return 1 - ((2 * overlap + 1) / (predicted.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)).mean()


model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(12, 12, 3, padding=2, dilation=2),
    nn.ReLU(),
    nn.Conv2d(12, 12, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(12, 1, 1),
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
x, y = fields(640)
x_val, y_val = fields(160)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)

for epoch in range(12):
    model.train()
    losses = []
    for image, mask in loader:
        loss = soft_dice(model(image), mask)
        if not loss.requires_grad:
            loss.requires_grad_()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        found = model(x_val) > 0
    iou = (found & (y_val > 0)).sum() / (found | (y_val > 0)).sum()
    print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f} val IoU {iou.item():.3f}")
