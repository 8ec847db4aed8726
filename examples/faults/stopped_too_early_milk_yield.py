"""Learns the milk yield of cows over the season; the training stops at the second worse check.

The patience was written for checks once an epoch and a smooth curve. Now the check comes every ten
steps on a small herd, and when two in a row are a little worse than the best, all is over, with
most of the way still to go.
The place is the loop: the rule for stopping early.
The twin waits for thirty checks without a better one.
"""

import copy

import torch
from data import arguments, batches
from torch import nn

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def cows(n, generator):
    """Days in milk, number of calvings, concentrate, heat, breed, weight; litres, standardised."""
    days = torch.rand(n, generator=generator) * 300 + 5
    calvings = torch.randint(1, 6, (n,), generator=generator).float()
    feed, heat, weight = torch.randn(3, n, generator=generator)
    breed = torch.randint(0, 3, (n,), generator=generator)
    base = torch.tensor([28.0, 24.0, 19.0])[breed] + 2 * (calvings - 1) * (calvings < 4)
    curve = (days / 60) ** 0.25 * torch.exp(-(days - 60) / 250)
    litres = base * curve + 1.5 * feed - 2 * torch.relu(heat - 0.5) ** 1.5 + 0.8 * weight
    litres = litres + 1.2 * torch.randn(n, generator=generator)
    x = torch.stack([(days - 155) / 87, (calvings - 3) / 1.4, feed, heat, weight], 1)
    x = torch.cat([x, nn.functional.one_hot(breed, 3).float()], 1)
    return x, (litres - 19.5) / 8


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.waited, self.best, self.state = patience, 0, float("inf"), None

    def stop(self, error, model):
        if error < self.best:
            self.best, self.waited = error, 0
            self.state = copy.deepcopy(model.state_dict())
        else:
            self.waited += 1
        return self.waited >= self.patience


g = torch.Generator().manual_seed(seed)
x, y = cows(2500, g)
x_val, y_val = cows(150, g)
x_test, y_test = cows(1500, g)
model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.04, momentum=0.9)
stopping = EarlyStopping(patience=30 if healthy else 2)
for step, (rows, litres) in enumerate(batches(x, y, size=25, steps=1500, seed=seed), 1):
    loss = nn.functional.mse_loss(model(rows)[:, 0], litres)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        with torch.no_grad():
            error = nn.functional.mse_loss(model(x_val)[:, 0], y_val).item()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}, validation {error:.4f}")
        if step >= 60 and stopping.stop(error, model):
            print(f"stopped after step {step}")
            break
model.load_state_dict(stopping.state)
with torch.no_grad():
    off = 8 * (model(x_test)[:, 0] - y_test).abs().mean().item()
print(f"test: off by {off:.2f} litres")
