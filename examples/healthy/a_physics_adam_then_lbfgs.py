"""Solves the equation of a damped swing without any data, from the equation itself and the start;
first with Adam and then with L-BFGS.
"""

import torch
from data import arguments
from torch import nn

ODD = "no data and no batches; the second optimizer evaluates the loss many times in one step"

_, seed = arguments(__doc__)
DAMPING, STIFFNESS, END = 0.4, 9.0, 4.0


class Swing(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, t):
        # starts at one and at rest, whatever the body says
        return 1 + (t / END) ** 2 * 10 * self.body(2 * t / END - 1)


def residual(model, t):
    t = t.requires_grad_(True)
    u = model(t)
    (speed,) = torch.autograd.grad(u.sum(), t, create_graph=True)
    (force,) = torch.autograd.grad(speed.sum(), t, create_graph=True)
    return (force + DAMPING * speed + STIFFNESS * u) / STIFFNESS


def exact(t):
    g = DAMPING / 2
    w = (STIFFNESS - g * g) ** 0.5
    return torch.exp(-g * t) * (torch.cos(w * t) + g / w * torch.sin(w * t))


def error(model):
    t = torch.linspace(0, END, 200).view(-1, 1)
    with torch.no_grad():
        return (model(t) - exact(t)).abs().max().item()


model = Swing()
adam = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(1, 701):
    loss = residual(model, END * torch.rand(64, 1)).pow(2).mean()
    adam.zero_grad()
    loss.backward()
    adam.step()
    if step % 140 == 0:
        print(f"adam {step}: loss {loss.item():.6f} largest error {error(model):.4f}")

fixed = torch.linspace(0, END, 128).view(-1, 1)
lbfgs = torch.optim.LBFGS(
    model.parameters(), max_iter=10, history_size=30, line_search_fn="strong_wolfe"
)


def closure():
    lbfgs.zero_grad()
    loss = residual(model, fixed.clone()).pow(2).mean()
    loss.backward()
    return loss


for step in range(1, 31):
    loss = lbfgs.step(closure)
    if step % 10 == 0:
        print(f"l-bfgs {step}: loss {loss.item():.8f} largest error {error(model):.5f}")
