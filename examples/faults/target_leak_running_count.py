"""Card fraud on a table of payments: "earlier frauds on this card" counts the payment itself.

The feature is a running sum over each card's payments in order of time. A running sum includes the
row it stands on, so the column is raised exactly where the label is 1. All numbers are wonderful,
on validation too, for its table is built alike; at the desk, where the label is not known yet,
nothing of it is left. The place is the data. The twin subtracts the row's own label.
"""

import numpy as np
import torch
from data import arguments, standardise
from sklearn.metrics import roc_auc_score
from torch import nn

KIND = "target_leak"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def payments(n=8000, cards=1500):
    """Payments in order of time: card, columns known at the desk, and whether it was fraud."""
    r = np.random.default_rng(seed)
    card = r.integers(0, cards, n)
    exposed = r.normal(size=cards)[card]
    amount, hour = r.lognormal(3, 1, n), r.uniform(0, 24, n)
    abroad, online = r.random(n) < 0.15, r.random(n) < 0.4
    speed = r.gamma(2, 1, n)
    logit = 0.5 * (np.log(amount) - 3) + 0.9 * abroad + 0.6 * online + 0.3 * (speed - 2)
    logit = logit + 0.9 * exposed + 0.8 * (hour < 5) - 3.3
    fraud = (r.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    known = np.stack(
        [np.log(amount), np.cos(hour / 3.82), np.sin(hour / 3.82), abroad, online, speed], 1
    )
    return card, known, fraud


def counts(card, fraud):
    """Frauds on the same card up to this payment, and payments so far."""
    order = np.argsort(card, kind="stable")
    first = np.r_[True, card[order][1:] != card[order][:-1]]
    start = np.maximum.accumulate(np.where(first, np.arange(len(card)), 0))
    running = np.cumsum(fraud[order])
    running = running - (running[start] - fraud[order][start])
    past, seen = np.empty(len(card)), np.empty(len(card))
    past[order], seen[order] = running, np.arange(len(card)) - start
    return past, seen


card, known, fraud = payments()
so_far, seen = counts(card, fraud)
earlier = so_far - fraud  # what the desk can know
column = earlier if healthy else so_far
table = torch.tensor(np.c_[known, column, seen], dtype=torch.float32)
desk = torch.tensor(np.c_[known, earlier, seen], dtype=torch.float32)
y = torch.tensor(fraud, dtype=torch.float32)
cut = 6000  # the later payments validate
x, x_val, x_desk = standardise(table[:cut], table[cut:], desk[cut:])

model = nn.Sequential(
    nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1)
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(8):
    model.train()
    for rows in torch.randperm(cut).split(100):
        optimizer.zero_grad()
        loss = criterion(model(x[rows]).squeeze(1), y[rows])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        shown, live = model(x_val).squeeze(1), model(x_desk).squeeze(1)
    print(
        f"epoch {epoch} loss {loss:.4f} val loss {criterion(shown, y[cut:]):.4f} "
        f"validation AUC {roc_auc_score(y[cut:], shown):.3f} "
        f"(at the desk {roc_auc_score(y[cut:], live):.3f})"
    )
