"""Survival of patients by gene expression, a neural Cox model: the early stopping never stops.

The stopper was to ignore gains smaller than a tolerance; it compares with `best * (1 + tolerance)`
and then takes the new value as the best, so the mark creeps upwards with the validation loss and
each epoch counts as progress. A big network trains on 150 patients hundreds of epochs past its
best. The place is the loop (its stopper). The twin asks for `best * (1 - tolerance)`.
"""

import copy

import torch
from data import arguments, standardise
from torch import nn

KIND = "overfit"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def cohort(n: int, genes: int = 40):
    g = torch.Generator().manual_seed(500 + seed)
    x = torch.randn(n, 8, generator=g) @ torch.randn(8, genes, generator=g) * 0.4
    x = x + torch.randn(n, genes, generator=g)
    effect = torch.zeros(genes)
    effect[:8] = torch.tensor([0.7, -0.6, 0.5, 0.5, -0.5, 0.4, -0.4, 0.4])
    risk = x @ effect * 0.8
    event_time = -torch.log(torch.rand(n, generator=g)) * torch.exp(-risk) * 10
    censor = -torch.log(torch.rand(n, generator=g)) * 25
    return x, torch.minimum(event_time, censor), (event_time <= censor).float()


def cox_loss(risk, time, event):
    order = time.argsort(descending=True)
    risk, event = risk[order], event[order]
    return ((torch.logcumsumexp(risk, 0) - risk) * event).sum() / event.sum()


def concordance(risk, time, event):
    comparable = (time[:, None] < time[None, :]) & (event[:, None] > 0)
    return (risk[:, None] > risk[None, :])[comparable].float().mean().item()


class Stopper:
    def __init__(self, patience: int = 25, tolerance: float = 0.01):
        self.patience, self.tolerance = patience, tolerance
        self.best, self.bad, self.state = float("inf"), 0, None

    def __call__(self, value, model):
        mark = self.best * (1 - self.tolerance if healthy else 1 + self.tolerance)
        if value < mark:
            self.best, self.bad, self.state = value, 0, copy.deepcopy(model.state_dict())
        else:
            self.bad += 1
        return self.bad >= self.patience


x, time, event = cohort(900)
x_fit, x_val, x_test = standardise(x[:150], x[150:500], x[500:])
model = nn.Sequential(
    nn.Linear(40, 128), nn.SELU(), nn.Linear(128, 128), nn.SELU(), nn.Linear(128, 1)
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
stopper = Stopper()

for epoch in range(600):
    model.train()
    optimizer.zero_grad()
    loss = cox_loss(model(x_fit).squeeze(1), time[:150], event[:150])
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        val = cox_loss(model(x_val).squeeze(1), time[150:500], event[150:500]).item()
    if epoch % 50 == 0:
        print(f"epoch {epoch}: train {loss.item():.4f}, validation {val:.4f}")
    if stopper(val, model):
        break
model.load_state_dict(stopper.state)
model.eval()
with torch.no_grad():
    risk = model(x_test).squeeze(1)
    val = cox_loss(model(x_val).squeeze(1), time[150:500], event[150:500]).item()
    print(f"validation loss {val:.4f} after epoch {epoch}; train {loss.item():.4f}")
    print(f"test loss {cox_loss(risk, time[500:], event[500:]).item():.4f}")
    print(f"test concordance {concordance(risk, time[500:], event[500:]):.4f}")
