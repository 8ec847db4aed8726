"""A world model of a double pendulum ends in a ReLU, so it can never say that an angle shrinks.

The person builds all nets with one helper, mlp(sizes, activation), which puts the activation
after every layer, also after the last. The changes of the state are as often negative as
positive; the loss falls to half of its start and stays. The place is the model (dynamics: the
last activation).
"""

import math

import torch
from data import arguments, standardise
from torch import nn

KIND = "output_activation_range"
ACCEPT = ("dead_relu",)
PLACE = ("dynamics*", "model", "loss", "labels")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

GRAVITY, STEP = 9.81, 0.04


def acceleration(state: torch.Tensor, torque: torch.Tensor) -> torch.Tensor:
    a, b, va, vb = state.unbind(-1)
    d = a - b
    m11, m12, m22 = 2.0, d.cos(), 1.0
    f1 = torque - vb**2 * d.sin() - 2 * GRAVITY * a.sin() - 0.3 * va
    f2 = va**2 * d.sin() - GRAVITY * b.sin() - 0.3 * vb
    det = m11 * m22 - m12**2
    return torch.stack([(m22 * f1 - m12 * f2) / det, (m11 * f2 - m12 * f1) / det], -1)


def simulate(state, torque, substeps: int = 8):
    h = STEP / substeps
    for _ in range(substeps):
        speed = state[:, 2:] + h * acceleration(state, torque)
        state = torch.cat([state[:, :2] + h * speed, speed], 1)
    return state


def collect(episodes: int, length: int, g: torch.Generator):
    """Random pushes; seen are sines, cosines and speeds, to be told is the change of the state."""
    state = torch.randn(episodes, 4, generator=g) * torch.tensor([1.0, 1.0, 2.0, 2.0])
    push = torch.zeros(episodes)
    inputs, changes = [], []
    for _ in range(length):
        push = 0.8 * push + 1.5 * torch.randn(episodes, generator=g)
        after = simulate(state, push)
        angles = torch.cat([state[:, :2].sin(), state[:, :2].cos()], 1)
        inputs.append(torch.cat([angles, state[:, 2:], push.unsqueeze(1)], 1))
        changes.append(after - state + 0.002 * torch.randn(state.shape, generator=g))
        state = after
    return torch.cat(inputs), torch.cat(changes)


def mlp(sizes: list[int], activation=nn.ReLU, output_activation=nn.Identity) -> nn.Sequential:
    layers = []
    for i in range(len(sizes) - 1):
        last = i == len(sizes) - 2
        layers += [nn.Linear(sizes[i], sizes[i + 1]), output_activation() if last else activation()]
    return nn.Sequential(*layers)


class WorldModel(nn.Module):
    def __init__(self, inputs: int, outputs: int, hidden: int):
        super().__init__()
        end = nn.Identity if healthy else nn.ReLU
        self.dynamics = mlp([inputs, hidden, hidden, outputs], output_activation=end)

    def forward(self, observed):
        return self.dynamics(observed)


class Replay:
    def __init__(self, inputs, changes):
        self.inputs, self.changes = inputs, changes

    def sample(self, n: int):
        rows = torch.randint(0, len(self.inputs), (n,))
        return {"observed": self.inputs[rows], "change": self.changes[rows]}


def main():
    g = torch.Generator().manual_seed(710 + seed)
    inputs, changes = collect(60, 80, g)
    new_inputs, new_changes = collect(20, 50, g)
    inputs, new_inputs = standardise(inputs, new_inputs)
    changes, new_changes = standardise(changes, new_changes)
    replay = Replay(inputs, changes)
    model = WorldModel(inputs.shape[1], changes.shape[1], 128)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    steps = 1500
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: 0.5 * (1 + math.cos(math.pi * step / steps))
    )
    running = None
    for step in range(1, steps + 1):
        model.train()
        batch = replay.sample(128)
        error = model(batch["observed"]) - batch["change"]
        loss = (error**2).sum(1).mean() / 4
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        running = loss.item() if running is None else 0.97 * running + 0.03 * loss.item()
        if step % 150 == 0:
            model.eval()
            with torch.no_grad():
                squared = (model(new_inputs) - new_changes).square().mean(0)
            explained = 1 - squared / new_changes.var(0)
            told = " ".join(f"{value:.3f}" for value in explained)
            print(f"step {step:5d}  loss {running:.4f}  new {squared.mean():.4f}  explained {told}")


if __name__ == "__main__":
    main()
