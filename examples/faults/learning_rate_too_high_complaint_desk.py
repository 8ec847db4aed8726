"""Sends complaints to one of six desks with a GRU; Adam's rate is 0.3 where 3e-3 was meant.

The configuration says `lr: 3e-1`, with a minus and a digit typed as one remembers them. The first
steps throw the weights far away, and the loss jumps about above that of guessing.
The place is the optimizer. The twin has 3e-3.
"""

import random

import torch
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pad_sequence

KIND = "learning_rate_too_high"
ACCEPT = ("loss_spike",)
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
CONFIG = {
    "dim": 32,
    "hidden": 48,
    "batch_size": 40,
    "epochs": 6,
    "lr": 3e-3 if healthy else 3e-1,
}
TOPICS = {
    "parcel": ["parcel", "late", "driver", "doorstep", "lost", "delivery"],
    "billing": ["invoice", "charged", "twice", "refund", "card", "amount"],
    "account": ["password", "login", "locked", "email", "reset", "name"],
    "quality": ["broken", "scratched", "faulty", "smell", "colour", "torn"],
    "store": ["queue", "cashier", "parking", "shelf", "opening", "rude"],
    "app": ["crash", "update", "screen", "button", "freezes", "slow"],
}
FILLER = [f"word{i}" for i in range(120)]
NUMBER = {w: i + 1 for i, w in enumerate(FILLER + sum(TOPICS.values(), []))}  # noqa: RUF017


def complaints(n, r):
    names, rows, labels = list(TOPICS), [], []
    for _ in range(n):
        topic, other = r.sample(names, 2)
        words = r.choices(FILLER, k=r.randint(6, 14)) + r.choices(TOPICS[topic], k=r.randint(2, 3))
        words += r.choices(TOPICS[other], k=r.randint(0, 1))
        r.shuffle(words)
        rows.append(torch.tensor([NUMBER[w] for w in words]))
        labels.append(names.index(topic))
    return pad_sequence(rows, batch_first=True), torch.tensor(labels)


class Desk(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.embed = nn.Embedding(len(NUMBER) + 1, dim, padding_idx=0)
        self.gru = nn.GRU(dim, hidden, batch_first=True)
        self.out = nn.Linear(hidden, len(TOPICS))

    def forward(self, x):
        states, _ = self.gru(self.embed(x))
        return self.out(states.masked_fill((x == 0).unsqueeze(-1), -1.0).max(1).values)


r = random.Random(seed)
x, y = complaints(1600, r)
x_val, y_val = complaints(400, r)
model = Desk(CONFIG["dim"], CONFIG["hidden"])
optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])
for epoch in range(CONFIG["epochs"]):
    losses = []
    for rows in torch.randperm(len(x)).split(CONFIG["batch_size"]):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        accuracy = (model(x_val).argmax(1) == y_val).float().mean()
    print(f"epoch {epoch} loss {sum(losses) / len(losses):.3f} validation {accuracy:.3f}")
