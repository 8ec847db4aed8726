"""Estimates a cyclist's power from speed, gradient and wind; each resume forgets Adagrad's sums.

The job runs on machines that are taken away every few dozen steps and goes on from a checkpoint in
a directory. The file holds the optimizer's state, but load() puts back only the weights and the
step, so that Adagrad's sums of squares begin at zero after each interruption: its strides, which
ought to become ever shorter, are as long as on the first day again.
The place is the optimizer, when the run is resumed.
The twin loads the optimizer's state as well.
"""

import os
import tempfile
from dataclasses import dataclass

import torch
from data import arguments, standardise
from torch import nn

KIND = "resume_lost_optimizer_state"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = True
EARLY = False


@dataclass
class Config:
    out_dir: str
    batch_size: int = 32
    lr: float = 0.05
    max_iters: int = 600
    session_iters: int = 20
    hidden: int = 64


def rides(n, g):
    """Watts by the usual balance of air, rolling resistance and slope, and measuring noise."""
    speed = 3 + 9 * torch.rand(n, generator=g)  # m/s
    slope = 0.03 * torch.randn(n, generator=g)
    wind = 2.5 * torch.randn(n, generator=g)
    mass = 70 + 9 * torch.randn(n, generator=g)
    drops = (torch.rand(n, generator=g) < 0.4).float()
    air = 0.5 * 1.2 * (0.38 - 0.07 * drops) * (speed + wind).abs() * (speed + wind) * speed
    watts = air + mass * 9.81 * (0.005 + slope) * speed
    watts = watts.clamp(min=0) + 8 * torch.randn(n, generator=g)
    return torch.stack([speed, slope, wind, mass, drops], 1), watts.unsqueeze(1)


class Session:
    """One stay on one machine: from the last checkpoint, or from scratch, to the next one."""

    def __init__(self, cfg, data):
        self.cfg, self.data = cfg, data
        self.path = os.path.join(cfg.out_dir, "ckpt.pt")
        self.model = nn.Sequential(
            nn.Linear(5, cfg.hidden),
            nn.SiLU(),
            nn.Linear(cfg.hidden, cfg.hidden),
            nn.SiLU(),
            nn.Linear(cfg.hidden, 1),
        )
        self.optimizer = torch.optim.Adagrad(self.model.parameters(), lr=cfg.lr)
        self.iter_num = 0
        if os.path.exists(self.path):
            self.load()

    def save(self):
        torch.save(
            {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "iter_num": self.iter_num,
            },
            self.path,
        )

    def load(self):
        checkpoint = torch.load(self.path)
        self.model.load_state_dict(checkpoint["model"])
        if healthy:
            self.optimizer.load_state_dict(checkpoint["optimizer"])
        self.iter_num = checkpoint["iter_num"]

    @torch.no_grad()
    def validate(self):
        _, _, x_val, y_val = self.data
        return nn.functional.mse_loss(self.model(x_val), y_val).item()

    def run(self):
        x, y, _, _ = self.data
        losses = []
        stop = min(self.iter_num + self.cfg.session_iters, self.cfg.max_iters)
        while self.iter_num < stop:
            rows = torch.randint(0, len(x), (self.cfg.batch_size,))
            loss = nn.functional.mse_loss(self.model(x[rows]), y[rows])
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
            self.iter_num += 1
        self.save()
        if self.iter_num % 100 == 0:
            mean = sum(losses) / len(losses)
            print(f"iter {self.iter_num}: loss {mean:.4f}, val {self.validate():.4f}")


healthy, seed = arguments(__doc__)
generator = torch.Generator().manual_seed(seed)
features, watts = rides(2500, generator)
x, x_val = standardise(features[:2000], features[2000:])
y, y_val = standardise(watts[:2000], watts[2000:])

with tempfile.TemporaryDirectory() as out_dir:
    config = Config(out_dir=out_dir)
    for _ in range(config.max_iters // config.session_iters):
        Session(config, (x, y, x_val, y_val)).run()
