"""A transfer of a pre-trained CNN to few images.

Odd: the backbone is frozen, absent from the optimizer and in eval mode while the head trains (its
batch norm keeps the statistics of the pre-training), its features are computed without gradients.
That is the usual linear probe, and the probe generalises; the last part fine-tunes all with small
rates, one group for each part, batch norm still in eval mode.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "A transfer of a pre-trained CNN to few images"
_, seed = arguments(__doc__)


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )
        self.head = nn.Linear(256, classes)

    def forward(self, x):
        return self.head(self.backbone(x))


@torch.no_grad()
def score(model, x, y):
    model.eval()
    logits = model(x)
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


x, y, x_val, y_val = images(seed)
old, new = y < 6, y >= 6
pre = Net(6)
opt = torch.optim.AdamW(pre.parameters(), lr=2e-3, weight_decay=1e-2)
loader = DataLoader(TensorDataset(x[old], y[old]), 32, shuffle=True, drop_last=True)
for epoch in range(4):
    pre.train()
    for xb, yb in loader:
        loss = F.cross_entropy(pre(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
print("pre-training: val loss %.3f acc %.3f" % score(pre, x_val[y_val < 6], y_val[y_val < 6]))  # noqa: UP031

model = Net(4)
model.backbone.load_state_dict(pre.backbone.state_dict())
model.backbone.requires_grad_(False)
loader = DataLoader(TensorDataset(x[new], y[new] - 6), 32, shuffle=True, drop_last=True)
xv, yv = x_val[y_val >= 6], y_val[y_val >= 6] - 6

opt = torch.optim.Adam(model.head.parameters(), lr=3e-3)
for epoch in range(6):
    model.train()
    model.backbone.eval()
    for xb, yb in loader:
        with torch.no_grad():
            features = model.backbone(xb)
        loss = F.cross_entropy(model.head(features), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(
        "probe %d: train %.3f, val loss %.3f acc %.3f" % (epoch, loss.item(), *score(model, xv, yv))  # noqa: UP031
    )

model.backbone.requires_grad_(True)
opt = torch.optim.Adam(
    [
        {"params": model.backbone.parameters(), "lr": 1e-4},
        {"params": model.head.parameters(), "lr": 5e-4},
    ]
)
for epoch in range(4):
    model.train()
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.eval()
    for xb, yb in loader:
        loss = F.cross_entropy(model(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(
        "tune %d: train %.3f, val loss %.3f acc %.3f" % (epoch, loss.item(), *score(model, xv, yv))  # noqa: UP031
    )
