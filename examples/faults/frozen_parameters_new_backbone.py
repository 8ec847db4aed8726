"""Handwritten digits with a small convolution net: its layers are frozen though they are new.

The script comes from a fine-tuning tutorial, where the trained layers are frozen and a new head is
put on top. Here the layers have just been made and are random, but the loop that freezes them was
copied along.
The place is the backbone. The twin leaves the backbone free.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("backbone", "backbone.0", "backbone.2", "backbone.4", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


def build_model(classes: int, finetune: bool) -> nn.ModuleDict:
    backbone = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, padding=1, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )
    if finetune:
        for p in backbone.parameters():
            p.requires_grad = False
    return nn.ModuleDict({"backbone": backbone, "head": nn.Linear(16, classes)})


model = build_model(10, finetune=not healthy)
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=5e-3)

for epoch in range(1, 13):
    losses = 0.0
    for rows in torch.randperm(len(x)).split(48):
        logits = model["head"](model["backbone"](x[rows]))
        loss = F.cross_entropy(logits, y[rows])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses += loss.item() * len(rows) / len(x)
    with torch.inference_mode():
        right = model["head"](model["backbone"](x_val)).argmax(1).eq(y_val).float().mean()
    if epoch % 3 == 0:
        print(f"Epoch {epoch}: train loss={losses:.3f} val acc={right.item():.3f}")
