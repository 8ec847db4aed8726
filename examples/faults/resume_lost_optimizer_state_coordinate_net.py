"""A coordinate net for a height map is trained in jobs; each starts Adam with empty moments.

The job scheduler kills the training every hundred steps. The checkpoint holds the optimizer's
param_groups, as the person took them for its whole state (learning rate, betas, decay); the
moments and the step count are in `state` and get lost, so that each job begins with a leap of the
loss. The place is the optimizer (checkpoint).
"""

import math
import os
import tempfile

import torch
from data import arguments
from torch import nn

KIND = "resume_lost_optimizer_state"
ACCEPT = ("loss_spike",)
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

CONFIG = {"jobs": 10, "steps_per_job": 100, "batch": 512, "lr": 6e-3, "width": 96, "decay": 0.999}


def terrain(points: torch.Tensor) -> torch.Tensor:
    """Hills, a valley and a ridge; zero mean, about unit deviation."""
    x, y = points[:, 0], points[:, 1]
    hills = 0.9 * (3.1 * x).sin() * (2.3 * y + 0.7).cos() + 0.5 * (6.5 * x - 4.2 * y).sin()
    valley = -1.3 * (-((x - 0.3) ** 2 + (y + 0.4) ** 2) / 0.08).exp()
    ridge = 0.8 * (-((x + y) ** 2) / 0.02).exp()
    return hills + valley + ridge


class Waves(nn.Module):
    """Sine features of fixed random frequencies."""

    def __init__(self, features: int, scale: float):
        super().__init__()
        self.register_buffer("frequencies", scale * torch.randn(2, features))

    def forward(self, points):
        angles = 2 * math.pi * points @ self.frequencies
        return torch.cat([angles.sin(), angles.cos()], 1)


class HeightField(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.waves = Waves(32, 0.6)
        self.layers = nn.Sequential(
            nn.Linear(64, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1)
        )

    def forward(self, points):
        return self.layers(self.waves(points)).squeeze(1)


class Job:
    """One allocation on the cluster: restores, trains for a while, saves, and ends."""

    def __init__(self, path: str):
        self.path = path
        self.model = HeightField(CONFIG["width"])
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=CONFIG["lr"], betas=(0.9, 0.995)
        )
        self.step = 0
        if os.path.exists(path):
            self.restore()

    def save(self):
        state = self.optimizer.state_dict()
        torch.save(
            {
                "model": self.model.state_dict(),
                "optimizer": state if healthy else {**state, "state": {}},
                "step": self.step,
            },
            self.path,
        )

    def restore(self):
        checkpoint = torch.load(self.path)
        self.model.load_state_dict(checkpoint["model"])
        self.optimizer.load_state_dict(checkpoint["optimizer"])
        self.step = checkpoint["step"]

    def run(self, points, heights):
        losses = []
        for _ in range(CONFIG["steps_per_job"]):
            rows = torch.randint(0, len(points), (CONFIG["batch"],))
            loss = (self.model(points[rows]) - heights[rows]).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            for group in self.optimizer.param_groups:
                group["lr"] *= CONFIG["decay"]
            self.step += 1
            losses.append(loss.item())
        self.save()
        return losses


def main():
    g = torch.Generator().manual_seed(210 + seed)
    points = 2 * torch.rand(6000, 2, generator=g) - 1
    heights = terrain(points) + 0.02 * torch.randn(6000, generator=g)
    places = 2 * torch.rand(1500, 2, generator=g) - 1
    truth = terrain(places)
    last = None
    with tempfile.TemporaryDirectory() as folder:
        for number in range(CONFIG["jobs"]):
            job = Job(os.path.join(folder, "last.pt"))
            losses = job.run(points, heights)
            with torch.no_grad():
                error = (job.model(places) - truth).square().mean().sqrt().item()
            before = f"{last:.5f}" if last is not None else "   -   "
            last = sum(losses[-10:]) / 10
            print(
                f"job {number}  before {before}  highest of the first ten {max(losses[:10]):.5f}"
                f"  last ten {last:.5f}  rmse elsewhere {error:.4f}"
            )


if __name__ == "__main__":
    main()
