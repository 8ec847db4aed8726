"""The value of the action taken keeps gather's last dimension, (batch, 1), and the target of the
temporal difference is (batch,).

Their difference is (batch, batch), by hand and so without a warning: every value is drawn towards
the mean of all targets and all actions look alike. The place is the loss.
"""

import copy

import torch
from data import arguments
from torch import nn

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss*", "")
SILENT = True
EXACT = True
EARLY = True

GAMMA = 0.6
PUSH = torch.tensor([-0.5, 0.0, 0.5])


def world(position, action):
    """A cart on a rail from -2 to 2 that should stay at the lamp; the lamp's place is in the
    state.
    """
    cart, lamp = position[:, 0], position[:, 1]
    moved = (cart + PUSH[action] + 0.05 * torch.randn(len(cart))).clamp(-2, 2)
    reward = 1.0 - (moved - lamp).abs()
    return torch.stack([moved, lamp], 1), reward


class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.q = nn.Linear(64, 3)

    def forward(self, state):
        return self.q(self.layers(state))


def play(q, n=400, moves=12):
    state = torch.rand(n, 2) * 3 - 1.5
    total = torch.zeros(n)
    with torch.no_grad():
        for _ in range(moves):
            state, reward = world(state, q(state).argmax(1))
            total += reward / moves
    return total.mean().item()


healthy, _ = arguments(__doc__)
states = torch.rand(6000, 2) * 4 - 2
actions = torch.randint(0, 3, (6000,))
following, rewards = world(states, actions)

q = QNet()
target = copy.deepcopy(q)
optimizer = torch.optim.Adam(q.parameters(), lr=2e-3)
for step in range(1, 501):
    pick = torch.randint(0, 6000, (64,))
    with torch.no_grad():
        goal = rewards[pick] + GAMMA * target(following[pick]).max(1).values
    value = q(states[pick]).gather(1, actions[pick].unsqueeze(1))
    if healthy:
        value = value.squeeze(1)
    error = value - goal
    size = error.abs()
    loss = torch.where(size < 1, 0.5 * error**2, size - 0.5).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for old, new in zip(target.parameters(), q.parameters(), strict=False):
            old.lerp_(new, 0.05)
    if step == 350:
        optimizer.param_groups[0]["lr"] = 4e-4
    if step % 100 == 0:
        print(f"step {step}: loss {loss.item():.4f}, mean reward when it plays {play(q):.3f}")
