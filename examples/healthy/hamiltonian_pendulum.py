"""Learns the energy of a pendulum from noisy speeds and then swings it for a long time."""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "the net's output is compared with nothing: the loss is of its derivatives by the input, which "
    "needs a graph of gradients, so the output has no level and its layer no bias"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)
NOISE = 0.05


class Energy(nn.Module):
    def __init__(self, width: int = 48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(3, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, 1, bias=False),
        )

    def forward(self, state):
        angle, momentum = state.unbind(1)
        return self.net(torch.stack([angle.cos(), angle.sin(), momentum], 1)).squeeze(1)

    def speed(self, state, create_graph=False):
        with torch.enable_grad():
            state = state.detach().requires_grad_()
            (slope,) = torch.autograd.grad(self(state).sum(), state, create_graph=create_graph)
        return torch.stack([slope[:, 1], -slope[:, 0]], 1)


def pendulum(state):
    return torch.stack([state[:, 1], -3 * state[:, 0].sin()], 1)


def runge_kutta(speed, state, steps: int, dt: float = 0.05):
    path = [state]
    for _ in range(steps):
        k1 = speed(state)
        k2 = speed(state + dt / 2 * k1)
        k3 = speed(state + dt / 2 * k2)
        k4 = speed(state + dt * k3)
        state = state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path.append(state)
    return torch.stack(path, 1)


def swings(n: int):
    start = torch.stack([4 * torch.rand(n) - 2, 3 * torch.rand(n) - 1.5], 1)
    path = runge_kutta(pendulum, start, 40).flatten(0, 1)
    speed = pendulum(path)
    return path, speed + NOISE * torch.randn_like(speed)


state, speed = swings(60)
state_val, speed_val = swings(20)
model = Energy()
optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.91)
for epoch in range(25):
    for rows in torch.randperm(len(state)).split(64):
        optimizer.zero_grad()
        loss = F.mse_loss(model.speed(state[rows], create_graph=True), speed[rows])
        loss.backward()
        optimizer.step()
    schedule.step()
    train = F.mse_loss(model.speed(state), speed)
    val = F.mse_loss(model.speed(state_val), speed_val)
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1}: train {train:.5f}, validation {val:.5f}, noise {NOISE**2:.5f}")

start = torch.tensor([[1.2, 0.0], [0.5, 0.8], [-1.6, 0.3]])
true_path = runge_kutta(pendulum, start, 200)
path = runge_kutta(model.speed, start, 200)
energy = path[..., 1] ** 2 / 2 - 3 * path[..., 0].cos()
drift = (energy - energy[:, :1]).abs().max()
error = (path - true_path).square().mean().sqrt()
still = (start.unsqueeze(1) - true_path).square().mean().sqrt()
print(
    f"validation R2 {1 - val / speed_val.var():.4f}; over ten seconds: energy drift {drift:.3f}, "
    f"error {error:.3f}, of standing still {still:.3f}"
)
