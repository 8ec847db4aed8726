"""A neural ODE (Euler steps, shared weights) regresses the travel of particles; the step size was
left out.

With h = h + f(h) instead of h = h + dt * f(h) over 40 steps with one ReLU field the state and, on
the way back, the gradient grow by a factor in each step. The place is the field (its layers) and
the solver loop.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "exploding_gradient"
ACCEPT = ("poor_weight_init",)
PLACE = ("field*", "ode*", "encode*", "loop", "model*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

args = {"steps": 700, "batch": 128, "lr": 1e-3, "solver_steps": 40, "dim": 32, "log": 100}


def particles(n, generator):
    """Start, speed and wind of particles in a swirl; where they are after two seconds."""
    pos = torch.randn(n, 2, generator=generator)
    vel = 0.7 * torch.randn(n, 2, generator=generator)
    wind = torch.rand(n, 1, generator=generator)
    x = torch.cat([pos, vel, wind], 1)
    for _ in range(100):
        swirl = torch.stack([-pos[:, 1], pos[:, 0]], 1) * wind
        acc = -0.8 * pos - 0.4 * vel + 1.2 * swirl + 0.6 * torch.sin(2 * pos)
        vel = vel + 0.02 * acc
        pos = pos + 0.02 * vel
    return x, pos + 0.02 * torch.randn(pos.shape, generator=generator)


class Field(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.inner = nn.Linear(dim + 1, 2 * dim)
        self.outer = nn.Linear(2 * dim, dim)

    def forward(self, t, h):
        t = torch.full((h.shape[0], 1), t)
        return self.outer(torch.relu(self.inner(torch.cat([h, t], 1))))


class NeuralODE(nn.Module):
    def __init__(self, dim, n_steps):
        super().__init__()
        self.encode = nn.Linear(5, dim)
        self.field = Field(dim)
        self.decode = nn.Linear(dim, 2)
        self.n_steps = n_steps

    def forward(self, x):
        h = self.encode(x)
        dt = 1.0 / self.n_steps
        for k in range(self.n_steps):
            dh = self.field(k * dt, h)
            h = h + dt * dh if healthy else h + dh
        return self.decode(h)


gen = torch.Generator().manual_seed(seed)
x, y = particles(4000, gen)
x_val, y_val = particles(800, gen)

model = NeuralODE(args["dim"], args["solver_steps"])
optimizer = torch.optim.Adam(model.parameters(), lr=args["lr"])
warm = lambda s: min(1.0, (s + 1) / 50) * 0.5 * (1 + math.cos(math.pi * s / args["steps"]))  # noqa: E731
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, warm)
for step in range(args["steps"]):
    rows = torch.randint(0, len(x), (args["batch"],), generator=gen)
    loss = nn.functional.mse_loss(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if (step + 1) % args["log"] == 0:
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x_val), y_val)
        print(
            f"step {step + 1} train {loss.item():.4g} val {val.item():.4g} (variance {y_val.var().item():.3f})"  # noqa: E501
        )
