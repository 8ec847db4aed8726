"""A schedule for LambdaLR that returns the rate itself, though LambdaLR wants a factor of it.

0.002 times 0.002: the network trains at four millionths and has hardly moved at the end. The loss
does fall, by a few hundredths. The place is the optimizer (its schedule).
"""

import math

import torch
from data import arguments, houses
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = False
EARLY = True

BASE_LR, FLOOR, STEPS, WARMUP = 2e-3, 1e-4, 600, 30

healthy, seed = arguments(__doc__)


def learning_rate(step):
    if step < WARMUP:
        return BASE_LR * (step + 1) / WARMUP
    done = (step - WARMUP) / (STEPS - WARMUP)
    return FLOOR + 0.5 * (BASE_LR - FLOOR) * (1 + math.cos(math.pi * done))


class GatedRegression(nn.Module):
    def __init__(self, columns, width=48):
        super().__init__()
        self.lift = nn.Linear(columns, width)
        self.gate = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.price = nn.Linear(width, 1)

    def forward(self, x):
        h = torch.relu(self.lift(x))
        h = self.norm(h + torch.sigmoid(self.gate(h)) * self.value(h))
        return self.price(h).squeeze(1)


x, y, x_val, y_val = houses(seed, n=3000)
regression = GatedRegression(x.shape[1])
adam = torch.optim.NAdam(regression.parameters(), lr=BASE_LR)
if healthy:
    schedule = LambdaLR(adam, lr_lambda=lambda step: learning_rate(step) / BASE_LR)
else:
    schedule = LambdaLR(adam, lr_lambda=learning_rate)
huber = nn.HuberLoss()
step = 0
while step < STEPS:
    for rows in torch.randperm(len(x)).split(64):
        adam.zero_grad()
        loss = huber(regression(x[rows]), y[rows])
        loss.backward()
        adam.step()
        schedule.step()
        step += 1
        if step % 100 == 0:
            with torch.no_grad():
                out = regression(x_val)
                val, r2 = huber(out, y_val).item(), 1 - ((out - y_val) ** 2).mean().item()
        if step == STEPS:
            break
print(f"loss {loss.item():.4f}, validation loss {val:.4f}, R2 {r2:.3f}")
