"""A physics-informed net for the heat equation, first with Adam, then with L-BFGS on all points.

Looks odd: every step sees the very same points, the loss has gradients of gradients, the
optimizer is exchanged in the middle, and L-BFGS calls its closure (zero_grad, backward) up to 20
times per step and more. It's sound: full-batch collocation and Adam + L-BFGS are the usual recipe
for PINNs, and the error against the analytic solution at other points gets below one per cent.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = "each step sees the same points, and the optimizer is exchanged in the middle"
_, seed = arguments(__doc__)
torch.set_default_dtype(torch.float32)

ALPHA = 0.05


def exact(x, t):
    """u_t = alpha u_xx on (0, 1), u = 0 at both ends, two modes at the start."""
    u = torch.sin(math.pi * x) * torch.exp(-ALPHA * math.pi**2 * t)
    return u + 0.5 * torch.sin(3 * math.pi * x) * torch.exp(-9 * ALPHA * math.pi**2 * t)


class PINN(nn.Module):
    def __init__(self, width=32, depth=3):
        super().__init__()
        layers, n = [], 2
        for _ in range(depth):
            layers += [nn.Linear(n, width), nn.Tanh()]
            n = width
        self.net = nn.Sequential(*layers, nn.Linear(n, 1))
        for m in self.net:
            if isinstance(m, nn.Linear):
                nn.init.xavier_normal_(m.weight)
                nn.init.zeros_(m.bias)

    def forward(self, x, t):
        return self.net(torch.cat([2 * x - 1, 2 * t - 1], 1))


sobol = torch.quasirandom.SobolEngine(2, scramble=True, seed=seed)
points = sobol.draw(1024)
x_f, t_f = points[:, :1].clone().requires_grad_(True), points[:, 1:].clone().requires_grad_(True)
x_0 = torch.linspace(0, 1, 128)[:, None]
t_b = torch.linspace(0, 1, 64)[:, None]
u_0 = exact(x_0, torch.zeros_like(x_0))
x_v, t_v = torch.rand(2, 2000, 1)
u_v = exact(x_v, t_v)

model = PINN()


def losses():
    u = model(x_f, t_f)
    u_t, u_x = torch.autograd.grad(u.sum(), (t_f, x_f), create_graph=True)
    (u_xx,) = torch.autograd.grad(u_x.sum(), x_f, create_graph=True)
    pde = (u_t - ALPHA * u_xx).pow(2).mean()
    start = (model(x_0, torch.zeros_like(x_0)) - u_0).pow(2).mean()
    ends = (
        model(torch.zeros_like(t_b), t_b).pow(2).mean()
        + model(torch.ones_like(t_b), t_b).pow(2).mean()
    )
    return pde, start, ends


def relative_error() -> float:
    with torch.no_grad():
        return ((model(x_v, t_v) - u_v).norm() / u_v.norm()).item()


adam = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(1, 501):
    pde, start, ends = losses()
    loss = pde + 10 * start + 10 * ends
    adam.zero_grad()
    loss.backward()
    adam.step()
    if step % 100 == 0:
        print(
            f"adam {step} loss {loss.item():.3e} pde {pde.item():.2e} start {start.item():.2e} error {relative_error():.4f}"  # noqa: E501
        )

lbfgs = torch.optim.LBFGS(
    model.parameters(),
    max_iter=20,
    history_size=50,
    line_search_fn="strong_wolfe",
    tolerance_grad=1e-8,
    tolerance_change=1e-11,
)


def closure():
    lbfgs.zero_grad()
    pde, start, ends = losses()
    loss = pde + 10 * start + 10 * ends
    loss.backward()
    return loss


for step in range(1, 31):
    loss = lbfgs.step(closure)
    if step % 5 == 0:
        print(f"lbfgs {step} loss {loss.item():.3e} error {relative_error():.4f}")
