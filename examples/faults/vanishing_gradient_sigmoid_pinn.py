"""A physics-informed net solves a driven oscillator (ODE residual, start values and a few
measurements) with nine sigmoid layers.

Someone needed a smooth activation for the second derivative and took nn.Sigmoid in a deep plain
stack: each layer takes a factor of about ten from the gradient, and the first layers, that read
the time, hardly move. The place is the body (its first layers).
"""

import torch
from data import arguments
from torch import nn

KIND = "vanishing_gradient"
ACCEPT = ()
PLACE = ("body*", "net*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

OMEGA, DAMP, DRIVE, T_END = 2.2, 0.25, 1.0, 5.0
DEPTH, WIDTH, EPOCHS = 8, 32, 700


def reference(n=4001):
    """Runge-Kutta 4 of x'' = -2 d w x' - w^2 x + a cos(1.3 t)."""
    t = torch.linspace(0, T_END, n, dtype=torch.float64)
    h = T_END / (n - 1)

    def f(time, s):
        return torch.stack(
            [s[1], -2 * DAMP * OMEGA * s[1] - OMEGA**2 * s[0] + DRIVE * torch.cos(1.3 * time)]
        )

    s = torch.tensor([1.0, 0.0], dtype=torch.float64)
    out = [s]
    for k in range(n - 1):
        a = f(t[k], s)
        b = f(t[k] + h / 2, s + h / 2 * a)
        c = f(t[k] + h / 2, s + h / 2 * b)
        d = f(t[k] + h, s + h * c)
        s = s + h / 6 * (a + 2 * b + 2 * c + d)
        out.append(s)
    return t.float()[:, None], torch.stack(out)[:, :1].float()


class PINN(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        activation = nn.Tanh if healthy else nn.Sigmoid
        layers = [nn.Linear(1, width), activation()]
        for _ in range(depth):
            layers += [nn.Linear(width, width), activation()]
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(width, 1)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.xavier_normal_(m.weight)
                nn.init.zeros_(m.bias)

    def forward(self, t):
        return self.head(self.body(2 * t / T_END - 1))


def derivative(x, t):
    return torch.autograd.grad(x.sum(), t, create_graph=True)[0]


def losses(net, t_in, t_obs, x_obs):
    t = t_in.requires_grad_()
    x = net(t)
    dx = derivative(x, t)
    ddx = derivative(dx, t)
    physics = (
        (ddx + 2 * DAMP * OMEGA * dx + OMEGA**2 * x - DRIVE * torch.cos(1.3 * t)).square().mean()
    )
    t0 = torch.zeros(1, 1, requires_grad=True)
    x0 = net(t0)
    start = (x0 - 1).square().mean() + derivative(x0, t0).square().mean()
    return physics, start, (net(t_obs) - x_obs).square().mean()


t_ref, x_ref = reference(1001)
g = torch.Generator().manual_seed(seed)
where = torch.randint(0, len(t_ref), (60,), generator=g)
t_obs, x_obs = t_ref[where], x_ref[where] + 0.02 * torch.randn(60, 1, generator=g)

net = PINN(WIDTH, DEPTH)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.997)
for epoch in range(EPOCHS):
    t_in = T_END * torch.rand(96, 1, generator=g)
    physics, start, data = losses(net, t_in, t_obs, x_obs)
    loss = 0.05 * physics + start + 5.0 * data
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 5.0)
    optimizer.step()
    scheduler.step()
    if epoch % 100 == 99:
        with torch.no_grad():
            err = (net(t_ref) - x_ref).square().mean() / x_ref.var()
        print(
            f"epoch {epoch + 1} loss {loss.item():.4f} physics {physics.item():.4f} relative error {err.item():.4f}"  # noqa: E501
        )
