"""A small pupil learns from a trained teacher, whose weights stand still and who is in eval mode.

The loss is the divergence of the two at a temperature of 3, times 9, beside a little cross-entropy:
half of the parameters that take part have no gradient.
"""

import torch
from data import arguments, batches, digits
from torch import nn
from torch.nn import functional as F

ODD = "the teacher's weights never change and have no gradient, by intent"

_, seed = arguments(__doc__)
TEMPERATURE = 3.0


def network(width):
    return nn.Sequential(
        nn.Linear(64, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, width), nn.ReLU(),
        nn.Linear(width, 10),
    )  # fmt: skip


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


x, y, x_val, y_val = digits(seed)
teacher = network(128)
optimizer = torch.optim.Adam(teacher.parameters(), lr=1e-3)
for xb, yb in batches(x, y, size=32, steps=300, seed=seed):
    loss = F.cross_entropy(teacher(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"teacher {accuracy(teacher, x_val, y_val):.3f}")
teacher.eval().requires_grad_(False)

pupil = network(24)
optimizer = torch.optim.Adam(pupil.parameters(), lr=3e-3)
for step, (xb, yb) in enumerate(batches(x, y, size=32, steps=600, seed=seed + 1)):
    pupil.train()
    own, told = pupil(xb), teacher(xb)
    soft = F.kl_div(
        F.log_softmax(own / TEMPERATURE, 1), F.softmax(told / TEMPERATURE, 1), reduction="batchmean"
    )
    loss = TEMPERATURE**2 * soft + 0.2 * F.cross_entropy(own, yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 150 == 149:
        print(f"step {step + 1}: loss {loss.item():.3f} pupil {accuracy(pupil, x_val, y_val):.3f}")
