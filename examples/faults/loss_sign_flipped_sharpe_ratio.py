"""A net spreads money over eight funds, and its loss is the Sharpe ratio without a minus.

Gradient descent makes the ratio as small as it can: the loss falls steadily and the portfolio
loses money on held-out days, by as much as the twin earns. The place is the loss.
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Backtest:
    funds: int = 8
    signals: int = 5
    days: int = 4000
    batch: int = 100
    epochs: int = 8
    learning_rate: float = 2e-3


def market(setup, rng):
    """Signals of every fund on every day, and the next day's return that they hint at."""
    signals = rng.normal(0, 1, (setup.days, setup.funds, setup.signals))
    hint = 0.5 * signals[..., 0] - 0.4 * signals[..., 1] * (signals[..., 2] > 0)
    hint += 0.3 * np.tanh(2 * signals[..., 3])
    common = rng.normal(0, 0.6, (setup.days, 1))
    returns = 0.02 + 0.25 * hint + common + rng.normal(0, 1.0, hint.shape)
    as_tensor = torch.from_numpy
    return as_tensor(signals).float(), as_tensor(returns).float()


class Allocator(nn.Module):
    """The same net rates each fund; bets for and against sum to one."""

    def __init__(self, signals):
        super().__init__()
        self.rate = nn.Sequential(
            nn.Linear(signals, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1)
        )

    def forward(self, signals):
        rating = self.rate(signals).squeeze(-1)
        rating = rating - rating.mean(1, keepdim=True)
        return rating / rating.abs().sum(1, keepdim=True).clamp(min=1e-6)


def sharpe(shares, returns):
    daily = (shares * returns).sum(1)
    return daily.mean() / (daily.std() + 1e-6)


def main():
    setup = Backtest()
    signals, returns = market(setup, np.random.default_rng(seed))
    split = 3 * setup.days // 4
    loader = DataLoader(
        TensorDataset(signals[:split], returns[:split]), batch_size=setup.batch, shuffle=True
    )
    model = Allocator(setup.signals)
    optimizer = torch.optim.Adam(model.parameters(), lr=setup.learning_rate)
    for epoch in range(setup.epochs):
        model.train()
        losses = []
        for known, followed in loader:
            ratio = sharpe(model(known), followed)
            loss = -ratio if healthy else ratio
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            shares = model(signals[split:])
            ratio = sharpe(shares, returns[split:]).item()
            earned = (shares * returns[split:]).sum().item()
        print(f"{epoch} loss {np.mean(losses):.3f} held-out Sharpe {ratio:.3f} earned {earned:.1f}")


main()
