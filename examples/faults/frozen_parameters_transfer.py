"""The backbone is frozen as for fine-tuning, but no checkpoint was loaded: it is random.

The place is the backbone. A head on random features learns something, so the loss falls (silent).
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, images
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("backbone*",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(8, 8, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )
        self.head = nn.Linear(32, 10)

    def forward(self, pixels):
        return self.head(self.backbone(pixels))


model = Model()
if not healthy:
    for parameter in model.backbone.parameters():
        parameter.requires_grad = False
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=5e-3)
for pixels, labels in batches(x, y, size=64, steps=250, seed=seed):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(pixels), labels)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
