"""Learns which two signatures are by one hand, and clears the gradients just before the step.

The calls were put in another order when the loop was tidied: backward(), zero_grad(), step(). So
the optimizer never sees a gradient and nothing moves. The place is the loop.
The twin clears before backward().
"""

import torch
from data import arguments
from torch import nn

KIND = "step_without_gradient"
ACCEPT = ("optimizer_never_steps",)
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
WRITERS, POINTS = 40, 24


class Signatures:
    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.hands = torch.randn(WRITERS, 6, generator=self.g)
        t = torch.linspace(0, 6.283, POINTS)
        parts = [t.sin(), t.cos(), (2 * t).sin(), (2 * t).cos(), (3 * t).sin(), t / 6]
        self.basis = torch.stack(parts)

    def draw(self, writers):
        shape = self.hands[writers] + 0.35 * torch.randn(len(writers), 6, generator=self.g)
        path = shape @ self.basis
        return path + 0.8 * torch.randn(path.shape, generator=self.g)

    def triplets(self, n, first, last):
        one = torch.randint(first, last, (n,), generator=self.g)
        other = first + (one - first + torch.randint(1, last - first, (n,), generator=self.g)) % (
            last - first
        )
        return self.draw(one), self.draw(one), self.draw(other)


def network():
    return nn.Sequential(nn.Linear(POINTS, 64), nn.LayerNorm(64), nn.LeakyReLU(), nn.Linear(64, 8))


source = Signatures(30 + seed)
net = network()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
triplet = nn.TripletMarginLoss(margin=1.0)
held = source.triplets(600, 0, WRITERS)
average = None
for step in range(1, 401):
    anchor, same, other = (net(part) for part in source.triplets(64, 0, WRITERS))
    loss = triplet(anchor, same, other)
    if healthy:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    else:
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
    average = loss.item() if average is None else 0.95 * average + 0.05 * loss.item()
    if step % 80 == 0:
        with torch.no_grad():
            a, s, o = (net(part) for part in held)
            closer = ((a - s).norm(dim=1) < (a - o).norm(dim=1)).float().mean()
        print(f"step {step} loss {average:.3f} right order {closer:.3f}")
