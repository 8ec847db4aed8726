"""BYOL of lightly learns features of drawn shapes without labels, with a momentum encoder; a kNN
judges them.

Looks odd: the loss is a negative cosine (it goes towards -1), half of the networks require no
gradient and change only by moving averages, and no label enters the training. It is sound, as in
lightly's BYOL example; nothing collapses.
"""

import copy

import numpy as np
import torch
from data import arguments
from lightly.loss import NegativeCosineSimilarity
from lightly.models.modules import BYOLPredictionHead, BYOLProjectionHead
from lightly.models.utils import deactivate_requires_grad, update_momentum
from lightly.utils.scheduler import cosine_schedule
from sklearn.neighbors import KNeighborsClassifier
from torch import nn
from torchvision.transforms import v2

ODD = "a loss below zero, no labels, half the networks without gradients"

_, seed = arguments(__doc__)


def shapes(n, seed, size=24):
    r = np.random.default_rng(seed)
    yy, xx = np.mgrid[:size, :size]
    pictures, kinds = [], r.integers(0, 5, n)
    for kind in kinds:
        cx, cy, s = r.uniform(8, 16), r.uniform(8, 16), r.uniform(4, 7)
        dx, dy = np.abs(xx - cx), np.abs(yy - cy)
        mask = [
            dx**2 + dy**2 < s**2,
            np.maximum(dx, dy) < s * 0.9,
            np.minimum(dx, dy) < 1.6,
            np.abs(np.hypot(dx, dy) - s) < 1.3,
            (xx + yy).astype(int) % 6 < 2,
        ][kind]
        color = r.uniform(0.4, 1, 3)[:, None, None]
        pictures.append(mask[None] * color + 0.1 * r.normal(size=(3, size, size)))
    return torch.tensor(np.stack(pictures), dtype=torch.float32), torch.tensor(kinds)


class BYOL(nn.Module):
    def __init__(self, backbone):
        super().__init__()
        self.backbone = backbone
        self.projection_head = BYOLProjectionHead(64, 128, 32)
        self.prediction_head = BYOLPredictionHead(32, 128, 32)
        self.backbone_momentum = copy.deepcopy(self.backbone)
        self.projection_head_momentum = copy.deepcopy(self.projection_head)
        deactivate_requires_grad(self.backbone_momentum)
        deactivate_requires_grad(self.projection_head_momentum)

    def forward(self, x):
        return self.prediction_head(self.projection_head(self.backbone(x).flatten(start_dim=1)))

    def forward_momentum(self, x):
        z = self.projection_head_momentum(self.backbone_momentum(x).flatten(start_dim=1))
        return z.detach()


def block(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, 2, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU())


transform = v2.Compose(
    [
        v2.RandomResizedCrop(24, scale=(0.6, 1.0), antialias=True),
        v2.RandomHorizontalFlip(),
        v2.ColorJitter(brightness=0.3),
        v2.RandomApply([v2.GaussianNoise(sigma=0.05, clip=False)], p=0.5),
    ]
)
x, y = shapes(1000, 10 * seed)
x_val, y_val = shapes(500, 10 * seed + 1)
backbone = nn.Sequential(block(3, 16), block(16, 32), block(32, 64), nn.AdaptiveAvgPool2d(1))
model = BYOL(backbone)
criterion = NegativeCosineSimilarity()
optimizer = torch.optim.SGD(
    [p for p in model.parameters() if p.requires_grad], lr=0.06, momentum=0.9, weight_decay=1e-4
)


def knn():
    model.eval()
    with torch.no_grad():
        known, asked = model.backbone(x).flatten(1), model.backbone(x_val).flatten(1)
    model.train()
    spread = nn.functional.normalize(known, dim=1).std(0).mean().item()
    return KNeighborsClassifier(5).fit(known, y).score(asked, y_val), spread


epochs = 14
for epoch in range(epochs):
    total_loss = 0.0
    momentum_val = cosine_schedule(epoch, epochs, 0.99, 1)
    rows = torch.randperm(len(x)).split(100)
    for batch in rows:
        x0 = torch.stack([transform(x[i]) for i in batch])
        x1 = torch.stack([transform(x[i]) for i in batch])
        update_momentum(model.backbone, model.backbone_momentum, m=momentum_val)
        update_momentum(model.projection_head, model.projection_head_momentum, m=momentum_val)
        p0, p1 = model(x0), model(x1)
        z0, z1 = model.forward_momentum(x0), model.forward_momentum(x1)
        loss = 0.5 * (criterion(p0, z1) + criterion(p1, z0))
        total_loss += loss.detach()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    if epoch % 3 == 0:
        score, spread = knn()
        print(
            f"epoch: {epoch:>02}, loss: {total_loss / len(rows):.5f}, kNN {score:.3f}, "
            f"spread {spread:.3f}"
        )
print(f"validation kNN accuracy {score:.3f}")
