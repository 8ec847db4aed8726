"""Chooses a net for Friedman's regression problem by successive halving and tests the winner."""

import random

import torch
import torch.nn.functional as F
from data import arguments, standardise
from sklearn.datasets import make_friedman1
from torch import nn

ODD = (
    "eight of nine trainings are stopped on purpose after few epochs, some at rates that are too "
    "small, and the others go on where they stopped with the same optimizer: successive halving"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)
chance = random.Random(seed)


class Trial:
    def __init__(self):
        self.rate = 10 ** chance.uniform(-4.0, -2.0)
        self.width = chance.choice([16, 32, 64])
        self.decay = 10 ** chance.uniform(-4, -1)
        self.model = nn.Sequential(
            nn.Linear(8, self.width),
            nn.SiLU(),
            nn.Linear(self.width, self.width),
            nn.SiLU(),
            nn.Linear(self.width, 1),
        )
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=self.rate, weight_decay=self.decay
        )
        self.epochs, self.error = 0, float("inf")

    def train(self, epochs: int):
        self.model.train()
        for _ in range(epochs):
            for rows in torch.randperm(len(x)).split(50):
                self.optimizer.zero_grad()
                loss = F.mse_loss(self.model(x[rows]).squeeze(1), y[rows])
                loss.backward()
                self.optimizer.step()
        self.epochs += epochs
        self.error = self.judge(x_val, y_val)

    @torch.no_grad()
    def judge(self, inputs, target):
        self.model.eval()
        return F.mse_loss(self.model(inputs).squeeze(1), target).item()


inputs, target = (
    torch.tensor(part, dtype=torch.float32)
    for part in make_friedman1(2200, 8, noise=1.0, random_state=seed)
)
x, x_val, x_test = standardise(*inputs.split([1500, 300, 400]))
y, y_val, y_test = standardise(*target.split([1500, 300, 400]))
trials = [Trial() for _ in range(9)]
for epochs in (3, 9, 27):
    for trial in trials:
        trial.train(epochs)
    trials.sort(key=lambda trial: trial.error)
    best = trials[0]
    print(
        f"{len(trials)} trials at {best.epochs} epochs: {best.error:.4f} to "
        f"{trials[-1].error:.4f}; best rate {best.rate:.5f}, width {best.width}"
    )
    trials = trials[: max(1, len(trials) // 3)]

line = torch.linalg.lstsq(torch.cat([x, torch.ones(len(x), 1)], 1), y.unsqueeze(1)).solution
linear = (torch.cat([x_test, torch.ones(len(x_test), 1)], 1) @ line).squeeze(1)
print(
    f"test R2 {1 - best.judge(x_test, y_test) / y_test.var():.3f}, "
    f"straight line {1 - F.mse_loss(linear, y_test) / y_test.var():.3f}"
)
