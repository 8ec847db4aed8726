"""Physics-informed pendulum; the closure given to L-BFGS returns the loss but never calls backward.

The person trained first with Adam and then refined with L-BFGS. The R version of the optimizer is
said to call backward itself, that of PyTorch does not: the closure clears the gradients and returns
the loss, and each step of the second phase finds no gradient at all. The place is the loop.
"""

import numpy as np
import torch
from data import arguments
from scipy.integrate import solve_ivp
from torch import nn

KIND = "step_without_gradient"
ACCEPT = ("optimizer_never_steps", "detached_graph")
PLACE = ("loop", "optimizer", "loss", "model", "net*", "*")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

DAMPING, STIFFNESS, HORIZON = 0.25, 4.0, 5.0
START_ANGLE, START_SPEED = 1.2, 0.0


class Trajectory(nn.Module):
    """Angle of the pendulum as a function of time, exact at the start by its form."""

    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, t):
        return START_ANGLE + START_SPEED * t + t**2 * self.net(2 * t / HORIZON - 1)


def derivative(values, t):
    return torch.autograd.grad(values.sum(), t, create_graph=True)[0]


def physics_loss(model, t):
    angle = model(t)
    speed = derivative(angle, t)
    acceleration = derivative(speed, t)
    residual = acceleration + DAMPING * speed + STIFFNESS * torch.sin(angle)
    return residual.pow(2).mean()


def collocation(points):
    return (HORIZON * torch.rand(points, 1)).requires_grad_(True)


def reference(times):
    solution = solve_ivp(
        lambda _, s: [s[1], -DAMPING * s[1] - STIFFNESS * np.sin(s[0])],
        (0, HORIZON),
        [START_ANGLE, START_SPEED],
        t_eval=times,
        rtol=1e-8,
    )
    return torch.tensor(solution.y[0], dtype=torch.float32).unsqueeze(1)


def first_phase(model, steps):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(steps):
        loss = physics_loss(model, collocation(128))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def second_phase(model, rounds, report):
    optimizer = torch.optim.LBFGS(
        model.parameters(), lr=1.0, max_iter=5, history_size=20, line_search_fn="strong_wolfe"
    )
    points = collocation(256)

    def closure():
        optimizer.zero_grad()
        loss = physics_loss(model, points)
        if healthy:
            loss.backward()
        return loss

    for i in range(rounds):
        loss = optimizer.step(closure)
        if i % 50 == 0 or i == rounds - 1:
            report(f"L-BFGS {i:3d}", loss.item())


def main():
    model = Trajectory()
    times = np.linspace(0, HORIZON, 101)
    truth = reference(times)
    grid = torch.tensor(times, dtype=torch.float32).unsqueeze(1)

    def report(phase, loss):
        with torch.no_grad():
            off = (model(grid) - truth).abs()
        print(f"{phase} residual {loss:.5f} angle off by {off.mean():.4f}, at most {off.max():.4f}")

    report("Adam", first_phase(model, 400))
    second_phase(model, 160, report)


main()
