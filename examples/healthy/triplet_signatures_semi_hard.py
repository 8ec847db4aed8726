"""Whose signature is it? A net for pen strokes learns distances by semi-hard triplets.

Three copies share their weights. Most triplets are at zero in the end, the mean over the others is
the loss, so it does not get small; the test is about writers that were never seen.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = "a loss over the hard triplets only, which stands still while the distances get better"

LENGTH = 48


class Writers:
    """A hand is a handful of frequencies of the pen in x and y; a signature is bent and shaken."""

    def __init__(self, n):
        self.frequency = torch.arange(1, 5) / 1.5 + 0.5 * torch.rand(n, 2, 4)
        self.phase = 6.283 * torch.rand(n, 2, 4)
        self.size = torch.rand(n, 2, 4) / torch.arange(1, 5) ** 0.5

    def sign(self, who):
        t = torch.linspace(0, 1, LENGTH)
        speed = 1 + 0.08 * torch.randn(len(who), 1)
        t = (t * speed + 0.03 * torch.sin(3 * t + 6 * torch.rand(len(who), 1)))[:, None, None, :]
        angle = 6.283 * self.frequency[who, :, :, None] * t + self.phase[who, :, :, None]
        size = self.size[who] * (1 + 0.35 * torch.randn(len(who), 2, 4))
        pen = (size.unsqueeze(-1) * angle.sin()).sum(2)
        return pen - pen.mean(2, keepdim=True) + 0.15 * torch.randn_like(pen)


class Embed(nn.Module):
    def __init__(self, width=32, out=24):
        super().__init__()
        self.conv1 = nn.Conv1d(2, width, 7, stride=2, padding=3)
        self.conv2 = nn.Conv1d(width, width, 5, stride=2, padding=2)
        self.norm1, self.norm2 = nn.BatchNorm1d(width), nn.BatchNorm1d(width)
        self.project = nn.Linear(width * LENGTH // 4, out)

    def forward(self, pen):
        h = F.relu(self.norm1(self.conv1(pen)))
        h = F.relu(self.norm2(self.conv2(h)))
        return F.normalize(self.project(h.flatten(1)), dim=1)


def semi_hard_triplets(z, who, margin):
    """For each pair of one hand the nearest other hand that is farther away than the partner."""
    distance = (2 - 2 * z @ z.T).clamp(min=0)
    same = who[:, None] == who
    anchor, positive = (same & ~torch.eye(len(who), dtype=torch.bool)).nonzero(as_tuple=True)
    d_positive = distance[anchor, positive]
    d_all = distance[anchor].masked_fill(same[anchor], float("inf"))
    farther = d_all.masked_fill(d_all <= d_positive[:, None], float("inf")).amin(1)
    d_negative = torch.where(farther.isinf(), d_all.amin(1), farther)
    each = F.relu(d_positive - d_negative + margin)
    active = each > 0
    return each.sum() / active.sum().clamp(min=1), active.float().mean().item()


def verification(net, writers):
    """Area under the curve of the distances of pairs."""
    net.eval()
    n = len(writers.size)
    with torch.no_grad():
        one, two = (net(writers.sign(torch.arange(n))) for _ in range(2))
    distance = torch.cdist(one, two)
    own = distance.diagonal()
    other = distance[~torch.eye(n, dtype=torch.bool)]
    return (own[:, None] < other).float().mean().item()


_, seed = arguments(__doc__)
known, strangers = Writers(300), Writers(150)
net = Embed()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.01)
for step in range(300):
    net.train()
    who = torch.randint(0, 300, (16,)).repeat_interleave(4)
    loss, active = semi_hard_triplets(net(known.sign(who)), who, margin=0.4)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 60 == 59 or step == 0:
        print(
            f"step {step + 1}: loss {loss.item():.3f}, active {active:.2f}, "
            f"strangers told apart {verification(net, strangers):.4f}"
        )
