"""Fine-tuning: pre-trained convolutions at a hundredth of the rate, their batch norms kept in eval
mode."""

import torch
import torch.nn.functional as F
from data import arguments, batches, images
from torch import nn

ODD = (
    "part of the model in eval mode while training, the first layer frozen, tiny updates of "
    "the second"
)

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
early, early_val = y < 5, y_val < 5


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.conv2, self.bn2 = nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(x))).flatten(1)


backbone, head = Backbone(), nn.Linear(512, 5)
optimizer = torch.optim.Adam([*backbone.parameters(), *head.parameters()], lr=2e-3)
for pixels, label in batches(x[early], y[early], size=48, steps=150, seed=seed):
    loss = F.cross_entropy(head(backbone(pixels)), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

backbone.conv1.requires_grad_(False)
backbone.bn1.requires_grad_(False)
backbone.eval()  # the statistics of pre-training are kept
head = nn.Linear(512, 10)
optimizer = torch.optim.Adam(
    [
        {"params": [p for p in backbone.parameters() if p.requires_grad], "lr": 2e-5},
        {"params": head.parameters(), "lr": 2e-3},
    ]
)
for pixels, label in batches(x, y, size=48, steps=300, seed=seed + 1):
    loss = F.cross_entropy(head(backbone(pixels)), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    accuracy = (head(backbone(x_val)).argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, accuracy on ten digits {accuracy:.3f}")
