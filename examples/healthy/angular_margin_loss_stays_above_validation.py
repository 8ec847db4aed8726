"""Digits with ArcFace: cosines times a scale, the true class with a margin in training."""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the training loss is far above validation's, as only training has the margin"

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


class ArcFace(nn.Module):
    def __init__(self, width, classes, scale=12.0, margin=0.35):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(classes, width))
        nn.init.xavier_uniform_(self.weight)
        self.scale, self.margin = scale, margin

    def forward(self, features, labels=None):
        cosine = F.linear(F.normalize(features), F.normalize(self.weight))
        if labels is None:
            return self.scale * cosine
        angle = cosine.clamp(-1 + 1e-6, 1 - 1e-6).acos()
        true = F.one_hot(labels, cosine.shape[1]).bool()
        return self.scale * torch.where(true, (angle + self.margin).clamp(max=3.1415).cos(), cosine)


backbone = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.Conv2d(16, 32, 3, stride=2, padding=1),
    nn.BatchNorm2d(32),
    nn.ReLU(),
    nn.Flatten(),
    nn.Dropout(0.2),
    nn.Linear(32 * 16, 24),
)
head = ArcFace(24, 10)
parameters = [*backbone.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.02, momentum=0.9, weight_decay=5e-4)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6 * len(loader))
for epoch in range(6):
    backbone.train()
    total = 0.0
    for images_, labels in loader:
        loss = F.cross_entropy(head(backbone(images_), labels), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item()
    backbone.eval()
    with torch.no_grad():
        out = head(backbone(x_val))
        val = F.cross_entropy(out, y_val).item()
        accuracy = (out.argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch} train {total / len(loader):.3f} val {val:.3f} accuracy {accuracy:.3f}")
