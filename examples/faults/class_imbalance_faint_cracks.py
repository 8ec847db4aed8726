"""A segmenter for cracks in concrete is trained with plain binary cross-entropy; two pixels in a
hundred are crack.

Faint as they are, "no crack" is the cheapest answer for nearly every pixel: accuracy 98 %, almost
no crack found. The place is the loss, which should weigh the rare class.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loss*", "loader", "target*", "out*", "")
SILENT = True
EXACT = False
EARLY = True


def plates(n, size=24):
    """Grey plates with one thin straight crack, a little darker than the noise."""
    grid = torch.arange(size).float()
    row, column = grid.view(1, -1, 1), grid.view(1, 1, -1)
    angle = 3.1416 * torch.rand(n, 1, 1)
    cr, cc = (4 + (size - 8) * torch.rand(n, 1, 1) for _ in range(2))
    along = (row - cr) * angle.cos() + (column - cc) * angle.sin()
    across = (column - cc) * angle.cos() - (row - cr) * angle.sin()
    crack = ((across.abs() < 0.55) & (along.abs() < 5)).float()
    image = torch.randn(n, size, size) - 1.6 * crack
    return image.unsqueeze(1), crack.unsqueeze(1)


class Segmenter(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.enter = nn.Conv2d(1, c, 5, padding=2)
        self.middle = nn.Conv2d(c, c, 5, padding=2)
        self.wide = nn.Conv2d(c, c, 3, padding=2, dilation=2)
        self.out = nn.Conv2d(c, 1, 1)

    def forward(self, image):
        z = F.leaky_relu(self.enter(image), 0.1)
        z = z + F.leaky_relu(self.middle(z), 0.1)
        z = z + F.leaky_relu(self.wide(z), 0.1)
        return self.out(z)


healthy, _ = arguments(__doc__)
images, cracks = plates(640)
images_val, cracks_val = plates(160)
share = cracks.mean()
weight = (1 - share) / share if healthy else None

model = Segmenter()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=160)
step = 0
while step < 160:
    for part in torch.randperm(len(images)).split(32):
        logits = model(images[part])
        loss = F.binary_cross_entropy_with_logits(logits, cracks[part], pos_weight=weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        step += 1
    with torch.no_grad():
        found = model(images_val) > 0
    recall = found[cracks_val == 1].float().mean()
    spared = (~found)[cracks_val == 0].float().mean()
    print(
        f"step {step}: loss {loss.item():.3f}"
        f"  accuracy {(found == cracks_val.bool()).float().mean():.3f}"
        f"  recall {recall:.3f}  balanced {(recall + spared) / 2:.3f}"
    )
