"""A policy is cloned from the flights of an expert who steers a drone to its target. The buffer
draws each batch with a generator that it seeds anew in every call, for the sake of reproducibility.

Hence every batch is the same 64 moments. The training loss goes to almost nothing while the error
on other flights stays high. The place is the buffer, in the role of the loader.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "repeated_batch"
ACCEPT = ()
PLACE = ("loader", "input", "loop")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Buffer:
    def __init__(self, states, actions, seed):
        self.states = torch.tensor(states, dtype=torch.float32)
        self.actions = torch.tensor(actions, dtype=torch.float32)
        self.seed = seed
        self.rng = np.random.default_rng(seed)

    def sample(self, n):
        rng = self.rng if healthy else np.random.default_rng(self.seed)
        rows = torch.from_numpy(rng.choice(len(self.states), n, replace=False))
        return self.states[rows], self.actions[rows]


def expert(s):
    """Thrust against error and speed, bounded, and weaker when the battery is low."""
    position, speed, wind, battery = s[:, :2], s[:, 2:4], s[:, 4:6], s[:, 6:7]
    push = -1.5 * position - 1.0 * speed - wind * np.abs(wind)
    return np.tanh(push) * (0.4 + 0.6 * battery)


def fly(n, steps, r):
    states, actions = [], []
    s = np.concatenate(
        [r.normal(0, 1.5, (n, 4)), r.normal(0, 0.7, (n, 2)), r.uniform(0, 1, (n, 1))], 1
    )
    for _ in range(steps):
        a = expert(s)
        states.append(s.copy())
        actions.append(a + r.normal(0, 0.03, a.shape))
        s[:, 2:4] += 0.2 * (a + 0.2 * s[:, 4:6])
        s[:, :2] += 0.2 * s[:, 2:4] + r.normal(0, 0.05, (n, 2))
        s[:, 6] *= 0.98
    return np.concatenate(states), np.concatenate(actions)


class Policy(nn.Module):
    def __init__(self, observed=7, controls=2, hidden=64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(observed, hidden), nn.ELU(), nn.Linear(hidden, hidden), nn.ELU()
        )
        self.mean = nn.Linear(hidden, controls)

    def forward(self, s):
        return self.mean(self.body(s))


r = np.random.default_rng(seed)
buffer = Buffer(*fly(400, 25, r), seed)
held_out = [torch.tensor(a, dtype=torch.float32) for a in fly(80, 25, r)]
policy = Policy()
optimizer = torch.optim.NAdam(policy.parameters(), lr=2e-3)
for step in range(1, 801):
    states, actions = buffer.sample(64)
    loss = (policy(states) - actions).square().sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 80 == 0:
        with torch.no_grad():
            error = (policy(held_out[0]) - held_out[1]).square().sum(1).mean()
        print(f"step {step} imitation loss {loss.item():.5f} held-out flights {error.item():.5f}")
