"""Cloning a pendulum controller whose torques go from -2 to 2 with an actor that ends in tanh and
is not scaled.

The actor was copied from a library where the environment rescales actions; here nobody multiplies
by `max_torque`. The loss falls as far as the clipped actions allow (silent). The place is the end
of the actor. Exact: no output can be beyond 1, and many targets are.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "output_activation_range"
ACCEPT = ()
PLACE = ("mu*", "squash", "loss*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
MAX_TORQUE = 2.0


def expert(angle, speed):
    """Swings up by energy, and holds the pole upright with a linear rule."""
    energy = 0.5 * speed**2 / 3 + 5 * (np.cos(angle) - 1)
    swing = -1.2 * energy * np.sign(speed + 1e-9) * np.minimum(np.abs(speed), 1)
    hold = -(9 * angle + 2.2 * speed)
    return np.clip(np.where(np.abs(angle) < 0.5, hold, swing), -MAX_TORQUE, MAX_TORQUE)


def physics(angle, speed, torque, dt=0.05):
    speed = np.clip(speed + (15 * np.sin(angle) + 3 * torque) * dt, -8, 8)
    angle = angle + speed * dt
    return (angle + np.pi) % (2 * np.pi) - np.pi, speed


def observe(angle, speed):
    return np.stack([np.cos(angle), np.sin(angle), speed / 4], -1).astype(np.float32)


class Actor(nn.Module):
    def __init__(self, limit=1.0):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(3, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU())
        self.mu = nn.Linear(96, 1)
        self.squash = nn.Tanh()
        self.limit = limit

    def forward(self, obs):
        return self.limit * self.squash(self.mu(self.trunk(obs))).squeeze(-1)


rng = np.random.default_rng(seed)
angle, speed = rng.uniform(-np.pi, np.pi, 80), rng.uniform(-1, 1, 80)
observations, torques = [], []
for _ in range(100):
    action = expert(angle, speed)
    observations.append(observe(angle, speed))
    torques.append(action.astype(np.float32))
    angle, speed = physics(angle, speed, action + rng.normal(0, 0.5, 80))
obs = torch.from_numpy(np.concatenate(observations))
act = torch.from_numpy(np.concatenate(torques))
order = torch.randperm(len(obs))
train, held = order[:6500], order[6500:]

actor = Actor(limit=MAX_TORQUE if healthy else 1.0)
optimizer = torch.optim.Adam(actor.parameters(), lr=1e-3)
for epoch in range(8):
    actor.train()
    for rows in train[torch.randperm(len(train))].split(100):
        loss = nn.functional.mse_loss(actor(obs[rows]), act[rows])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    actor.eval()
    with torch.no_grad():
        mse = nn.functional.mse_loss(actor(obs[held]), act[held]).item()
    print(f"epoch {epoch}: batch loss {loss.item():.3f} held-out mse {mse:.3f} of {act.var():.3f}")
