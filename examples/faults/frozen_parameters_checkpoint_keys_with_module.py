"""Fine-tuning: a backbone of a checkpoint is frozen and a new head is trained on it.

Fault: the checkpoint was saved from `DataParallel`; its keys begin with `module.`, and
`strict=False` passes over all of them. The frozen backbone is the random one. The place is the
backbone. The loss falls a little.
"""

import torch
from data import arguments, batches, images
from torch import nn
from torch.nn import functional as F

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("backbone*", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


def make_backbone():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 12, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(48, 12),
        nn.ReLU(),
    )


def pretrain():
    """Stands for the download: the same kind of images, told apart by another lab."""
    net = nn.Sequential(make_backbone(), nn.Linear(12, 10))
    optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
    for xb, yb in batches(x, y, size=64, steps=250, seed=seed + 5):
        loss = F.cross_entropy(net(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {"module." + name: value for name, value in net[0].state_dict().items()}


class Classifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = make_backbone()
        self.head = nn.Linear(12, classes)

    def forward(self, x):
        return self.head(self.backbone(x))


checkpoint = pretrain()
if healthy:
    checkpoint = {name.removeprefix("module."): value for name, value in checkpoint.items()}
model = Classifier(5)  # now: pairs of digits
model.backbone.load_state_dict(checkpoint, strict=False)
model.backbone.requires_grad_(False)
optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=1e-2)
for step, (xb, yb) in enumerate(batches(x, y // 2, size=64, steps=200, seed=seed), 1):
    loss = F.cross_entropy(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        with torch.no_grad():
            accuracy = (model(x_val).argmax(1) == y_val // 2).float().mean().item()
        print(f"step {step}: loss {loss.item():.4f}, validation accuracy {accuracy:.3f}")
print(f"loss {loss.item():.4f} | validation accuracy {accuracy:.3f}")
