"""A learned simulator trained through forty of its own steps, with the step length dt forgotten.

`state + net(state)` instead of `state + dt * net(state)`: an untrained net multiplies the state at
each step, and the gradient through forty of them is astronomic; the weights are flung away within
a few steps. The place is the net that is rolled out.
"""

import torch
from data import arguments
from torch import nn

KIND = "exploding_gradient"
ACCEPT = ()
PLACE = ("derivative*", "*", "")
SILENT = False
EXACT = False
EARLY = True

DT, HORIZON = 0.1, 40

healthy, seed = arguments(__doc__)


def oscillators(n, g):
    """Damped swings of two coupled masses, by small exact steps: (n, HORIZON + 1, 4)."""
    pull = torch.tensor([[0, 0, 1, 0], [0, 0, 0, 1], [-1.6, 0.6, -0.15, 0], [0.6, -1.6, 0, -0.15]])
    step = torch.linalg.matrix_exp(pull * DT)
    states = [torch.randn(n, 4, generator=g)]
    for _ in range(HORIZON):
        states.append(states[-1] @ step.T)
    return torch.stack(states, 1) + 0.02 * torch.randn(n, HORIZON + 1, 4, generator=g)


class Simulator(nn.Module):
    def __init__(self):
        super().__init__()
        self.derivative = nn.Sequential(
            nn.Linear(4, 48), nn.ELU(), nn.Linear(48, 48), nn.ELU(), nn.Linear(48, 4)
        )

    def forward(self, state, steps):
        path = []
        for _ in range(steps):
            change = self.derivative(state)
            state = state + (DT * change if healthy else change)
            path.append(state)
        return torch.stack(path, 1)


g = torch.Generator().manual_seed(seed)
train, val = oscillators(640, g), oscillators(160, g)
simulator = Simulator()
optimizer = torch.optim.SGD(simulator.parameters(), lr=0.05, momentum=0.9)
for epoch in range(13):
    for rows in torch.randperm(640).split(32):
        path = simulator(train[rows, 0], HORIZON)
        loss = nn.functional.mse_loss(path, train[rows, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        val_loss = nn.functional.mse_loss(simulator(val[:, 0], HORIZON), val[:, 1:]).item()
print(f"loss {loss.item():.4f}, validation loss {val_loss:.4f}, variance {val[:, 1:].var():.4f}")
