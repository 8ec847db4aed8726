"""Recipes and their pictures, matched by contrast: the softmax is written out with exp and log.

The cosines are divided by a temperature of 0.01, so a good pair gets 100. `exp(100)` is more than
a float32 holds: the ratio is inf / inf, and the training ends in NaN as soon as pairs match well.
The place is the loss. The twin lets PyTorch take the logarithm of the softmax.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "unstable_log_softmax"
ACCEPT = ("nan_input", "loss_scale_overflow")
PLACE = ("loss*",)
SILENT = False
EXACT = False
EARLY = True

TEMPERATURE = 0.01

healthy, seed = arguments(__doc__)


def tower(columns):
    return nn.Sequential(nn.Linear(columns, 64), nn.ReLU(), nn.Linear(64, 24))


def contrast(text, image):
    logits = F.normalize(text, dim=1) @ F.normalize(image, dim=1).T / TEMPERATURE
    if healthy:
        log_p = F.log_softmax(logits, dim=1)
    else:
        e = torch.exp(logits)
        log_p = torch.log(e / e.sum(1, keepdim=True))
    return -log_p.diagonal().mean()


def dishes(n, mix_text, mix_image):
    dish = torch.randn(n, 10)
    text = torch.tanh(dish @ mix_text) + 0.2 * torch.randn(n, 40)
    image = torch.tanh(dish @ mix_image) + 0.2 * torch.randn(n, 60)
    return text, image


mixes = torch.randn(10, 40) / 3, torch.randn(10, 60) / 3
text, image = dishes(1600, *mixes)
val_text, val_image = dishes(200, *mixes)
text_tower, image_tower = tower(40), tower(60)
optimizer = torch.optim.Adam([*text_tower.parameters(), *image_tower.parameters()], lr=1e-3)

for epoch in range(12):
    for rows in torch.randperm(1600).split(64):
        loss = contrast(text_tower(text[rows]), image_tower(image[rows]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        a = F.normalize(text_tower(val_text), dim=1)
        b = F.normalize(image_tower(val_image), dim=1)
        hit = ((a @ b.T).argmax(1) == torch.arange(200)).float().mean().item()
    print(f"epoch {epoch + 1}: loss {loss.item():.3f} recall@1 {hit:.3f}")
