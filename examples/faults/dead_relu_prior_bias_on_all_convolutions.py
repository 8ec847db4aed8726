"""A heat-map detector sets the rare-object prior, bias -4.6, on every convolution and not just on
the last one.

log(0.01/0.99) belongs to the output. In the hidden layers it pushes every ReLU below zero for every
picture: no gradient passes, and the map is the same everywhere. The place is the hidden ReLUs
behind those convolutions.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = ("backbone*", "body*", "*relu*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, _ = arguments(__doc__)
PRIOR = -math.log((1 - 0.01) / 0.01)


class Detector(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
        )
        self.heat = nn.Conv2d(width, 1, 1)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.zeros_(module.bias)
        if healthy:
            nn.init.constant_(self.heat.bias, PRIOR)
        else:
            for module in self.modules():
                if isinstance(module, nn.Conv2d):
                    nn.init.constant_(module.bias, PRIOR)

    def forward(self, image):
        return self.heat(self.backbone(image)).flatten(1)


def scene(n, size=12):
    """One plus sign among three bright single pixels; where its centre is."""
    image = 0.5 * torch.randn(n, size + 2, size + 2)
    rows = torch.arange(n)
    for _ in range(3):
        image[rows, torch.randint(1, size + 1, (n,)), torch.randint(1, size + 1, (n,))] += 2
    y, x = torch.randint(size, (n,)), torch.randint(size, (n,))
    for dy, dx in ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0)):
        image[rows, y + 1 + dy, x + 1 + dx] += 1.5
    image = image[:, None, 1:-1, 1:-1]
    return (image - image.mean()) / image.std(), y * size + x


def focal(logit, where, gamma=2.0):
    target = nn.functional.one_hot(where, logit.shape[1]).float()
    bce = nn.functional.binary_cross_entropy_with_logits(logit, target, reduction="none")
    p = logit.sigmoid()
    p_right = p * target + (1 - p) * (1 - target)
    return (bce * (1 - p_right) ** gamma).sum() / len(logit)


model = Detector()
opt = torch.optim.AdamW(model.parameters(), lr=5e-3)
test_image, test_where = scene(400)
for step in range(300):
    image, where = scene(48)
    opt.zero_grad()
    loss = focal(model(image), where)
    loss.backward()
    opt.step()
    if step == 220:
        opt.param_groups[0]["lr"] = 1e-3
    if step % 60 == 59:
        with torch.no_grad():
            hit = (model(test_image).argmax(1) == test_where).float().mean().item()
        print(f"{step + 1}: loss {loss.item():.3f}, centre found in {hit:.3f}")
