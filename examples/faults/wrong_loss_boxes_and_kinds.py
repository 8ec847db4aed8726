"""A small detector finds marks and regresses the number of their kind as if it were a quantity.

The head gives five numbers, four of the box and one of the kind, all under one smooth L1 loss, and
the last is rounded to name the kind. The order of the kinds means nothing, so marks between two
numbers are mistaken. The place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss", "head*", "labels")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SIDE, KINDS = 20, 6


def marks():
    """Six masks of 7 x 7: a cross, a ring, a T, a slash, a bar and a block with a hole."""
    masks = torch.zeros(KINDS, 7, 7)
    masks[0, 3], masks[0, :, 3] = 1, 1
    masks[1], masks[1, 1:6, 1:6] = 1, 0
    masks[2, 0:2], masks[2, :, 3] = 1, 1
    masks[3] = torch.eye(7).flip(0) + torch.diag(torch.ones(6), 1).flip(0)
    masks[4, 2:5] = 1
    masks[5], masks[5, 2:5, 2:5] = 1, 0
    return masks.clamp(max=1)


def pictures(n, g):
    masks = marks()
    kind = torch.randint(0, KINDS, (n,), generator=g)
    size = torch.randint(8, 13, (n, 2), generator=g)
    corner = (torch.rand(n, 2, generator=g) * (SIDE - size)).long()
    x = 0.2 * torch.randn(n, 1, SIDE, SIDE, generator=g)
    for i in range(n):
        (h, w), (top, left) = size[i].tolist(), corner[i].tolist()
        drawn = F.interpolate(masks[kind[i]][None, None], (h, w), mode="bilinear")
        x[i, :, top : top + h, left : left + w] += drawn[0]
    box = torch.cat([corner + size / 2, size.float()], 1) / SIDE
    return {"picture": x, "box": box, "kind": kind}


class Detector(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
        )
        self.head = nn.Sequential(
            nn.Flatten(), nn.Linear(32 * 25, 64), nn.ReLU(), nn.Linear(64, outputs)
        )

    def forward(self, picture):
        out = self.head(self.features(picture))
        return out[:, :4], out[:, 4:]


def detection_loss(box, kind, batch):
    where = F.smooth_l1_loss(box, batch["box"], beta=0.05)
    if healthy:
        return 4 * where + F.cross_entropy(kind, batch["kind"])
    return 4 * where + F.smooth_l1_loss(kind.squeeze(1), batch["kind"].float())


def named(kind):
    return kind.argmax(1) if healthy else kind.squeeze(1).round().long()


g = torch.Generator().manual_seed(seed)
train, val = pictures(2400, g), pictures(500, g)
mean, std = train["picture"].mean(), train["picture"].std()
for part in (train, val):
    part["picture"] = (part["picture"] - mean) / std
model = Detector(4 + KINDS if healthy else 5)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.02)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=7 * 60)
for epoch in range(7):
    model.train()
    for rows in torch.randperm(2400, generator=g).split(40):
        batch = {key: value[rows] for key, value in train.items()}
        loss = detection_loss(*model(batch["picture"]), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    model.eval()
    with torch.no_grad():
        box, kind = model(val["picture"])
        held_out = detection_loss(box, kind, val).item()
    print(
        f"epoch {epoch + 1}  train {loss.item():.3f}  val {held_out:.3f}  "
        f"box error {(box - val['box']).abs().mean():.4f}  "
        f"kind right {(named(kind) == val['kind']).float().mean():.3f}"
    )
