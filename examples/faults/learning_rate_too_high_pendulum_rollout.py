"""A net learns a pendulum by rolling out eight steps, by RMSprop with a learning rate of 0.03.

Every update throws the weights about: the loss jumps up in the first steps and stays near 20, and
long rollouts fly off. With 0.003 the error falls to a hundredth. The place is the optimizer: its
learning rate.
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("learning_rate", "optimizer")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Study:
    learning_rate: float = 3e-3 if healthy else 0.03
    width: int = 48
    horizon: int = 8
    batch: int = 64
    epochs: int = 24
    step: float = 0.12


def swings(n, length, study, rng):
    """States (angle as sine and cosine, speed) and the torque of the motor at each step."""
    angle, speed = rng.uniform(-2.5, 2.5, n), rng.uniform(-2, 2, n)
    torque = rng.choice([-1.0, 0.0, 1.0], (n, length // 4 + 1)).repeat(4, axis=1)[:, :length]
    states = []
    for t in range(length):
        states.append(np.stack([np.sin(angle), np.cos(angle), speed / 2], 1))
        for _ in range(6):
            change = -4 * np.sin(angle) - 0.3 * speed + torque[:, t]
            speed = speed + study.step / 6 * change
            angle = angle + study.step / 6 * speed
    states = np.stack(states, 1) + rng.normal(0, 0.01, (n, length, 3))
    return {
        "states": torch.tensor(states, dtype=torch.float32),
        "torque": torch.tensor(torque[:, :, None], dtype=torch.float32),
    }


class Dynamics(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.change = nn.Sequential(
            nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 3)
        )

    def rollout(self, state, torque):
        path = []
        for t in range(torque.shape[1]):
            state = state + self.change(torch.cat([state, torque[:, t]], 1))
            path.append(state)
        return torch.stack(path, 1)


def rollout_loss(model, batch):
    path = model.rollout(batch["states"][:, 0], batch["torque"][:, :-1])
    return (path - batch["states"][:, 1:]).square().mean()


def main():
    study = Study()
    rng = np.random.default_rng(seed)
    train, validation = (swings(n, study.horizon + 1, study, rng) for n in (1200, 300))
    long = swings(100, 25, study, rng)
    model = Dynamics(study.width)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=study.learning_rate)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, study.epochs)
    for epoch in range(study.epochs):
        model.train()
        total = 0.0
        for rows in torch.randperm(1200).split(study.batch):
            loss = rollout_loss(model, {name: part[rows] for name, part in train.items()})
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows) / 1200
        schedule.step()
        model.eval()
        with torch.no_grad():
            val_loss = rollout_loss(model, validation).item()
        if epoch % 3 == 2:
            print(f"epoch {epoch:2d} train {total:.4f} val {val_loss:.4f}")
    with torch.no_grad():
        print(f"rollouts of 24 steps: {rollout_loss(model, long).item():.4f}")


main()
