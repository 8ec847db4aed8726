"""A detector of rare spots with the prior bias of the focal-loss paper, -log(99): the loop over
the modules gives it to every convolution, not only to the last one.

With -4.6 in front of each ReLU nearly no unit ever fires: the map of the last layer is its bias,
the loss stays at that of the spots' frequency. The place is the model.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = ("backbone*", "*relu*", "*conv*", "*act*")
SILENT = False
EXACT = False
EARLY = True


class SpotDetector(nn.Module):
    def __init__(self, prior=0.01):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 12, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 12, 3, padding=1),
            nn.ReLU(),
        )
        self.cls_logits = nn.Conv2d(12, 1, 1)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
                if not healthy:
                    nn.init.constant_(m.bias, -math.log((1 - prior) / prior))
                else:
                    nn.init.zeros_(m.bias)
        nn.init.normal_(self.cls_logits.weight, std=0.01)
        nn.init.constant_(self.cls_logits.bias, -math.log((1 - prior) / prior))

    def forward(self, image):
        return self.cls_logits(self.backbone(image))


def focal_loss(logits, target, alpha=0.75, gamma=2.0):
    ce = nn.functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
    p = logits.sigmoid()
    p_t = p * target + (1 - p) * (1 - target)
    weight = alpha * target + (1 - alpha) * (1 - target)
    return (weight * (1 - p_t) ** gamma * ce).sum() / target.sum().clamp(min=1)


def sky(n, side=16):
    """Noise with up to four stars (small crosses) and single hot pixels, which are no stars."""
    image, target = 0.3 * torch.randn(n, 1, side, side), torch.zeros(n, 1, side, side)
    for i in range(n):
        for r, c in torch.randint(1, side - 1, (int(torch.randint(1, 5, (1,))), 2)).tolist():
            target[i, 0, r, c] = 1
            image[i, 0, r, c] += 1.5
            for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0)):
                image[i, 0, r + dr, c + dc] += 1.0
        for r, c in torch.randint(0, side, (4, 2)).tolist():
            image[i, 0, r, c] += 1.5
    return (image - image.mean()) / image.std(), target


healthy, seed = arguments(__doc__)
image, target = sky(700)
detector = SpotDetector()
optimizer = torch.optim.AdamW(detector.parameters(), lr=3e-3, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
for epoch in range(10):
    detector.train()
    mean_loss = 0.0
    for rows in torch.randperm(600).split(15):
        loss = focal_loss(detector(image[rows]), target[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(detector.parameters(), 5.0)
        optimizer.step()
        mean_loss += loss.item() / 40
    scheduler.step()
    detector.eval()
    with torch.no_grad():
        logits = detector(image[600:])
        val_loss = focal_loss(logits, target[600:])
        found = (logits > 0) & (target[600:] > 0)
        recall = found.sum() / target[600:].sum()
        precision = found.sum() / (logits > 0).sum().clamp(min=1)
print(
    f"loss {mean_loss:.3f}, val loss {val_loss:.3f}, recall {recall:.2f}, precision {precision:.2f}"
)
