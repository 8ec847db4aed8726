"""Learns the score of a mixture of Gaussians by sliced score matching, from samples alone."""

import torch
from data import arguments
from torch import nn

ODD = (
    "the loss is negative and goes on falling; it needs a second derivative, so the input "
    "requires a gradient and the graph is made inside the loss, in validation too"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

MIDDLES = torch.tensor([[-1.5, 0.0], [1.5, 0.5], [0.0, 2.0], [0.3, -1.6]])
WIDTHS = torch.tensor([0.5, 0.7, 0.4, 0.6])


def draw(n):
    which = torch.randint(0, 4, (n,))
    return MIDDLES[which] + WIDTHS[which, None] * torch.randn(n, 2)


def true_score(points):
    points = points.clone().requires_grad_(True)
    squared = (points[:, None] - MIDDLES).square().sum(2)
    density = (-squared / (2 * WIDTHS**2) - 2 * WIDTHS.log()).logsumexp(1)
    return torch.autograd.grad(density.sum(), points)[0]


def sliced_loss(points):
    points = points.clone().requires_grad_(True)
    direction = torch.randn_like(points)
    score = net(points)
    along = (score * direction).sum()
    curvature = (torch.autograd.grad(along, points, create_graph=True)[0] * direction).sum(1)
    return (curvature + 0.5 * score.square().sum(1)).mean()


net = nn.Sequential(
    nn.Linear(2, 96), nn.Softplus(), nn.Linear(96, 96), nn.Softplus(), nn.Linear(96, 2)
)
train, held = draw(5000), draw(1000)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 900)
for step in range(900):
    loss = sliced_loss(train[torch.randint(0, len(train), (256,))])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 150 == 149:
        net.eval()
        print(f"step {step + 1}  loss {loss.item():.3f}  held out {sliced_loss(held).item():.3f}")
        net.train()

net.eval()
wanted = true_score(held)
centred = held - train.mean(0)
gaussian = -centred @ torch.linalg.inv(train.T.cov())
with torch.no_grad():
    error = (net(held) - wanted).square().mean() / wanted.square().mean()
plain = (gaussian - wanted).square().mean() / wanted.square().mean()
print(f"share of the true score missed: Gaussian fit {plain:.3f}, learned {error:.3f}")
