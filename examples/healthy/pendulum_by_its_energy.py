"""Learns the energy of a pendulum from noisy derivatives (Hamiltonian net) and simulates it."""

import torch
from data import arguments
from torch import nn

ODD = (
    "the output of the net has no label: its derivative by the input is compared, so validation "
    "and simulation run with gradients on, and the bias of the last layer never gets a gradient"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)


def true_motion(state):
    angle, momentum = state.unbind(1)
    return torch.stack([momentum, -angle.sin()], 1)


def energy(state):
    return 0.5 * state[:, 1] ** 2 + 1 - state[:, 0].cos()


def roll(motion, state, steps=150, size=0.1):
    """Runge-Kutta of order four; the states on the way."""
    path = [state]
    for _ in range(steps):
        a = motion(state)
        b = motion(state + size / 2 * a)
        c = motion(state + size / 2 * b)
        d = motion(state + size * c)
        state = state + size / 6 * (a + 2 * b + 2 * c + d)
        path.append(state)
    return torch.stack(path, 1)


def starts(n):
    angle = torch.rand(n) * 3.6 - 1.8
    return torch.stack([angle, 0.3 * torch.randn(n)], 1)


def trajectories(n):
    states = roll(true_motion, starts(n))[:, ::5].reshape(-1, 2)
    return states, true_motion(states) + 0.1 * torch.randn_like(states)


class HamiltonianNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.energy = nn.Sequential(
            nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
        )

    def forward(self, state):
        state = state.detach().requires_grad_(True)
        total = self.energy(state).sum()
        slope = torch.autograd.grad(total, state, create_graph=self.training)[0]
        return torch.stack([slope[:, 1], -slope[:, 0]], 1)


x, y = trajectories(40)
x_val, y_val = trajectories(15)
net = HamiltonianNet()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 20, 0.4)
for epoch in range(50):
    net.train()
    for rows in torch.randperm(len(x)).split(64):
        loss = criterion(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    schedule.step()
    if epoch % 10 == 9:
        net.eval()
        val_loss = criterion(net(x_val), y_val).item()
        print(f"epoch {epoch}  loss {loss.item():.4f}  validation {val_loss:.4f} (noise 0.0100)")

begin = starts(20)
drift = (energy(roll(net, begin)[:, -1]) - energy(begin)).abs().mean().item()
truth, guess = roll(true_motion, begin), roll(net, begin)
apart = (truth - guess).norm(dim=2).mean().item()
standing = (truth - begin.unsqueeze(1)).norm(dim=2).mean().item()
print(
    f"over 15 seconds: mean distance to the true path {apart:.3f} (standing still {standing:.3f}), "
    f"energy lost or won {drift:.4f} of {energy(begin).mean():.3f}"
)
