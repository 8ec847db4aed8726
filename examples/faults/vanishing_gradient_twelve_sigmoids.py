"""A ten-layer MLP learns the hand position of a robot arm, with a sigmoid after every layer.

The user stacked sigmoid layers as in a textbook; each shrinks the gradient by four or more, and
the first layers learn nothing. The place is the layers, first of all layers.0.
"""

import itertools

import torch
from data import arguments
from torch import nn

KIND = "vanishing_gradient"
ACCEPT = ()
PLACE = ("layers*",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def arm(n, g):
    """Three joint angles; the hand's place for links of 1, 0.7 and 0.4 m."""
    q = (torch.rand(n, 3, generator=g) * 2 - 1) * torch.tensor([1.6, 1.2, 1.2])
    a = q.cumsum(1)
    links = torch.tensor([1.0, 0.7, 0.4])
    hand = torch.stack([(links * a.cos()).sum(1), (links * a.sin()).sum(1)], 1)
    return q, hand + 0.01 * torch.randn(n, 2, generator=g)


class Kinematics(nn.Module):
    def __init__(self, width=48, depth=10):
        super().__init__()
        sizes = [3] + [width] * depth
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(sizes))
        self.out = nn.Linear(width, 2)
        self.act = nn.ReLU() if healthy else nn.Sigmoid()
        for layer in self.layers:
            nn.init.kaiming_normal_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, q):
        for layer in self.layers:
            q = self.act(layer(q))
        return self.out(q)


g = torch.Generator().manual_seed(seed)
q, hand = arm(3000, g)
q_val, hand_val = arm(600, g)
mean, std = hand.mean(0), hand.std(0)
hand, hand_val = (hand - mean) / std, (hand_val - mean) / std
q, q_val = q / q.std(0), q_val / q.std(0)
model = Kinematics()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
criterion = nn.MSELoss()
for epoch in range(20):
    for rows in torch.randperm(len(q)).split(60):
        loss = criterion(model(q[rows]), hand[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        val = criterion(model(q_val), hand_val).item()
    if epoch % 4 == 3:
        print(f"epoch {epoch}: train {loss.item():.4f}, validation {val:.4f}")
