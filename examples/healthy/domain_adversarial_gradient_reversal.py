"""Domain-adversarial training: sensors of an old and a new make, labels for the old one alone."""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "one of the two losses hardly falls: its gradient is "
    "reversed on purpose on the way into the features"
)

_, seed = arguments(__doc__)


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


class DANN(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
        self.label = nn.Linear(16, 3)
        self.domain = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x, strength=0.0):
        h = self.features(x)
        return self.label(h), self.domain(Reverse.apply(h, strength)).squeeze(1)


centres = torch.randn(3, 6) * 1.3
offset = torch.randn(4)


def readings(n, new):
    y = torch.randint(0, 3, (n,))
    useful = centres[y] + torch.randn(n, 6)
    make = 0.8 * torch.randn(n, 4) + (offset if new else -offset)
    return torch.cat([useful, make], 1), y


(xs, ys), (xt, _), (xs_val, ys_val), (xt_val, yt_val) = (
    readings(n, new) for n, new in ((1200, False), (1200, True), (400, False), (400, True))
)
both = torch.cat([xs, xt])
xs, xt, xs_val, xt_val = ((p - both.mean(0)) / both.std(0) for p in (xs, xt, xs_val, xt_val))
model = DANN()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-3)
EPOCHS = 15
for epoch in range(EPOCHS):
    strength = 0.3 * (2 / (1 + math.exp(-10 * epoch / EPOCHS)) - 1)
    model.train()
    sums = [0.0, 0.0]
    for a, b in zip(
        torch.randperm(len(xs)).split(40), torch.randperm(len(xt)).split(40), strict=False
    ):
        labels, d_old = model(xs[a], strength)
        _, d_new = model(xt[b], strength)
        task = F.cross_entropy(labels, ys[a])
        d = torch.cat([d_old, d_new])
        domain = F.binary_cross_entropy_with_logits(d, torch.cat([torch.zeros(40), torch.ones(40)]))
        optimizer.zero_grad()
        (task + domain).backward()
        optimizer.step()
        sums = [sums[0] + task.item() / 30, sums[1] + domain.item() / 30]
    model.eval()
    with torch.no_grad():
        old, new = model(xs_val)[0], model(xt_val)[0]
    if epoch % 3 == 2:
        print(
            f"epoch {epoch}: task {sums[0]:.3f} domain {sums[1]:.3f} "
            f"val task {F.cross_entropy(old, ys_val):.3f} "
            f"old {(old.argmax(1) == ys_val).float().mean():.3f} "
            f"new {(new.argmax(1) == yt_val).float().mean():.3f}"
        )
