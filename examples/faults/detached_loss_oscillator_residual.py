"""A physics-informed network for a damped oscillator measured early on only; the residual of its
equation is added to the loss as a plain number.

`residual.item()` turns the second term into a constant without a graph: the sum shows it, the
gradient does not. The network fits the measured stretch and is free beyond it. The place is the
loss, at the residual term.
"""

import torch
from data import arguments
from torch import nn

KIND = "detached_loss"
ACCEPT = ("detached_graph",)
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

DAMPING, STIFFNESS, END, MEASURED = 0.6, 4.0, 4.0, 1.5


def true_path(t):
    omega = (STIFFNESS - DAMPING**2 / 4) ** 0.5
    return torch.exp(-DAMPING * t / 2) * torch.cos(omega * t)


def derivative(of, by):
    return torch.autograd.grad(of.sum(), by, create_graph=True)[0]


def residual_of_equation(model, t):
    t = t.requires_grad_(True)
    position = model(t)
    velocity = derivative(position, t)
    acceleration = derivative(velocity, t)
    force = acceleration + DAMPING * velocity + STIFFNESS * position
    return (force / STIFFNESS).pow(2).mean()


def main():
    model = nn.Sequential(
        nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)
    )
    measured_at = torch.rand(40, 1) * MEASURED
    measured = true_path(measured_at) + 0.02 * torch.randn(40, 1)
    held_out = torch.linspace(0, END, 200).unsqueeze(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9988)
    for step in range(1, 1601):
        data_term = (model(measured_at) - measured).pow(2).mean()
        residual = residual_of_equation(model, torch.rand(80, 1) * END)
        physics_term = residual if healthy else residual.item()
        loss = 3 * data_term + physics_term
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 200 == 0:
            with torch.no_grad():
                error = (model(held_out) - true_path(held_out)).abs()
            early, late = error[held_out <= MEASURED], error[held_out > MEASURED]
            print(
                f"step {step:4d} loss {loss.item():.4f} data {data_term.item():.5f} physics "
                f"{residual.item():.4f} error early {early.mean():.3f} late {late.mean():.3f}"
            )


main()
