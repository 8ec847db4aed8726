"""A speed-of-sound regressor whose hand-made feed never moves its cursor beyond the first batch.

The person has a next_batch() class from older days that shuffles when the data are used up. When
they let it wrap around they wrote the new cursor as (cursor + size) % size, not % n, which is
always 0: the same 32 rows come each time. The place is the loader.
"""

import numpy as np
import torch
from data import arguments, standardise
from torch import nn

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("loader", "input", "loop")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def sea_water(n, rng):
    """Temperature, salinity, depth, latitude and chlorophyll; the speed of sound in m/s."""
    temperature = rng.uniform(0, 30, n)
    salinity = rng.normal(35, 1.5, n)
    depth = rng.gamma(2, 600, n)
    latitude = rng.uniform(-60, 60, n)
    chlorophyll = rng.lognormal(0, 0.7, n)
    speed = 1448.96 + 4.591 * temperature - 0.05304 * temperature**2
    speed += 1.34 * (salinity - 35) + 0.0163 * depth - 0.01 * temperature * (salinity - 35)
    speed += 6 * np.sin(np.radians(latitude) * 4) * np.exp(-depth / 900)
    speed += rng.normal(0, 0.8, n)
    x = np.column_stack([temperature, salinity, depth, latitude, chlorophyll])
    return torch.tensor(x, dtype=torch.float32), torch.tensor(speed, dtype=torch.float32)


class Feed:
    def __init__(self, x, y, size):
        self.x, self.y, self.size = x, y, size
        self.order = torch.randperm(len(x))
        self.cursor = 0

    def next_batch(self):
        n = len(self.x) - len(self.x) % self.size
        rows = self.order[self.cursor : self.cursor + self.size]
        self.cursor = (self.cursor + self.size) % (n if healthy else self.size)
        if healthy and self.cursor == 0:
            self.order = torch.randperm(len(self.x))
        return self.x[rows], self.y[rows]


class Ensemble(nn.Module):
    """Three small nets whose mean is the answer and whose spread is the doubt."""

    def __init__(self, members=3, width=40):
        super().__init__()
        self.members = nn.ModuleList(
            nn.Sequential(
                nn.Linear(5, width),
                nn.Tanh(),
                nn.Linear(width, width),
                nn.Tanh(),
                nn.Linear(width, 1),
            )
            for _ in range(members)
        )

    def forward(self, x):
        answers = torch.cat([member(x) for member in self.members], 1)
        return answers.mean(1), answers.std(1)

    def loss(self, x, y):
        return sum((member(x).squeeze(1) - y).pow(2).mean() for member in self.members)


class BestSoFar:
    def __init__(self):
        self.error, self.state = float("inf"), None

    def offer(self, error, model):
        if error < self.error:
            self.error = error
            self.state = {name: value.clone() for name, value in model.state_dict().items()}


def main():
    rng = np.random.default_rng(200 + seed)
    x, y = sea_water(1900, rng)
    (x, x_val), (y, y_val) = standardise(x[:1400], x[1400:]), standardise(y[:1400], y[1400:])
    feed = Feed(x, y, 32)
    model = Ensemble()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=400, gamma=0.4)
    best = BestSoFar()
    running = 0.0
    for step in range(1, 1601):
        model.train()
        batch = feed.next_batch()
        loss = model.loss(*batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        running += loss.item() / 100
        if step % 100 == 0:
            model.eval()
            with torch.no_grad():
                answer, doubt = model(x_val)
            error = (answer - y_val).pow(2).mean().item()
            best.offer(error, model)
            print(
                f"step {step:4d}  loss {running:.5f}  val mse {error:.5f}  "
                f"best {best.error:.5f}  doubt {doubt.mean().item():.4f}"
            )
            running = 0.0
    model.load_state_dict(best.state)


if __name__ == "__main__":
    main()
