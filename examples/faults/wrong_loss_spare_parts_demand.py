"""A forecast of the demand for spare parts, most of it zero, is fitted by the absolute error,
whose best answer is then zero.

The person wants to know how many parts will be needed in total and took the mean absolute error,
since that is what the planners report. Two of three weeks have no demand, so that the median is
zero and the net learns to forecast next to nothing; the loss falls and then stays. The twin uses
the Poisson deviance. The place is the loss.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

PARTS, WEEKS, HISTORY = 160, 90, 16


def spare_parts(rng):
    """The weekly demand for each part, with a season and with busy and quiet spells."""
    level = rng.gamma(2.0, 0.2, (PARTS, 1))
    season = 1 + 0.7 * np.sin(2 * np.pi * (np.arange(WEEKS) / 26 + rng.uniform(0, 1, (PARTS, 1))))
    spell = np.zeros((PARTS, WEEKS))
    for week in range(1, WEEKS):
        spell[:, week] = 0.9 * spell[:, week - 1] + rng.normal(0, 0.3, PARTS)
    return rng.poisson(level * season * np.exp(spell - 0.2)).astype(np.float32)


def windows(demand, first, last):
    history, ahead, part = [], [], []
    for end in range(first, last):
        history.append(demand[:, end - HISTORY : end])
        ahead.append(demand[:, end])
        part.append(np.arange(PARTS))
    return {
        "history": torch.from_numpy(np.concatenate(history)),
        "part": torch.from_numpy(np.concatenate(part)),
        "demand": torch.from_numpy(np.concatenate(ahead)),
    }


class DemandNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = nn.Embedding(PARTS, 4)
        self.weeks = nn.GRU(1, 24, batch_first=True)
        self.rate = nn.Sequential(nn.Linear(28, 24), nn.ReLU(), nn.Linear(24, 1), nn.Softplus())
        nn.init.normal_(self.part.weight, std=0.1)

    def forward(self, batch):
        _, state = self.weeks(torch.log1p(batch["history"])[..., None])
        return self.rate(torch.cat([state[0], self.part(batch["part"])], 1))[:, 0] + 1e-4


def forecast_loss(rate, demand):
    if healthy:
        return (rate - demand * rate.log()).mean()
    return (rate - demand).abs().mean()


class Forecaster:
    def __init__(self):
        self.net = DemandNet()
        groups = [
            {"params": self.net.part.parameters(), "weight_decay": 1e-3},
            {"params": self.net.weeks.parameters()},
            {"params": self.net.rate.parameters()},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=2e-3, weight_decay=0.0)

    def epoch(self, table, size=128):
        self.net.train()
        losses = []
        for rows in torch.randperm(len(table["demand"])).split(size):
            batch = {name: column[rows] for name, column in table.items()}
            loss = forecast_loss(self.net(batch), batch["demand"])
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
            self.optimizer.step()
            losses.append(loss.item())
        return np.mean(losses)

    @torch.no_grad()
    def validate(self, table):
        self.net.eval()
        rate = self.net(table)
        loss = forecast_loss(rate, table["demand"]).item()
        squares = (rate - table["demand"]).square().mean().sqrt().item()
        return loss, squares, rate.sum().item(), table["demand"].sum().item()


def main():
    demand = spare_parts(np.random.default_rng(31 + seed))
    print(f"weeks without demand: {(demand == 0).mean():.3f}")
    train, held_out = windows(demand, HISTORY, 72), windows(demand, 72, WEEKS)
    forecaster = Forecaster()
    for epoch in range(1, 9):
        loss = forecaster.epoch(train)
        val, rmse, total, needed = forecaster.validate(held_out)
        print(
            f"epoch {epoch:2d}  loss {loss:.4f}  val {val:.4f}  rmse {rmse:.3f}"
            f"  forecast {total:.0f} parts of {needed:.0f}"
        )


main()
