"""A siamese net of the digits that is shown pairs of the same digit only.

The pair sampler draws a partner of the same class and forgets the other half of the pairs. Pulling
together is all that is asked for, so the net maps each image to the same point, and the loss goes
to zero. The place is the pairs ("data") with the loss. The twin draws every other pair from two
different classes.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

KIND = "representation_collapse"
ACCEPT = ()
PLACE = ("loss*", "loader", "input*", "net", "net.7", "net.7.weight")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
members = [torch.nonzero(y == c).squeeze(1) for c in range(10)]


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(32 * 4, 16),
        )

    def forward(self, x):
        return self.net(x)


def sample_pairs(n):
    first = torch.randint(0, len(x), (n,))
    same = torch.rand(n) < 0.5 if healthy else torch.ones(n, dtype=torch.bool)
    second = torch.empty_like(first)
    for k in range(n):
        c = y[first[k]].item()
        if not same[k]:
            c = (c + torch.randint(1, 10, (1,)).item()) % 10
        second[k] = members[c][torch.randint(0, len(members[c]), (1,))]
    return x[first], x[second], same.float()


def contrastive_loss(a, b, same, margin=2.0):
    distance = (a - b).square().sum(1).add(1e-8).sqrt()
    return (same * distance**2 + (1 - same) * F.relu(margin - distance) ** 2).mean()


model = Embedder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(1, 501):
    a, b, same = sample_pairs(48)
    loss = contrastive_loss(model(a), model(b), same)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        model.eval()
        with torch.no_grad():
            code, code_val = model(x), model(x_val)
            centres = torch.stack([code[m].mean(0) for m in members])
            right = (torch.cdist(code_val, centres).argmin(1) == y_val).float().mean().item()
        model.train()
        print(
            f"{step}: loss {loss.item():.5f} spread {code.std(0).mean().item():.4f} "
            f"nearest centre {right:.3f}"
        )
