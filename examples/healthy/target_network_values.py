"""Temporal differences: a net learns the values of a random walk, with a slow target network.

The target is a copy under no_grad that follows slowly; neither it nor the bootstrapped value gets a
gradient. The loss measures a moving target and cannot go to zero, the error against the known
values is what counts.
"""

import copy

import torch
from data import arguments
from torch import nn

ODD = "half of the parameters never get a gradient, and the loss soon stops falling"

_, seed = arguments(__doc__)
STATES, GAMMA = 15, 0.95


def features(state):
    return torch.eye(STATES)[state]


def walk(n):
    """Transitions of a walk to the left or right; the right end pays 1, both ends stop."""
    state = torch.randint(0, STATES, (n,))
    after = state + 2 * torch.randint(0, 2, (n,)) - 1
    done = (after < 0) | (after >= STATES)
    reward = (after >= STATES).float()
    return features(state), reward, features(after.clamp(0, STATES - 1)), done.float()


move = torch.zeros(STATES, STATES)
for s in range(STATES):
    for t in (s - 1, s + 1):
        if 0 <= t < STATES:
            move[s, t] = 0.5
pay = torch.zeros(STATES)
pay[-1] = 0.5
truth = torch.linalg.solve(torch.eye(STATES) - GAMMA * move, pay)

value = nn.Sequential(nn.Linear(STATES, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))
target = copy.deepcopy(value).requires_grad_(False)
optimizer = torch.optim.Adam(value.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=1500)
for step in range(1, 1501):
    state, reward, after, done = walk(64)
    with torch.no_grad():
        goal = reward + GAMMA * (1 - done) * target(after)
    loss = nn.functional.mse_loss(value(state), goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), value.parameters(), strict=True):
            slow.lerp_(fast, 0.05)
    if step % 250 == 0:
        with torch.no_grad():
            error = (value(torch.eye(STATES)) - truth).square().mean().sqrt().item()
        print(
            f"step {step}: loss {loss.item():.4f} error of the values {error:.4f} "
            f"(they spread by {truth.std().item():.3f})"
        )
