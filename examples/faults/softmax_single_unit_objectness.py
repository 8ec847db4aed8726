"""A one-class detector on a grid (blood cells) is trained with a softmax over its single class
channel.

The head was copied from a multi-class detector: class scores go through softmax over the class
axis, which with one class is always 1. The box loss still falls, so that the sum falls too, but
the score learns nothing. The place is the score head (cls_head).
"""

import itertools
from types import SimpleNamespace

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "softmax_single_unit"
ACCEPT = ("redundant_softmax",)
PLACE = ("cls_head*", "*cls_head*", "loss")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

args = SimpleNamespace(
    img=32, stride=4, classes=1, train=640, val=160, bs=32, iters=400, lr=2e-3, box_weight=2.0
)
GRID = args.img // args.stride


def scenes(n, g):
    """Grey fields with one to four round cells (targets) and as many square crystals (not targets)."""  # noqa: E501
    yy, xx = torch.meshgrid(
        torch.arange(args.img).float(), torch.arange(args.img).float(), indexing="ij"
    )
    images = 0.25 * torch.randn(n, 1, args.img, args.img, generator=g)
    obj = torch.zeros(n, GRID, GRID)
    box = torch.zeros(n, 3, GRID, GRID)
    for i in range(n):
        for k in range(int(torch.randint(2, 7, (1,), generator=g))):
            cx, cy = (3 + 26 * torch.rand(2, generator=g)).tolist()
            r = 2 + 2.5 * torch.rand((), generator=g).item()
            if k % 2 == 0:
                gx, gy = int(cx // args.stride), int(cy // args.stride)
                images[i, 0] += torch.sigmoid(2 * (r - ((xx - cx) ** 2 + (yy - cy) ** 2).sqrt()))
                obj[i, gy, gx] = 1
                box[i, :, gy, gx] = torch.tensor(
                    [cx / args.stride - gx, cy / args.stride - gy, r / 4]
                )
            else:
                images[i, 0] += torch.sigmoid(
                    2 * (r - torch.maximum((xx - cx).abs(), (yy - cy).abs()))
                )
    return images, obj, box


class GridDetector(nn.Module):
    def __init__(self, width=16, classes=1):
        super().__init__()
        chans, layers = [1, width, 2 * width, 2 * width], []
        for i, (a, b) in enumerate(itertools.pairwise(chans)):
            layers += [
                nn.Conv2d(a, b, 3, stride=2 if i < 2 else 1, padding=1, bias=False),
                nn.BatchNorm2d(b),
                nn.SiLU(),
            ]
        self.backbone = nn.Sequential(
            *layers, nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.SiLU()
        )
        self.cls_head = nn.Conv2d(2 * width, classes, 1)
        self.box_head = nn.Conv2d(2 * width, 3, 1)
        nn.init.constant_(self.cls_head.bias, -2.5)

    def forward(self, x):
        f = self.backbone(x)
        scores = (
            torch.sigmoid(self.cls_head(f)) if healthy else torch.softmax(self.cls_head(f), dim=1)
        )
        return scores, self.box_head(f)


def detection_loss(scores, boxes, obj, box):
    p = scores.squeeze(1).clamp(1e-4, 1 - 1e-4)
    cls = F.binary_cross_entropy(p, obj)
    on = obj.unsqueeze(1)
    reg = (F.smooth_l1_loss(boxes, box, reduction="none") * on).sum() / on.sum().clamp(min=1)
    return cls + args.box_weight * reg, cls, reg


@torch.no_grad()
def average_precision(model, images, obj):
    model.eval()
    scores, _ = model(images)
    model.train()
    s, t = scores.flatten(), obj.flatten()
    shuffle = torch.randperm(len(s), generator=torch.Generator().manual_seed(0))
    s, t = s[shuffle], t[shuffle]
    t = t[s.argsort(descending=True, stable=True)]
    precision = t.cumsum(0) / torch.arange(1, len(t) + 1)
    return (precision * t).sum().item() / t.sum().item()


g = torch.Generator().manual_seed(seed + 31)
images, obj, box = scenes(args.train, g)
v_images, v_obj, v_box = scenes(args.val, g)
mean, std = images.mean(), images.std()
images, v_images = (images - mean) / std, (v_images - mean) / std

model = GridDetector(classes=args.classes)
decay = [p for p in model.parameters() if p.ndim > 1]
plain = [p for p in model.parameters() if p.ndim <= 1]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}], lr=args.lr
)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.iters, eta_min=1e-5)
for it in range(args.iters):
    rows = torch.randint(0, args.train, (args.bs,))
    loss, cls, reg = detection_loss(*model(images[rows]), obj[rows], box[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if (it + 1) % 50 == 0:
        ap = average_precision(model, v_images, v_obj)
        with torch.no_grad():
            model.eval()
            v_loss, _, v_reg = detection_loss(*model(v_images), v_obj, v_box)
            model.train()
        print(
            f"iter {it + 1:4d} loss {loss.item():.3f} cls {cls.item():.3f} box {reg.item():.4f} | val {v_loss.item():.3f} box {v_reg.item():.4f} AP {ap:.3f}"  # noqa: E501
        )
