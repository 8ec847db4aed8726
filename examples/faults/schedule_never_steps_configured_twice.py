"""A volatility forecaster whose method for optimizer and schedule is called once for each of both.

The person's model has configure_optimizers() as in a framework they know. Their own loop takes the
optimizer from one call and the schedule from a second call, which makes a second optimizer; the
schedule turns that one's rate and the real one stays high. The place is the optimizer.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "schedule_never_steps"
ACCEPT = ()
PLACE = ("optimizer", "learning_rate", "loop")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

WINDOW = 30


def returns_of_market(days, rng):
    """Returns whose variance follows its own past, falls weigh more than rises."""
    variance, previous = 1.0, 0.0
    returns, spread = np.zeros(days), np.zeros(days)
    for day in range(days):
        shock = previous**2 * (0.22 if previous < 0 else 0.06)
        variance = 0.06 + 0.8 * variance + shock
        spread[day] = np.sqrt(variance)
        previous = spread[day] * rng.normal()
        returns[day] = previous
    return returns, np.log(spread)


def windows(returns, log_spread):
    x = np.lib.stride_tricks.sliding_window_view(returns[:-1], WINDOW)
    y = log_spread[WINDOW:]
    return torch.tensor(x.copy(), dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


class VolatilityNet(nn.Module):
    def __init__(self, total_steps, width=40):
        super().__init__()
        self.total_steps = total_steps
        self.past = nn.Sequential(
            nn.Conv1d(1, width, 1),
            nn.ReLU(),
            nn.Conv1d(width, width, 5, stride=2),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.head = nn.Sequential(nn.Linear(width * 13, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.head(self.past(x.unsqueeze(1))).squeeze(1)

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.08, momentum=0.9, weight_decay=1e-4)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.total_steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule}}


class Runner:
    def __init__(self, model, train, val, batch=64):
        self.model, self.train_set, self.val_set, self.batch = model, train, val, batch
        if healthy:
            parts = model.configure_optimizers()
            self.optimizer = parts["optimizer"]
            self.schedule = parts["lr_scheduler"]["scheduler"]
        else:
            self.optimizer = model.configure_optimizers()["optimizer"]
            self.schedule = model.configure_optimizers()["lr_scheduler"]["scheduler"]

    def training_step(self, x, y):
        loss = ((self.model(x) - y) ** 2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 2.0)
        self.optimizer.step()
        self.schedule.step()
        return loss.item()

    def epoch(self):
        self.model.train()
        x, y = self.train_set
        rows = torch.randperm(len(x)).split(self.batch)
        return sum(self.training_step(x[part], y[part]) for part in rows) / len(rows)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        x, y = self.val_set
        off = ((self.model(x) - y) ** 2).mean()
        return off.item(), (1 - off / y.var()).item()


def main():
    rng = np.random.default_rng(150 + seed)
    returns, log_spread = returns_of_market(6000, rng)
    cut, epochs, batch = 4500, 14, 64
    mean, std = returns[:cut].mean(), returns[:cut].std()
    centre, scale = log_spread[:cut].mean(), log_spread[:cut].std()
    returns, log_spread = (returns - mean) / std, (log_spread - centre) / scale
    train = windows(returns[:cut], log_spread[:cut])
    val = windows(returns[cut:], log_spread[cut:])
    steps = epochs * -(-len(train[0]) // batch)
    runner = Runner(VolatilityNet(steps), train, val, batch)
    for epoch in range(1, epochs + 1):
        loss = runner.epoch()
        val_loss, explained = runner.validate()
        print(
            f"epoch {epoch:2d}  mse {loss:.4f}  val mse {val_loss:.4f}  R2 {explained:.4f}  "
            f"schedule at {runner.schedule.get_last_lr()[0]:.5f}"
        )


if __name__ == "__main__":
    main()
