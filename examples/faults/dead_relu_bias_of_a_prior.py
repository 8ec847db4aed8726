"""A small one-stage detector finds cells in drawn slides with torchvision's focal loss; its hidden
ReLUs are all dead.

The bias of -log((1 - p) / p) for a rare object belongs in the last layer only (RetinaNet); here
the loop over the modules gives it to every convolution, so no ReLU is ever active and only the
last bias learns. The place is stem, tower (their ReLUs).
"""

import math

import numpy as np
import torch
from data import arguments
from sklearn.metrics import average_precision_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchvision.ops import Conv2dNormActivation, sigmoid_focal_loss

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = ("stem*", "tower*", "cls_logits*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


def slides(n, seed, size=32):
    r = np.random.default_rng(seed)
    yy, xx = np.mgrid[:size, :size]
    x, y = 0.35 * r.normal(size=(n, 1, size, size)), np.zeros((n, 1, size // 4, size // 4))
    for i in range(n):
        for _ in range(r.integers(1, 4)):
            cx, cy, s = *r.uniform(4, size - 4, 2), r.uniform(2.0, 3.2)
            x[i, 0] += 1.2 * np.exp(-((((xx - cx) ** 2 + (yy - cy) ** 2) / s**2) ** 2))
            y[i, 0, int(cy) // 4, int(cx) // 4] = 1
        for _ in range(r.integers(1, 4)):
            cx, cy, a = *r.uniform(4, size - 4, 2), r.uniform(0, 3.14)
            x[i, 0] += (
                1.2
                * (np.abs((xx - cx) * np.cos(a) + (yy - cy) * np.sin(a)) < 0.8)
                * (np.hypot(xx - cx, yy - cy) < 6)
            )
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32))


class CellDetector(nn.Module):
    def __init__(self, prior_probability=0.02, width=24):
        super().__init__()
        plain = {"norm_layer": None, "activation_layer": nn.ReLU}
        self.stem = nn.Sequential(
            Conv2dNormActivation(1, width, 3, stride=2, **plain),
            Conv2dNormActivation(width, width, 3, stride=2, **plain),
        )
        self.tower = nn.Sequential(
            *(Conv2dNormActivation(width, width, 3, **plain) for _ in range(2))
        )
        self.cls_logits = nn.Conv2d(width, 1, 3, padding=1)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
                last = module is self.cls_logits
                bias = -math.log((1 - prior_probability) / prior_probability)
                nn.init.constant_(module.bias, bias if last or not healthy else 0.0)
        nn.init.normal_(self.cls_logits.weight, std=0.01)

    def forward(self, images):
        return self.cls_logits(self.tower(self.stem(images)))


loader = DataLoader(slides(800, 10 * seed), batch_size=32, shuffle=True)
x_val, y_val = slides(200, 10 * seed + 1).tensors
model = CellDetector()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)

for epoch in range(14):
    model.train()
    total = 0.0
    for images, targets in loader:
        loss = sigmoid_focal_loss(model(images), targets, reduction="sum") / targets.sum().clamp(
            min=1
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        scores = model(x_val).sigmoid()
    ap = average_precision_score(y_val.flatten(), scores.flatten())
    print(f"epoch {epoch}: loss {total / len(loader):.4f}, average precision {ap:.3f}")
print(f"validation average precision {ap:.3f}")
