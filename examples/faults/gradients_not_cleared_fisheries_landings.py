"""Forecasting a port's landings of fish from the weeks before; gradients pile up from step to step.

`zero_grad` was moved out of the inner loop when the warm-up was added, and is now called once when
the trainer is made. Every step goes along the sum of all gradients there have been.
The place is the loop. The twin clears the gradients before each backward pass.
"""

import copy
from dataclasses import dataclass

import torch
from data import arguments
from torch import nn

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


@dataclass
class Options:
    weeks: int = 26
    hidden: int = 48
    lr: float = 3e-3
    warmup: int = 20
    epochs: int = 10
    batch: int = 32
    ema: float = 0.98


def landings(weeks: int) -> torch.Tensor:
    """Tonnes a week as logarithms: season, quota year, storms, and a slow stock."""
    t = torch.arange(weeks).float()
    season = torch.sin(2 * torch.pi * t / 52) + 0.4 * torch.sin(4 * torch.pi * t / 52 + 1)
    stock, storm = torch.zeros(weeks), torch.zeros(weeks)
    for k in range(1, weeks):
        stock[k] = 0.97 * stock[k - 1] + 0.15 * torch.randn(())
        storm[k] = 0.5 * storm[k - 1] + 0.2 * torch.randn(())
    return season + stock + storm - 0.3 * ((t % 52) > 46)


class Forecaster(nn.Module):
    def __init__(self, weeks, hidden):
        super().__init__()
        self.read = nn.Linear(weeks, hidden)
        self.middle = nn.Linear(hidden, hidden)
        self.tell = nn.Linear(hidden, 1)

    def forward(self, past):
        h = torch.tanh(self.read(past))
        return self.tell(h + torch.relu(self.middle(h))).squeeze(-1)


class PortTrainer:
    def __init__(self, opt: Options, series: torch.Tensor):
        self.opt = opt
        windows = series.unfold(0, opt.weeks + 1, 1)
        cut = int(0.8 * len(windows))
        self.train_set, self.val_set = windows[:cut], windows[cut + opt.weeks :]
        self.net = Forecaster(opt.weeks, opt.hidden)
        self.average = copy.deepcopy(self.net).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=opt.lr)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: min(1.0, (step + 1) / opt.warmup)
        )
        self.optimizer.zero_grad()

    def step(self, window):
        loss = nn.functional.mse_loss(self.net(window[:, :-1]), window[:, -1])
        if healthy:
            self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        with torch.no_grad():
            for slow, fast in zip(self.average.parameters(), self.net.parameters(), strict=False):
                slow.lerp_(fast, 1 - self.opt.ema)
        return loss.item()

    @torch.no_grad()
    def score(self):
        window = self.val_set
        return (self.average(window[:, :-1]) - window[:, -1]).abs().mean().item()

    def run(self):
        for epoch in range(self.opt.epochs):
            order = torch.randperm(len(self.train_set)).split(self.opt.batch)
            losses = [self.step(self.train_set[rows]) for rows in order]
            mean = sum(losses) / len(losses)
            print(f"{epoch:02d} loss={mean:.4f} val_mae={self.score():.4f}")


series = landings(1600)
PortTrainer(Options(), (series - series.mean()) / series.std()).run()
