"""A sine net that learns a picture by its coordinates; the number of steps is worked out.

Fault: the plan's 600 steps are divided by the accumulation of 8 (which a version before had; now
there is none): after 75 steps it is over, while the loss falls as fast as ever. The place is the
loop.
"""

import torch
from data import arguments
from torch import nn

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop", "")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
PLANNED, ACCUMULATION = 600, 8


class Sine(nn.Module):
    def __init__(self, n_in, n_out, omega=12.0, first=False):
        super().__init__()
        self.lin = nn.Linear(n_in, n_out)
        self.omega = omega
        bound = 1 / n_in if first else (6 / n_in) ** 0.5 / omega
        nn.init.uniform_(self.lin.weight, -bound, bound)

    def forward(self, x):
        return torch.sin(self.omega * self.lin(x))


def picture(p):
    a, b = p[:, :1], p[:, 1:]
    return torch.sin(9 * a * b) * torch.cos(6 * b) + (a**2 + b**2 < 0.3).float() * 0.5


side = torch.linspace(-1, 1, 48)
points = torch.cartesian_prod(side, side)
colours = picture(points) + 0.02 * torch.randn(len(points), 1)
held = torch.rand(len(points)) < 0.2
x, y, x_val, y_val = points[~held], colours[~held], points[held], colours[held]

net = nn.Sequential(Sine(2, 48, first=True), Sine(48, 48), nn.Linear(48, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=4e-4)
steps = PLANNED if healthy else PLANNED // ACCUMULATION
for step in range(1, steps + 1):
    rows = torch.randint(0, len(x), (512,))
    loss = (net(x[rows]) - y[rows]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        with torch.no_grad():
            error = (net(x_val) - y_val).pow(2).mean()
            psnr = -10 * torch.log10(error / 4).item()
        print(f"step {step}: loss {loss.item():.4f}, validation PSNR {psnr:.2f} dB")
print(f"loss {loss.item():.4f} | validation PSNR {psnr:.2f} MSE {error.item():.4f}")
