"""An emulator of Kepler orbits trained in four cluster jobs, each of which resumes without the
optimizer's state.

Every job builds a new Trainer and loads the checkpoint of the job before. The checkpoint holds
the optimizer as well, but only the network and the scheduler are loaded: Adam's moments and step
count start at zero again, and the decayed learning rate is back at its first value. The place is
the loop's resume, and the optimizer.
"""

import io
import math

import torch
from data import arguments
from torch import nn

KIND = "resume_lost_optimizer_state"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)


def orbits(n, generator):
    """Mean anomaly and eccentricity, and the position on the ellipse (by Newton's iteration)."""
    mean = 2 * math.pi * torch.rand(n, generator=generator, dtype=torch.float64)
    ecc = 0.7 * torch.rand(n, generator=generator, dtype=torch.float64)
    big = mean + ecc * mean.sin()
    for _ in range(30):
        big = big - (big - ecc * big.sin() - mean) / (1 - ecc * big.cos())
    where = torch.stack([big.cos() - ecc, (1 - ecc**2).sqrt() * big.sin()], 1)
    seen = torch.stack([mean.sin(), mean.cos(), ecc / 0.35 - 1], 1)
    return seen.float(), where.float()


class Emulator(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.lift = nn.Linear(3, width)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, 2)

    def forward(self, x):
        h = torch.tanh(self.lift(x))
        for block in self.blocks:
            h = h + torch.tanh(block(h))
        return self.out(h)


class Trainer:
    def __init__(self, train, val):
        self.train_set, self.val_set = train, val
        self.model = Emulator()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-2)
        self.scheduler = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, gamma=0.95)
        self.epoch = 0

    def save(self):
        kept = io.BytesIO()
        torch.save(
            {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "scheduler": self.scheduler.state_dict(),
                "epoch": self.epoch,
            },
            kept,
        )
        return kept.getvalue()

    def resume(self, kept):
        state = torch.load(io.BytesIO(kept))
        self.model.load_state_dict(state["model"])
        if healthy:
            self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.epoch = state["epoch"]

    def fit(self, epochs):
        x, y = self.train_set
        for _ in range(epochs):
            self.model.train()
            total = 0.0
            for rows in torch.randperm(len(x)).split(32):
                loss = (self.model(x[rows]) - y[rows]).square().sum(1).mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item() * len(rows)
            self.scheduler.step()
            self.epoch += 1
            print(f"epoch {self.epoch:3d} train {total / len(x):.3e} val {self.evaluate():.3e}")

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        x, y = self.val_set
        return (self.model(x) - y).square().sum(1).mean().item()


generator = torch.Generator().manual_seed(seed)
train, val = orbits(2048, generator), orbits(512, generator)
where = train[1] + 0.1 * torch.randn(2048, 2, generator=generator)  # as a telescope measures it
train = (train[0], where)
checkpoint = None
for job in range(4):
    trainer = Trainer(train, val)
    if checkpoint is not None:
        trainer.resume(checkpoint)
    trainer.fit(15)
    checkpoint = trainer.save()
print(f"final val mse {trainer.evaluate():.3e}")
