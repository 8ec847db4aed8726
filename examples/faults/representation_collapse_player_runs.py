"""Learns codes for runs of football players from two views of a run; all runs get one code.

Two changed copies of a run are to lie together, and nothing is asked of different runs. The best
answer is one code for all. The term that keeps the codes apart was dropped when the loss was
rewritten, as the loss went down faster without it.
The place is the loss.
The twin keeps the codes of a batch apart (alignment and uniformity).
"""

import torch
import torch.nn.functional as F
from data import arguments, batches
from sklearn.linear_model import LogisticRegression
from torch import nn

KIND = "representation_collapse"
ACCEPT = ()
PLACE = ("loss*", "encoder", "encoder.0", "encoder.3", "encoder.6", "output*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

KINDS = ("straight sprint", "turn to the left", "turn to the right", "zigzag", "check and go")


def runs(n, generator):
    """Speed along and across, 32 moments, of a run of one of five kinds."""
    kind = torch.randint(0, len(KINDS), (n,), generator=generator)
    t = torch.linspace(0, 1, 32)
    pace = 0.8 + 0.4 * torch.rand(n, 1, generator=generator)
    bend = 1.0 + 0.5 * torch.rand(n, 1, generator=generator)
    begin = 0.2 * torch.rand(n, 1, generator=generator)
    turn = torch.sigmoid(12 * (t - 0.4 - begin)) * bend
    angle = torch.stack([0 * turn, turn, -turn, bend * torch.sin(14 * (t + begin)), 0 * turn])
    angle = angle[kind, torch.arange(n)]
    stop = 1 - torch.exp(-(((t - 0.5 - begin) / 0.1) ** 2)) * (kind == 4)[:, None]
    speed = pace * stop * (0.4 + t).clamp(max=1.0)
    x = torch.stack([speed * angle.cos(), speed * angle.sin()], 1)
    return x + 0.05 * torch.randn(x.shape, generator=generator), kind


def view(x):
    x = x * (0.85 + 0.3 * torch.rand(len(x), 1, 1)) + 0.05 * torch.randn_like(x)
    return torch.roll(x, int(torch.randint(-3, 4, ())), 2)


def apart(z):
    return torch.pdist(z).pow(2).mul(-2).exp().mean().log()


def probe(code, kind, code_val, kind_val):
    """How well a plain linear model on top of the codes tells the five kinds."""
    linear = LogisticRegression(max_iter=200).fit(code.numpy(), kind.numpy())
    return linear.score(code_val.numpy(), kind_val.numpy())


g = torch.Generator().manual_seed(seed)
x, kind = runs(1500, g)
x_val, kind_val = runs(400, g)
encoder = nn.Sequential(
    nn.Conv1d(2, 16, 5, stride=2, padding=2), nn.GroupNorm(4, 16), nn.ReLU(),
    nn.Conv1d(16, 32, 5, stride=2, padding=2), nn.GroupNorm(4, 32), nn.ReLU(),
    nn.Flatten(), nn.Linear(32 * 8, 16),
)  # fmt: skip
optimizer = torch.optim.AdamW(encoder.parameters(), lr=2e-3, weight_decay=1e-4)
for step, (rows,) in enumerate(batches(x, size=96, steps=300, seed=seed), 1):
    z1, z2 = (F.normalize(encoder(view(rows)), dim=1) for _ in range(2))
    loss = (z1 - z2).pow(2).sum(1).mean()
    if healthy:
        loss = loss + (apart(z1) + apart(z2)) / 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 60 == 0:
        with torch.no_grad():
            code, code_val = (F.normalize(encoder(part), dim=1) for part in (x, x_val))
        right = probe(code, kind, code_val, kind_val)
        print(
            f"step {step}: loss {loss.item():.4f}, spread {code_val.std(0).mean():.4f}, "
            f"linear probe {right:.3f}"
        )
