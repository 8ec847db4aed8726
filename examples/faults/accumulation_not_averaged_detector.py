"""One-stage detector trained with micro-batches of 4 and GRAD_ACCUM = 8 "as on the big GPU".

Each micro-batch's loss is a mean and is not divided by 8, so the accumulated gradient is eight
times that of the batch of 32 for which lr=0.1 and momentum were tuned. The twin divides. The
place is the loop.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "loss*", "optimizer", "")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
SIZE, CELLS, MICRO, GRAD_ACCUM = 24, 6, 4, 8


def scenes(n):
    """One or two bright boxes in noise; target per cell: object, offset (2), log size (2)."""
    images = 0.5 * torch.randn(n, 1, SIZE, SIZE)
    target = torch.zeros(n, 5, CELLS, CELLS)
    for k in range(n):
        for _ in range(int(torch.randint(1, 3, ()))):
            w, h = (torch.randint(3, 8, (2,))).tolist()
            x0, y0 = int(torch.randint(0, SIZE - w, ())), int(torch.randint(0, SIZE - h, ()))
            images[k, 0, y0 : y0 + h, x0 : x0 + w] += 1.5
            cx, cy = (x0 + w / 2) / 4, (y0 + h / 2) / 4
            cell = torch.tensor([1, cx % 1 - 0.5, cy % 1 - 0.5, w / 5 - 1, h / 5 - 1])
            target[k, :, int(cy), int(cx)] = cell
    return images / 0.7, target


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 12, 3, stride=2, padding=1),
            nn.GroupNorm(3, 12),
            nn.ReLU(),
            nn.Conv2d(12, 24, 3, stride=2, padding=1),
            nn.GroupNorm(4, 24),
            nn.ReLU(),
            nn.Conv2d(24, 24, 3, padding=1),
            nn.GroupNorm(4, 24),
            nn.ReLU(),
        )
        self.objectness, self.box = nn.Conv2d(24, 1, 1), nn.Conv2d(24, 4, 1)

    def forward(self, x):
        h = self.backbone(x)
        return self.objectness(h), self.box(h)


def detection_loss(obj, box, target):
    there = target[:, :1]
    l_obj = F.binary_cross_entropy_with_logits(obj, there, pos_weight=torch.tensor(4.0))
    l_box = (F.smooth_l1_loss(box, target[:, 1:], reduction="none") * there).sum() / there.sum()
    return 2 * l_obj + 2 * l_box


images, targets = scenes(1280)
val_images, val_targets = scenes(200)
loader = DataLoader(TensorDataset(images, targets), batch_size=MICRO, shuffle=True)
detector = Detector()
optimizer = torch.optim.SGD(detector.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
optimizer.zero_grad()
for epoch in range(6):
    detector.train()
    running = 0.0
    for step, (image, target) in enumerate(loader):
        obj, box = detector(image)
        loss = detection_loss(obj, box, target)
        running += loss.item()
        if healthy:
            loss = loss / GRAD_ACCUM
        loss.backward()
        if (step + 1) % GRAD_ACCUM == 0:
            optimizer.step()
            optimizer.zero_grad()
    detector.eval()
    with torch.no_grad():
        obj, box = detector(val_images)
        val = detection_loss(obj, box, val_targets).item()
        hit = (obj > 0) & (val_targets[:, :1] > 0)
        f1 = 2 * hit.sum() / ((obj > 0).sum() + val_targets[:, 0].sum())
    print(f"epoch {epoch}: loss {running / len(loader):.4f} val {val:.4f} cell F1 {f1.item():.3f}")
