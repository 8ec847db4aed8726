"""A tanh policy is cloned from an expert that steers a cart, with weights drawn from a wide normal
distribution.

The user initialises every layer by `normal_(std=1.5)`; with 100 inputs a layer, the sums are
about 15 and nearly all tanh units sit at -1 or 1. The place is the tanh layers act1, act2, act3
(weights of fc1, fc2, fc3).
"""

import torch
from data import arguments
from torch import nn

KIND = "saturated_activation"
ACCEPT = ("poor_weight_init",)
PLACE = ("act*", "fc*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def expert(s):
    """Force from position, speed, angle and angular speed, with soft limits, and two sticky zones."""  # noqa: E501
    position, speed, angle, spin = s.T
    force = 1.6 * angle + 0.7 * spin + 0.25 * position + 0.4 * speed
    force = force + 0.6 * torch.sin(2 * angle) * (position.abs() < 0.7)
    return (2.0 * torch.tanh(0.7 * force)).unsqueeze(1)


class Policy(nn.Module):
    def __init__(self, width=100):
        super().__init__()
        self.fc1, self.act1 = nn.Linear(4, width), nn.Tanh()
        self.fc2, self.act2 = nn.Linear(width, width), nn.Tanh()
        self.fc3, self.act3 = nn.Linear(width, width), nn.Tanh()
        self.force = nn.Linear(width, 1)
        for layer in (self.fc1, self.fc2, self.fc3):
            std = layer.in_features**-0.5 if healthy else 1.5
            nn.init.normal_(layer.weight, std=std)
            nn.init.zeros_(layer.bias)

    def forward(self, s):
        s = self.act1(self.fc1(s))
        s = self.act2(self.fc2(s))
        s = self.act3(self.fc3(s))
        return self.force(s)


def clone(policy, states, actions, optimizer, steps):
    states_val = torch.randn(800, 4)
    actions_val = expert(states_val)
    for step in range(1, steps + 1):
        rows = torch.randint(0, len(states), (64,))
        loss = nn.functional.smooth_l1_loss(policy(states[rows]), actions[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            with torch.no_grad():
                error = (policy(states_val) - actions_val).square().mean().item()
            print(f"step {step}: loss {loss.item():.4f}, validation mse {error:.4f}")


states = torch.randn(4000, 4)
actions = expert(states) + 0.05 * torch.randn(4000, 1)
policy = Policy()
clone(policy, states, actions, torch.optim.SGD(policy.parameters(), lr=0.05, momentum=0.9), 1600)
