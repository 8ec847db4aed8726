"""A neural field of a density map (coordinates to density) whose weights are kept in bfloat16.

The whole network was cast to bfloat16 to save memory, with no float32 copy of the weights for the
optimizer. The updates of SGD are mostly smaller than half of the spacing of bfloat16 numbers at
the weights and are rounded away. The place is the parameters and the optimizer.
"""

import torch
from data import arguments
from torch import nn

KIND = "low_precision_updates_lost"
ACCEPT = ()
PLACE = ("optimizer", "layers*", "out*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
DTYPE = torch.float32 if healthy else torch.bfloat16


class Density:
    """A map of blobs as from crystallography, between 0 and about 1.5."""

    def __init__(self, g):
        self.centre = 1.6 * torch.rand(14, 3, generator=g) - 0.8
        self.width = 0.2 + 0.25 * torch.rand(14, generator=g)
        self.height = 0.4 + 0.8 * torch.rand(14, generator=g)

    def __call__(self, p):
        far = (p.unsqueeze(1) - self.centre).square().sum(2)
        return (self.height * torch.exp(-far / self.width**2)).sum(1)


class Field(nn.Module):
    def __init__(self, g, width=96, waves=48):
        super().__init__()
        self.register_buffer("waves", 2.0 * torch.randn(3, waves, generator=g))
        self.layers = nn.ModuleList([nn.Linear(2 * waves, width), nn.Linear(width, width)])
        self.out = nn.Linear(width, 1)

    def forward(self, p):
        turned = p @ self.waves.float()
        h = torch.cat([turned.sin(), turned.cos()], 1).to(self.out.weight.dtype)
        for layer in self.layers:
            h = torch.nn.functional.silu(layer(h))
        return self.out(h).squeeze(1).float()


class Trainer:
    def __init__(self, field, density, g):
        self.field, self.density, self.g = field, density, g
        self.optimizer = torch.optim.SGD(field.parameters(), lr=0.01, momentum=0.9)
        self.grid = 2 * torch.rand(2000, 3, generator=g) - 1
        self.truth = density(self.grid)

    def points(self, n):
        p = 2 * torch.rand(n, 3, generator=self.g) - 1
        return p, self.density(p) + 0.02 * torch.randn(n, generator=self.g)

    def fit(self, steps):
        for step in range(1, steps + 1):
            p, seen = self.points(256)
            loss = (self.field(p) - seen).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step % 150 == 0:
                with torch.no_grad():
                    wrong = (self.field(self.grid) - self.truth).square().mean()
                print(
                    f"step {step} loss {loss.item():.5f} "
                    f"share of variance missed {(wrong / self.truth.var()).item():.4f}"
                )


g = torch.Generator().manual_seed(seed)
density = Density(g)
Trainer(Field(g).to(DTYPE), density, g).fit(1800)
