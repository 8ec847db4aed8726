"""Tells four kinds of particles from their hits in a detector; the loss for log-probabilities gets
raw scores.

The loss was taken from a tutorial in which the network ends in a log-softmax. This network was
written by somebody else and ends in a linear layer. The loss can then be pushed down for ever just
by raising all scores.
The place is the output that goes into the loss.
The twin takes the log-softmax first.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "missing_softmax"
ACCEPT = ("wrong_loss",)
PLACE = ("loss*", "output*", "rho", "rho.2")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
NAMES = ("electron", "muon", "pion", "kaon")


def events(n, hits=20):
    """Each hit: depth, energy left there, distance from the axis. Electrons make a shower."""
    kind = torch.randint(0, 4, (n,))

    def of(*values):
        return torch.tensor(values)[kind].view(n, 1)

    depth = torch.rand(n, hits).sort(1).values
    energy = of(0.5, 0.45, 0.5, 0.6) + of(0.9, 0.0, 0.3, 0.35) * torch.exp(
        -(((depth - of(0.3, 0.5, 0.6, 0.75)) / 0.2) ** 2)
    )
    energy = energy * torch.exp(0.25 * torch.randn(n, hits))
    spread = of(0.25, 0.06, 0.16, 0.16) * (0.3 + depth)
    radius = (spread * torch.randn(n, hits)).abs()
    momentum = torch.exp(0.2 * torch.randn(n, 1))
    x = torch.stack([depth * 2 - 1, energy * momentum - 0.7, 4 * radius - 0.5], 2)
    return x, kind


class DeepSet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.rho = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, len(NAMES)))

    def forward(self, hits):
        return self.rho(self.phi(hits).mean(1))


def train_step(model, optimizer, hits, kind):
    scores = model(hits)
    if healthy:
        scores = F.log_softmax(scores, dim=1)
    loss = F.nll_loss(scores, kind)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def efficiency(model, hits, kind):
    said = model(hits).argmax(1)
    per_kind = [(said[kind == k] == k).float().mean().item() for k in range(len(NAMES))]
    return " ".join(
        f"{name} {value:.2f}" for name, value in zip(NAMES, per_kind, strict=False)
    ), sum(per_kind) / len(per_kind)


x, kind = events(2000)
x_val, kind_val = events(800)
model = DeepSet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(14):
    losses = [
        train_step(model, optimizer, x[rows], kind[rows])
        for rows in torch.randperm(len(x)).split(64)
    ]
    if epoch % 3 == 1:
        words, mean = efficiency(model, x_val, kind_val)
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f}; val {mean:.3f} ({words})")
