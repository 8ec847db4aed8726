"""A coordinate net learns the displacement of a plate from measured points, in float16 mixed
precision. The net's output is in centimetres, target and loss are in metres, nothing is scaled.

Errors of millimetres, squared and averaged over 6,144 numbers, leave each point a gradient below
6e-8, the least that float16 knows: what reaches the lower layers is mostly zero. The place is the
field's network.
"""

import itertools

import torch
from data import arguments
from torch import nn

KIND = "gradient_underflow"
ACCEPT = ()
PLACE = ("field*",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class Field(nn.Module):
    def __init__(self, width=32, waves=6):
        super().__init__()
        self.register_buffer("b", 2.0 * torch.randn(2, waves))
        sizes = [2 * waves, width, width, width]
        layers = []
        for i, o in itertools.pairwise(sizes):
            layers += [nn.Linear(i, o), nn.SiLU()]
        self.field = nn.Sequential(*layers, nn.Linear(width, 3))

    def forward(self, at):
        a = at @ self.b
        return 0.01 * self.field(torch.cat([a.sin(), a.cos()], -1))


def displacement(at):
    x, y = at.unbind(-1)
    r = (x**2 + y**2).sqrt()
    return (
        torch.stack(
            [(4 * r + 3 * x).sin(), (5 * x * y + y).cos(), (3 * x - 2 * y).sin() * (2 * y).cos()],
            -1,
        )
        * 0.01
    )


def points(n):
    return 2 * torch.rand(n, 2) - 1


model = Field()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scale = 2.0**16 if healthy else 1.0
g = torch.linspace(-1, 1, 41)
at_val = torch.cartesian_prod(g, g)
for step in range(240):
    at = points(2048)
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(at)
        loss = (out.float() - displacement(at)).pow(2).mean()
    optimizer.zero_grad()
    (loss * scale).backward()
    for p in model.parameters():
        p.grad.div_(scale)
    optimizer.step()
    if step % 20 == 19:
        model.eval()
        with torch.no_grad():
            val = (model(at_val) - displacement(at_val)).pow(2).mean()
        model.train()
        print(
            f"step {step + 1}: loss {loss.item():.3e} val {val.item():.3e}"
            f" rms {100 * val.sqrt().item():.3f} cm"
        )
