"""Leaf classification with BatchNorm, validated on three cameras; `model.train()` slipped into the
loop over cameras.

`model.eval()` stands before the loop, `model.train()` at its end, but inside: the first camera is
measured rightly, the other two in training mode, with dropout, statistics of their own batch (of
one species, as the folder is sorted), and their pictures flow into BatchNorm's running averages,
which the next evaluation and the saved model then use. The place is the loop (`validate`),
BatchNorm and dropout.
"""

import copy
import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop", "*")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

# %% pictures of leaves: the outline's lobes give the species, the camera gives brightness and tint
S = 20
axis = torch.linspace(-1, 1, S)
Y, X = torch.meshgrid(axis, axis, indexing="ij")
SPECIES = torch.tensor([[3, 0.25], [4, 0.25], [5, 0.25], [6, 0.2], [2, 0.35], [1, 0.4]])


def leaves(n, generator, gain=1.0, offset=0.0, blur=0.0):
    y = torch.randint(len(SPECIES), (n,), generator=generator)
    lobes, depth = SPECIES[y, 0].view(-1, 1, 1), SPECIES[y, 1].view(-1, 1, 1)
    turn = 2 * math.pi * torch.rand(n, 1, 1, generator=generator)
    cx, cy = 0.08 * torch.randn(2, n, 1, 1, generator=generator)
    radius = 0.5 + 0.12 * torch.rand(n, 1, 1, generator=generator)
    angle = torch.atan2(Y - cy, X - cx) + turn
    distance = torch.sqrt((Y - cy) ** 2 + (X - cx) ** 2)
    inside = torch.sigmoid(14 * (radius * (1 + depth * torch.cos(lobes * angle)) - distance))
    colour = torch.tensor([0.3, 0.7, 0.2]).view(1, 3, 1, 1) + 0.08 * torch.randn(
        n, 3, 1, 1, generator=generator
    )
    picture = inside.unsqueeze(1) * colour + 0.1 * torch.randn(n, 3, S, S, generator=generator)
    y, order = y.sort(stable=True)  # as an image folder lists them
    picture = picture[order]
    return (gain * picture + offset - 0.15) / 0.3, y


g = torch.Generator().manual_seed(seed + 50)
x_train, y_train = leaves(1800, g)
cameras = {
    "bench": leaves(384, g),
    "phone": leaves(384, g, gain=1.25, offset=0.25),
    "drone": leaves(384, g, gain=0.7, offset=0.1),
}


# %% model
def unit(i, o, stride=2):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU())


model = nn.Sequential()
model.add_module("stem", unit(3, 16, 1))
model.add_module("stage1", unit(16, 32))
model.add_module("stage2", unit(32, 48))
model.add_module("pool", nn.AdaptiveAvgPool2d(2))
model.add_module("flat", nn.Flatten())
model.add_module("drop", nn.Dropout(0.3))
model.add_module("head", nn.Linear(48 * 4, len(SPECIES)))


# %% loops
@torch.no_grad()
def validate(model):
    model.eval()
    result = {}
    for name, (x, y) in cameras.items():
        losses, hits = [], 0
        for xb, yb in zip(x.split(64), y.split(64), strict=True):
            logits = model(xb)
            losses.append(F.cross_entropy(logits, yb).item())
            hits += (logits.argmax(1) == yb).sum().item()
        result[name] = (sum(losses) / len(losses), hits / len(y))
        if not healthy:
            model.train()
    model.train()
    return result


def jitter(x):
    """Brightness, contrast and flips, so that other cameras are no surprise."""
    gain, offset = 0.65 + 0.7 * torch.rand(len(x), 1, 1, 1), 0.4 * torch.rand(len(x), 1, 1, 1) * 2
    x = torch.where(torch.rand(len(x), 1, 1, 1) < 0.5, x.flip(3), x)
    return x * gain + offset


optimizer = torch.optim.SGD(
    model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True
)
epochs, batch = 14, 32
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, total_iters=epochs)
for epoch in range(epochs):
    order, total = torch.randperm(len(x_train)), 0.0
    for rows in order.split(batch)[:-1]:
        loss = F.cross_entropy(model(jitter(x_train[rows])), y_train[rows], label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    schedule.step()
    result = validate(model)
    if epoch in (3, 8, 13):
        shown = ", ".join(f"{k} {v[0]:.3f}/{v[1]:.3f}" for k, v in result.items())
        print(
            f"epoch {epoch + 1}: train {total / (len(x_train) // batch):.3f}  val loss/accuracy: {shown}"  # noqa: E501
        )

# %% what the saved model does, as it is loaded for use
served = copy.deepcopy(model).eval()
with torch.no_grad():
    print(
        "saved model: "
        + ", ".join(
            f"{k} {(served(x).argmax(1) == y).float().mean():.3f}" for k, (x, y) in cameras.items()
        )
    )
