"""Road signs are learned against attacks; attack() freezes the net and thaws only its head again.

To spend no time on the gradients of weights, attack() switches requires_grad off for all and
afterwards on for "head" alone: from the first step the convolutions keep their random weights.
The place is the convolutions, model.features.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("features*", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SIDE, TRAIN, EPOCHS, STRENGTH = 14, 800, 18, 0.05


def road_signs(n, rng):
    """Six signs: a disc, a triangle or a square, with a bar across or upright, in any colour."""
    shape, bar = rng.integers(0, 3, n), rng.integers(0, 2, n)
    y, x = np.meshgrid(np.linspace(-1, 1, SIDE), np.linspace(-1, 1, SIDE), indexing="ij")
    dy, dx = (axis - rng.uniform(-0.2, 0.2, (n, 1, 1)) for axis in (y, x))
    inside = np.stack(
        [
            np.hypot(dy, dx) < 0.7,
            (np.abs(dx) < 0.45 * (dy + 0.8)) & (dy < 0.65),
            np.maximum(np.abs(dy), np.abs(dx)) < 0.6,
        ]
    )[shape, np.arange(n)]
    across = np.where(bar[:, None, None] == 0, dy, dx)
    marked = (np.abs(across) < 0.14) & inside
    ground = rng.uniform(-0.8, 0.8, (n, 3, 1, 1))
    sign = ground + rng.choice([-1, 1], ground.shape) * rng.uniform(0.7, 1.3, ground.shape)
    painted = (inside & ~marked)[:, None]
    image = np.where(painted, sign, ground) + rng.normal(0, 0.12, (n, 3, SIDE, SIDE))
    return torch.tensor(image / 0.7, dtype=torch.float32), torch.tensor(2 * shape + bar)


class SignNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        )  # fmt: skip
        self.head = nn.Linear(24 * 9, 6)

    def forward(self, image):
        return self.head(self.features(image))


def attack(model, image, sign):
    model.requires_grad_(False)
    image = image.clone().requires_grad_(True)
    (slope,) = torch.autograd.grad(F.cross_entropy(model(image), sign), image)
    (model if healthy else model.head).requires_grad_(True)
    return (image + STRENGTH * slope.sign()).detach()


@torch.no_grad()
def score(model, images, signs):
    model.eval()
    logits = model(images)
    loss = F.cross_entropy(logits, signs).item()
    return loss, (logits.argmax(1) == signs).float().mean().item()


def main():
    rng = np.random.default_rng(seed)
    images, signs = road_signs(TRAIN + 240, rng)
    model = SignNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for epoch in range(EPOCHS):
        model.train()
        for rows in torch.randperm(TRAIN).split(40):
            clean, wanted = images[rows], signs[rows]
            attacked = attack(model, clean, wanted)
            logits = model(torch.cat([clean, attacked]))
            loss = F.cross_entropy(logits, torch.cat([wanted, wanted]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        scores = score(model, images[TRAIN:], signs[TRAIN:])
        print(f"epoch {epoch:2d} train {loss.item():.3f} val %.3f accuracy %.3f" % scores)
    attacked = attack(model, images[TRAIN:], signs[TRAIN:])
    print(
        "under attack: loss {:.3f} accuracy {:.3f}".format(*score(model, attacked, signs[TRAIN:]))
    )


main()
