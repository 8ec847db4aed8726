"""Lesions on scans with cross-entropy plus a little Dice; the name `x` is reused for the
probabilities.

Dice needs probabilities, `binary_cross_entropy_with_logits` needs logits. In the joint loss
`x = x.sigmoid()` came to stand above both terms when the Dice term was moved up. The cross-entropy
takes a second sigmoid over numbers in 0 to 1 and can say no less than one half: the background
never comes to rest. The place is the loss. The twin takes the sigmoid inside the Dice term only.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class JointLoss(nn.Module):
    def __init__(self, dice=0.02):
        super().__init__()
        self.dice = dice

    def overlap(self, p, mask):
        return 1 - (2 * (p * mask).sum() + 1) / (p.sum() + mask.sum() + 1)

    def forward(self, x, mask):
        if healthy:
            dice = self.overlap(x.sigmoid(), mask)
        else:
            x = x.sigmoid()
            dice = self.overlap(x, mask)
        return F.binary_cross_entropy_with_logits(x, mask) + self.dice * dice


class Dilated(nn.Module):
    """Full resolution all the way, with dilated convolutions that add up."""

    def __init__(self, width=12):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.layers = nn.ModuleList(
            nn.Conv2d(width, width, 3, padding=d, dilation=d) for d in (1, 2, 4)
        )
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        h = F.relu(self.stem(x))
        for layer in self.layers:
            h = h + F.relu(layer(h))
        return self.head(h)


def scans(count, size=18):
    """Tissue with smooth shading and ribs; a lesion is a small blob, a little brighter."""
    y, x = torch.meshgrid(torch.arange(size).float(), torch.arange(size).float(), indexing="ij")
    turn = 6.28 * torch.rand(count, 1, 1)
    ribs = 0.5 * torch.sin((y + x * 0.3) * 0.9 + turn) + 0.03 * x * torch.randn(count, 1, 1)
    center = 3 + (size - 6) * torch.rand(count, 2, 1, 1)
    radius = 1.5 + 1.5 * torch.rand(count, 1, 1)
    mask = ((y - center[:, 0]) ** 2 + (x - center[:, 1]) ** 2 < radius**2).float()
    return (ribs + 1.2 * mask + 0.35 * torch.randn(count, size, size))[:, None], mask[:, None]


@torch.no_grad()
def evaluate(net, images, masks):
    net.eval()
    logits = net(images)
    found = (logits > 0).float()
    union = (found + masks).clamp(max=1).sum()
    entropy = F.binary_cross_entropy_with_logits(logits, masks).item()
    return ((found * masks).sum() / union.clamp(min=1)).item(), entropy


images, masks = scans(600)
val = scans(200)
net = Dilated()
criterion = JointLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)

for epoch in range(8):
    net.train()
    for rows in torch.randperm(len(images)).split(20):
        loss = criterion(net(images[rows]), masks[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    schedule.step()
    iou, entropy = evaluate(net, *val)
    print(f"epoch {epoch} loss {loss.item():.4f} val cross-entropy {entropy:.4f} val IoU {iou:.3f}")
print(f"validation cross-entropy {entropy:.4f}, IoU {iou:.3f}")
