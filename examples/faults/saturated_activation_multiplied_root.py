"""A peptide binding model with tanh layers; the pre-activations are multiplied by the root of the
width instead of left alone.

The block has a "temperature" copied from attention, sqrt(width), but multiplied where attention
divides; nearly all tanh units sit at -1 or 1 from the first step, and little gradient passes. The
place is TanhBlock (blocks.*).
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "saturated_activation"
ACCEPT = ("vanishing_gradient", "poor_weight_init")
PLACE = ("blocks*", "*act*", "*tanh*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

AMINO = "ACDEFGHIKLMNPQRSTVWY"
LENGTH, WIDTH, DEPTH = 9, 128, 3


class TanhBlock(nn.Module):
    def __init__(self, n_in, width):
        super().__init__()
        self.proj = nn.Linear(n_in, width)
        self.act = nn.Tanh()
        self.temperature = 1.0 if healthy else math.sqrt(width)

    def forward(self, x):
        return self.act(self.proj(x) * self.temperature)


class Binder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(len(AMINO), 16)
        sizes = [LENGTH * 16] + [WIDTH] * DEPTH
        self.blocks = nn.ModuleList(
            TanhBlock(a, b)
            for a, b in zip(sizes[:-1], sizes[1:], strict=False)  # noqa: RUF007
        )
        self.affinity = nn.Linear(WIDTH, 1)

    def forward(self, peptide):
        h = self.embed(peptide).flatten(1)
        for block in self.blocks:
            h = block(h)
        return self.affinity(h).squeeze(-1)


def simulate(n, g, table, pair):
    """Binding energy: position-specific contributions and an interaction of the two anchors, with assay noise."""  # noqa: E501
    p = torch.randint(0, len(AMINO), (n, LENGTH), generator=g)
    energy = table[torch.arange(LENGTH), p].sum(1) / 3 + 0.6 * pair[p[:, 1], p[:, 8]]
    return p, energy + 0.2 * torch.randn(n, generator=g)


g = torch.Generator().manual_seed(100 + seed)
table = torch.randn(LENGTH, len(AMINO), generator=g)
pair = torch.randn(len(AMINO), 3, generator=g) @ torch.randn(3, len(AMINO), generator=g) / 1.7
train_p, train_y = simulate(20000, g, table, pair)
val_p, val_y = simulate(1500, g, table, pair)
centre, scale = train_y.mean(), train_y.std()
train_y, val_y = (train_y - centre) / scale, (val_y - centre) / scale

model = Binder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
max_steps, batch = 900, 128
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda s: min(1.0, (s + 1) / 100) * 0.5 * (1 + math.cos(math.pi * s / max_steps))
)
for step in range(max_steps):
    rows = torch.randint(0, len(train_p), (batch,))
    loss = F.mse_loss(model(train_p[rows]), train_y[rows])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    scheduler.step()
    if (step + 1) % 100 == 0:
        model.eval()
        with torch.no_grad():
            out = model(val_p)
            r2 = 1 - F.mse_loss(out, val_y) / val_y.var()
            r = torch.corrcoef(torch.stack([out, val_y]))[0, 1]
        model.train()
        print(
            f"step {step + 1:5d} | train mse {loss.item():.3f} | val R2 {r2:.3f} | pearson {r:.3f}"
        )
