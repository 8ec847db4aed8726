"""Tide gauge, the next level from the last day: gradients are clipped at a norm of 0.0005.

A recurrent net once blew up, and "clip hard" was tried with a value that has stayed in the
settings. With plain SGD with momentum the norm is the step; five ten-thousandths of it times the
learning rate moves nothing in the time given. The place is the loop, the optimizer.
The twin clips at one.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "gradient_clipped_to_nothing"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = False
EARLY = True


class Gauge(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.rnn = nn.RNN(1, hidden, batch_first=True)
        self.level = nn.Linear(hidden, 1)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.level(h[:, -1])


class Trainer:
    def __init__(self, model, max_norm, lr=0.05):
        self.model, self.max_norm = model, max_norm
        self.opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)

    def step(self, x, y):
        self.model.train()
        loss = nn.functional.mse_loss(self.model(x), y)
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.opt.step()
        return loss.item()

    @torch.no_grad()
    def score(self, x, y):
        self.model.eval()
        return nn.functional.mse_loss(self.model(x), y).item()


def gauge_series(rng, hours=3000):
    t = np.arange(hours)
    level = 1.6 * np.sin(2 * np.pi * t / 12.42) + 0.5 * np.sin(2 * np.pi * t / 12.0 + 1)
    level += 0.3 * np.sin(2 * np.pi * t / 25.8)
    surge = np.zeros(hours)
    for i in range(1, hours):
        surge[i] = 0.96 * surge[i - 1] + rng.normal(0, 0.05)
    return (level + surge + rng.normal(0, 0.04, hours)) / 1.3


healthy, seed = arguments(__doc__)
series = torch.tensor(gauge_series(np.random.default_rng(seed)), dtype=torch.float32)
windows = series.unfold(0, 25, 1)
X, Y = windows[:, :24, None], windows[:, 24:]
cut = 2200
trainer = Trainer(Gauge(), max_norm=1.0 if healthy else 5e-4)
for epoch in range(6):
    got = [trainer.step(X[i], Y[i]) for i in torch.randperm(cut).split(40)]
    val = trainer.score(X[cut + 24 :], Y[cut + 24 :])
    print(f"epoch {epoch + 1}: train {np.mean(got):.4f}, validation {val:.4f}")
