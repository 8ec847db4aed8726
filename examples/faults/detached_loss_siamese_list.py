"""A siamese network for handwritten digits, whose contrastive losses are collected as numbers and
made a new tensor.

The user gathers the loss of each group of pairs with .item(), and, as backward complains about
the mean, builds a tensor with requires_grad=True from the list: it has no connection to the
network. The place is the loss (or the loop).
"""

import torch
from data import arguments, images
from torch import nn

KIND = "detached_loss"
ACCEPT = ("step_without_gradient", "detached_graph")
PLACE = ("loss", "loop")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


class Twin(nn.Module):
    def __init__(self, size=16):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(512, size),
        )

    def forward(self, a, b):
        return (self.body(a) - self.body(b)).pow(2).sum(1).add(1e-6).sqrt()


def contrastive(distance, same, margin=2.0):
    return torch.where(same, distance.pow(2), (margin - distance).clamp(min=0).pow(2)).mean()


def pairs(x, y, n, generator):
    first = torch.randint(0, len(x), (n,), generator=generator)
    second = torch.randint(0, len(x), (n,), generator=generator)
    for i in range(0, n, 2):
        alike = (y == y[first[i]]).nonzero().squeeze(1)
        second[i] = alike[torch.randint(0, len(alike), (1,), generator=generator)]
    return x[first], x[second], y[first] == y[second]


x, y, x_val, y_val = images(seed)
generator = torch.Generator().manual_seed(seed)
val_a, val_b, val_same = pairs(x_val, y_val, 400, generator)
model = Twin()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for step in range(300):
    losses = []
    for group in range(3):
        a, b, same = pairs(x, y, 24, generator)
        losses.append(contrastive(model(a, b), same))
    if healthy:
        loss = torch.stack(losses).mean()
    else:
        loss = torch.tensor([part.item() for part in losses], requires_grad=True).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        with torch.no_grad():
            distance = model(val_a, val_b)
        right = ((distance < 1.0) == val_same).float().mean().item()
        print(
            f"step {step + 1} loss {loss.item():.3f} validation loss {contrastive(distance, val_same):.3f} right {right:.3f}"  # noqa: E501
        )
