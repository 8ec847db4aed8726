"""A physics-informed net solves Helmholtz's equation on a square by L-BFGS on one fixed set of
collocation points.

Looks odd: every step sees the very same full batch, one step calls its closure many times
(zero_grad and backward without a step between), the targets are zeros at the border and there is
no data loader. It is sound: the points cover the domain, and the error at other points falls with
the loss.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = "full-batch L-BFGS on the same points in every step; a loss of several terms by derivatives"

_, seed = arguments(__doc__)
WAVE = 1.0


def solution(p):
    return torch.sin(math.pi * p[:, :1]) * torch.sin(2 * math.pi * p[:, 1:])


def source(p):
    return (WAVE**2 - 5 * math.pi**2) * solution(p)


class Net(nn.Module):
    def __init__(self, sizes=(2, 32, 32, 32, 1)):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:], strict=False))  # noqa: RUF007
        for layer in self.layers:
            nn.init.xavier_normal_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, p):
        h = 2 * p - 1
        for layer in self.layers[:-1]:
            h = torch.tanh(layer(h))
        return self.layers[-1](h)


def residual(net, p):
    p = p.detach().requires_grad_(True)
    u = net(p)
    (grad,) = torch.autograd.grad(u.sum(), p, create_graph=True)
    u_xx = torch.autograd.grad(grad[:, 0].sum(), p, create_graph=True)[0][:, :1]
    u_yy = torch.autograd.grad(grad[:, 1].sum(), p, create_graph=True)[0][:, 1:]
    return (u_xx + u_yy + WAVE**2 * u - source(p)) / (5 * math.pi**2)


def border(n):
    s = torch.rand(n, 1)
    zero, one = torch.zeros_like(s), torch.ones_like(s)
    return torch.cat([torch.cat(pair, 1) for pair in ((s, zero), (s, one), (zero, s), (one, s))])


inside = torch.quasirandom.SobolEngine(2, scramble=True, seed=seed).draw(500)
edge = border(40)
check = torch.rand(2000, 2)
net = Net()
optimizer = torch.optim.LBFGS(
    net.parameters(), lr=1.0, max_iter=5, history_size=30, line_search_fn="strong_wolfe"
)  # noqa: E501, RUF100


def closure():
    optimizer.zero_grad()
    loss = residual(net, inside).pow(2).mean() + 5 * nn.functional.mse_loss(
        net(edge), torch.zeros(len(edge), 1)
    )  # noqa: E501, RUF100
    loss.backward()
    return loss


for step in range(1, 161):
    loss = optimizer.step(closure)
    if step % 20 == 0:
        with torch.no_grad():
            error = ((net(check) - solution(check)).norm() / solution(check).norm()).item()
        print(f"step {step} loss {loss.item():.3e} relative error elsewhere {error:.4f}")
