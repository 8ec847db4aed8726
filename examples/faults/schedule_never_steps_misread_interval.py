"""Forecasting a grid's load, one-cycle rate: the trainer does not know the interval "batch".

The configuration says that the schedule advances every "batch"; the trainer, which was written
later, asks for "step" or "epoch" and silently does neither. One-cycle begins at a fraction of its
peak and so the rate stays there for the whole run. The place is the schedule. The twin's
configuration says "step".
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_never_steps"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer",)
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
CONFIG = {
    "epochs": 10,
    "batch_size": 48,
    "optimizer": {
        "name": "SGD",
        "lr": 0.1,
        "momentum": 0.9,
        "nesterov": True,
        "weight_decay": 1e-4,
    },
    "schedule": {
        "name": "OneCycleLR",
        "max_lr": 0.1,
        "pct_start": 0.2,
        "div_factor": 200,
        "cycle_momentum": False,
    },
    "interval": "step" if healthy else "batch",
}


def grid(days, g):
    """Hourly load: two daily peaks, a weekly rhythm and heating against a slow temperature."""
    hour = torch.arange(days * 24).float()
    cold = torch.randn(days, generator=g)
    for day in range(1, days):
        cold[day] = 0.9 * cold[day - 1] + 0.4 * cold[day]
    cold = cold.repeat_interleave(24)
    weekend = ((hour // 24) % 7 >= 5).float()
    rhythm = (6.283 * hour / 24).sin() + 0.6 * (12.566 * hour / 24 + 1).sin()
    load = rhythm * (1 - 0.5 * weekend) * (1 + 0.3 * cold) + 0.6 * cold - 0.5 * weekend
    return load + 0.1 * torch.randn(len(hour), generator=g), cold, weekend


def windows(load, cold, weekend, past=48, ahead=6):
    rows = torch.arange(past, len(load) - ahead, 2)
    history = load[rows[:, None] + torch.arange(-past, 0)]
    clock = torch.stack(
        [(6.283 * rows / 24).sin(), (6.283 * rows / 24).cos(), cold[rows], weekend[rows]], 1
    )
    return TensorDataset(torch.cat([history, clock], 1), load[rows[:, None] + torch.arange(ahead)])


class Trainer:
    def __init__(self, model, train, config):
        self.model, self.train, self.config = model, train, config
        made = dict(config["optimizer"])
        self.optimizer = getattr(torch.optim, made.pop("name"))(model.parameters(), **made)
        made = dict(config["schedule"], total_steps=config["epochs"] * len(train))
        self.scheduler = getattr(torch.optim.lr_scheduler, made.pop("name"))(self.optimizer, **made)

    def epoch(self):
        self.model.train()
        total = 0.0
        for x, y in self.train:
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            if self.config["interval"] == "step":
                self.scheduler.step()
            total += loss.item() / len(self.train)
        if self.config["interval"] == "epoch":
            self.scheduler.step()
        return total


@torch.no_grad()
def error(model, held):
    model.eval()
    x, y = held.tensors
    return (model(x) - y).pow(2).mean() / y.var()


series = grid(330, torch.Generator().manual_seed(seed))
cut = 250 * 24
train = DataLoader(windows(*(s[:cut] for s in series)), CONFIG["batch_size"], shuffle=True)
held = windows(*(s[cut:] for s in series))
model = nn.Sequential(nn.Linear(52, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 6))
trainer = Trainer(model, train, CONFIG)
for epoch in range(CONFIG["epochs"]):
    loss = trainer.epoch()
    print(f"epoch {epoch} loss {loss:.4f} validation unexplained share {error(model, held):.4f}")
