"""A small CNN that tells seeds apart learns from the guesses of an old sorting machine.

The machine names a wrong kind for 45 of 100 seeds, and its log was taken for the labels in place of
the laboratory's. The training loss stays high and falls further only as wrong names are learned by
heart, and held-out accuracy suffers. The place is the labels of the training set.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "label_noise"
ACCEPT = ()
PLACE = ("labels*", "loss", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

SIDE, EPOCHS, BATCH = 16, 20, 32


def draw_seeds(n, rng):
    """Round or long seeds, plain or striped, in any direction."""
    kind = rng.integers(0, 4, n)
    rows, columns = np.meshgrid(np.linspace(-1, 1, SIDE), np.linspace(-1, 1, SIDE), indexing="ij")
    angle = rng.uniform(0, np.pi, n)[:, None, None]
    along = columns * np.cos(angle) + rows * np.sin(angle)
    across = rows * np.cos(angle) - columns * np.sin(angle)
    length = rng.uniform(0.6, 0.85, n)[:, None, None]
    slim = np.where(kind < 2, rng.uniform(0.8, 1.0, n), rng.uniform(0.4, 0.6, n))[:, None, None]
    body = (along / length) ** 2 + (across / (length * slim)) ** 2 < 1
    stripes = 0.35 * np.sin(9 * across + rng.uniform(0, 6.28, n)[:, None, None])
    shade = 0.7 + np.where(kind % 2 == 1, 1.0, 0.0)[:, None, None] * stripes
    image = body * shade + rng.normal(0, 0.15, (n, SIDE, SIDE))
    return image.astype(np.float32)[:, None], kind


def machine_log(kind, rng):
    wrong = rng.random(len(kind)) < 0.45
    return np.where(wrong, (kind + rng.integers(1, 4, len(kind))) % 4, kind)


def network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 16, 64), nn.ReLU(), nn.Linear(64, 4),
    )  # fmt: skip


rng = np.random.default_rng(seed)
images, lab_kind = draw_seeds(1100, rng)
logged_kind = machine_log(lab_kind, rng)
images = torch.tensor((images - images[:700].mean()) / images[:700].std())
lab_kind, logged_kind = torch.tensor(lab_kind), torch.tensor(logged_kind)
train = {"image": images[:700], "kind": (lab_kind if healthy else logged_kind)[:700]}
held_out = {"image": images[700:], "kind": lab_kind[700:]}

model = network()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
for epoch in range(EPOCHS):
    model.train()
    losses = []
    for rows in torch.randperm(700).split(BATCH):
        batch = {name: values[rows] for name, values in train.items()}
        loss = F.cross_entropy(model(batch["image"]), batch["kind"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    schedule.step()
    model.eval()
    with torch.no_grad():
        scores = model(held_out["image"])
        val_loss = F.cross_entropy(scores, held_out["kind"]).item()
        accuracy = (scores.argmax(1) == held_out["kind"]).float().mean().item()
    if epoch % 4 == 3:
        print(f"{epoch + 1:3d} train {np.mean(losses):.3f} val {val_loss:.3f} acc {accuracy:.3f}")
