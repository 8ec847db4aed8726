"""A small segmentation network trained with heavy momentum through pre-empted sessions, whose saved
file has the weights but not the optimizer.

Each session builds SGD anew and loads the weights, so that the velocity of momentum 0.97 is lost
every 12 steps, before it is built up; the training crawls. The place is the optimizer, at the start
of each session.
"""

import io

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "resume_lost_optimizer_state"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

SIZE, SESSIONS, STEPS = 16, 32, 12


def leaves(count):
    grid = torch.linspace(-1, 1, SIZE)
    y, x = torch.meshgrid(grid, grid, indexing="ij")
    centre = torch.rand(count, 2, 1, 1) * 0.8 - 0.4
    angle = torch.rand(count, 1, 1) * 3.14
    length, width = 0.6 + 0.3 * torch.rand(count, 1, 1), 0.3 + 0.2 * torch.rand(count, 1, 1)
    dx, dy = x - centre[:, 0], y - centre[:, 1]
    along = dx * angle.cos() + dy * angle.sin()
    across = dy * angle.cos() - dx * angle.sin()
    mask = ((along / length) ** 2 + (across / width) ** 2 < 1).float()
    vein = (across.abs() < 0.06).float() * mask
    light = 0.3 * x * torch.randn(count, 1, 1) + 0.3 * y * torch.randn(count, 1, 1)
    image = 0.9 * mask - 0.7 * vein + light + 0.35 * torch.randn(count, SIZE, SIZE)
    return image.unsqueeze(1), mask.unsqueeze(1)


def build():
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
        nn.Conv2d(8, 1, 1),
    )  # fmt: skip
    return model, torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.97)


def dice(logits, mask):
    guess = (logits > 0).float()
    return (2 * (guess * mask).sum() / (guess.sum() + mask.sum())).item()


def main():
    image, mask = leaves(600)
    mean, std = image[:480].mean(), image[:480].std()
    image = (image - mean) / std
    generator = torch.Generator().manual_seed(seed)
    saved = None
    for session in range(SESSIONS):
        model, optimizer = build()
        if saved is not None:
            saved.seek(0)
            content = torch.load(saved)
            model.load_state_dict(content["weights"])
            if healthy:
                optimizer.load_state_dict(content["optimizer"])
        model.train()
        for _ in range(STEPS):
            rows = torch.randperm(480, generator=generator)[:24]
            loss = F.binary_cross_entropy_with_logits(model(image[rows]), mask[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        content = {"weights": model.state_dict(), "session": session}
        if healthy:
            content["optimizer"] = optimizer.state_dict()
        saved = io.BytesIO()
        torch.save(content, saved)
        model.eval()
        with torch.no_grad():
            logits = model(image[480:])
            val = F.binary_cross_entropy_with_logits(logits, mask[480:])
        if session % 4 == 3:
            print(f"session {session:2d} train {loss.item():.3f} validation {val:.3f} "
                  f"dice {dice(logits, mask[480:]):.3f}")  # fmt: skip


main()
