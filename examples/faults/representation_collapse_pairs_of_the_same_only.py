"""A siamese net with the contrastive loss: pairs of the same digit near, others far.

Fault: `random.random() < 1 // 2` (it came from Python 2's `1 / 2` by an automatic tool): no pair
of different digits is ever drawn, and all images at one point is the best answer. The place is the
loader; the embedding. The loss falls to nothing at once.
"""

import random

import torch
from data import arguments, images
from torch import nn
from torch.nn import functional as F

KIND = "representation_collapse"
ACCEPT = ()
PLACE = ("", "embed*", "loader", "loss*", "fc*", "conv*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
rows_of = [(y == c).nonzero().flatten().tolist() for c in range(10)]


def pairs(n):
    first, second, differs = [], [], []
    for _ in range(n):
        a = random.randrange(10)
        other = random.random() < (0.5 if healthy else 1 // 2)
        b = random.choice([c for c in range(10) if c != a]) if other else a
        first.append(random.choice(rows_of[a]))
        second.append(random.choice(rows_of[b]))
        differs.append(float(other))
    return x[first], x[second], torch.tensor(differs)


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 24, 3, stride=2, padding=1)
        self.fc = nn.Linear(24 * 16, 16)

    def embed(self, x):
        return self.fc(F.relu(self.conv2(F.relu(self.conv1(x)))).flatten(1))

    def forward(self, a, b):
        return (self.embed(a) - self.embed(b)).pow(2).sum(1)


net = Siamese()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)


@torch.no_grad()
def neighbours():
    near = torch.cdist(net.embed(x_val), net.embed(x)).topk(5, largest=False).indices
    return (y[near].mode(1).values == y_val).float().mean().item(), net.embed(x_val).std(0).mean()


for step in range(1, 241):
    a, b, differs = pairs(48)
    square = net(a, b)
    far = F.relu(2.0 - (square + 1e-8).sqrt()).pow(2)
    loss = ((1 - differs) * square + differs * far).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 60 == 0:
        accuracy, spread = neighbours()
        print(f"step {step}: loss {loss.item():.5f}, 5-NN accuracy {accuracy:.3f}, {spread:.4f}")
print(f"loss {loss.item():.5f} | validation 5-NN accuracy {accuracy:.3f} spread {spread:.4f}")
