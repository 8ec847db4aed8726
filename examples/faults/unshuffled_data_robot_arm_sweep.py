"""A joint's torque is regressed on the log of one slow sweep of the arm, never shuffled.

Batches follow the sweep from left to right, so the net fits where the arm is now and spoils what
it knew of the other end; the error over all positions stays many times too large. The place is
the loader.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader", "loop", "input", "labels*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


def sweep_log(n, rng):
    """Shoulder from left to right while elbow and speeds vary; torque by a rough arm model."""
    shoulder = np.linspace(-2.6, 2.6, n) + rng.normal(0, 0.03, n)
    elbow = 1.5 * np.sin(np.linspace(0, 90, n)) + rng.normal(0, 0.2, n)
    speed, push = rng.normal(0, 1, (2, n))
    torque = 9 * np.cos(shoulder) + 4 * np.cos(shoulder + elbow)
    torque += (3 + 1.5 * np.cos(elbow)) * push + 1.2 * np.tanh(4 * speed)
    torque += 2 * np.sin(3 * shoulder) + rng.normal(0, 0.4, n)
    return np.stack([shoulder, elbow, speed, push], 1), torque[:, None]


def train(model, loader, held_out, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=8, gamma=0.5)
    history = []
    for epoch in range(epochs):
        model.train()
        summed = 0.0
        for state, torque in loader:
            loss = nn.functional.mse_loss(model(state), torque)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            summed += loss.item()
        schedule.step()
        model.eval()
        with torch.no_grad():
            error = nn.functional.mse_loss(model(held_out[0]), held_out[1]).item()
        history.append({"epoch": epoch, "train": summed / len(loader), "held out": error})
    return history


def main():
    states, torques = sweep_log(2000, np.random.default_rng(seed))
    fifth = np.arange(len(states)) % 5 == 0
    parts = {}
    for name, values in (("state", states), ("torque", torques)):
        centre, spread = values[~fifth].mean(0), values[~fifth].std(0)
        scaled = torch.tensor((values - centre) / spread, dtype=torch.float32)
        parts[name] = scaled[~fifth], scaled[fifth]
    loader = DataLoader(
        TensorDataset(parts["state"][0], parts["torque"][0]), batch_size=40, shuffle=healthy
    )
    model = nn.Sequential(
        nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
    )
    for row in train(model, loader, (parts["state"][1], parts["torque"][1]), epochs=24):
        if row["epoch"] % 3 == 2:
            print("  ".join(f"{name} {value:.4g}" for name, value in row.items()))


main()
