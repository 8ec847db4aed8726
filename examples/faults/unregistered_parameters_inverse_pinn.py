"""A physics-informed net finds the diffusivity of a heating rod from a few thermometers; the
unknown coefficient is a plain tensor.

`self.log_kappa = torch.tensor(..., requires_grad=True)` gets gradients but isn't an nn.Parameter,
so model.parameters() leaves it out and it stays at the first guess. The place is log_kappa (not
in the module) / the optimizer.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("optimizer", "*kappa*", "loop")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

TRUE_KAPPA = 0.12


def exact(x, t):
    decay = lambda k: torch.exp(-TRUE_KAPPA * (k * math.pi) ** 2 * t)  # noqa: E731
    return decay(1) * torch.sin(math.pi * x) + 0.6 * decay(2) * torch.sin(2 * math.pi * x)


class HeatPINN(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, 1),
        )
        guess = torch.tensor(math.log(0.3))
        self.log_kappa = nn.Parameter(guess) if healthy else guess.requires_grad_()

    def forward(self, x, t):
        return x * (1 - x) * 4 * self.net(torch.cat([2 * x - 1, 2 * t - 1], 1))

    def residual(self, x, t):
        x.requires_grad_(True)
        t.requires_grad_(True)
        u = self(x, t)
        u_x, u_t = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
        (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)
        return u_t - self.log_kappa.exp() * u_xx


def thermometers(n, noise):
    x, t = torch.rand(n, 1), torch.rand(n, 1)
    return x, t, exact(x, t) + noise * torch.randn(n, 1)


x_obs, t_obs, u_obs = thermometers(60, 0.03)
x_ic = torch.linspace(0, 1, 60).unsqueeze(1)
u_ic = exact(x_ic, torch.zeros_like(x_ic))
gx, gt = torch.meshgrid(torch.linspace(0, 1, 41), torch.linspace(0, 1, 41), indexing="ij")
gx, gt = gx.reshape(-1, 1), gt.reshape(-1, 1)
truth = exact(gx, gt)

model = HeatPINN()
optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
iterations = 1800
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.02 ** (1 / iterations))
for it in range(1, iterations + 1):
    pde = model.residual(torch.rand(160, 1), torch.rand(160, 1)).pow(2).mean()
    data = (model(x_obs, t_obs) - u_obs).pow(2).mean()
    start = (model(x_ic, torch.zeros_like(x_ic)) - u_ic).pow(2).mean()
    loss = 0.2 * pde + 10 * data + 10 * start
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if it % 300 == 0:
        with torch.no_grad():
            rel = ((model(gx, gt) - truth).norm() / truth.norm()).item()
        print(
            f"it {it} loss {loss.item():.5f} pde {pde.item():.5f} data {data.item():.5f} "
            f"kappa {model.log_kappa.exp().item():.4f} (true {TRUE_KAPPA}) relative error {rel:.4f}"
        )
