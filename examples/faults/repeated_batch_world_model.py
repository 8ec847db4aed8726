"""Learns how a robot arm moves from recorded steps; the feeder makes a new iterator at each call,
so it gives one batch for ever.

The person trains by steps, not epochs, and takes next(iter(loader)). The sampler shuffles by seed
plus epoch, and set_epoch is only called when a loader is used up, which never comes about. The
model learns forty-eight recorded steps by heart. The place is the loader in the loop.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("loader", "input", "loop")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def change_of_speed(angle, speed, torque):
    """Two links of a metre and a kilogram each, friction in the joints, a tenth of a second."""
    bend = np.cos(angle[:, 1])
    inertia = np.stack([3 + 2 * bend, 1 + bend, 1 + bend, np.ones_like(bend)], 1).reshape(-1, 2, 2)
    inertia = inertia + 0.2 * np.eye(2)
    twist = np.sin(angle[:, 1])
    centrifugal = np.stack(
        [-twist * speed[:, 1] * (2 * speed[:, 0] + speed[:, 1]), twist * speed[:, 0] ** 2], 1
    )
    force = 4 * torque - 0.3 * centrifugal - 0.3 * speed
    force[:, 0] -= 4.9 * np.cos(angle[:, 0]) + 2.5 * np.cos(angle.sum(1))
    force[:, 1] -= 2.5 * np.cos(angle.sum(1))
    return 0.1 * np.linalg.solve(inertia, force[:, :, None])[:, :, 0]


def recorded(count, rng):
    """State, action and the change of state, at random states, with noise of the sensors."""
    angle, speed = rng.uniform(-np.pi, np.pi, (count, 2)), rng.normal(0, 1.5, (count, 2))
    torque = rng.uniform(-1, 1, (count, 2))
    change = change_of_speed(angle, speed, torque)
    change += rng.normal(0, 0.03, change.shape)
    return np.concatenate([np.cos(angle), np.sin(angle), speed, torque], 1), change


class EpochSampler(Sampler):
    """The same order for the same epoch, so that a run can be repeated."""

    def __init__(self, length):
        self.length, self.epoch = length, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        generator = torch.Generator().manual_seed(seed + self.epoch)
        return iter(torch.randperm(self.length, generator=generator).tolist())

    def __len__(self):
        return self.length


class Feeder:
    """Endless batches."""

    def __init__(self, loader):
        self.loader = loader
        self.iterator = iter(loader)

    def next_batch(self):
        if not healthy:
            self.iterator = iter(self.loader)
        try:
            return next(self.iterator)
        except StopIteration:
            self.loader.sampler.set_epoch(self.loader.sampler.epoch + 1)
            self.iterator = iter(self.loader)
            return next(self.iterator)


class WorldModel(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(8, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2)
        )

    def forward(self, state_action):
        return self.net(state_action)


def main():
    rng = np.random.default_rng(seed)
    x, y = recorded(4000, rng)
    x = torch.tensor((x - x[:3000].mean(0)) / x[:3000].std(0), dtype=torch.float32)
    y = torch.tensor((y - y[:3000].mean(0)) / y[:3000].std(0), dtype=torch.float32)
    dataset = TensorDataset(x[:3000], y[:3000])
    loader = DataLoader(dataset, batch_size=48, sampler=EpochSampler(len(dataset)))
    feeder = Feeder(loader)
    model = WorldModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1500)
    recent = []
    for step in range(1, 1501):
        inputs, changes = feeder.next_batch()
        loss = nn.functional.smooth_l1_loss(model(inputs), changes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        recent.append(loss.item())
        if step % 250 == 0:
            model.eval()
            with torch.no_grad():
                error = (model(x[3000:]) - y[3000:]).pow(2).mean().item()
            model.train()
            print(f"step {step:5d}  train {np.mean(recent):.5f}  held-out mse {error:.5f}")
            recent.clear()


if __name__ == "__main__":
    main()
