"""Estimates when customers cancel from one row per customer and month (discrete hazards)."""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "each customer stands in the table many times, with the same columns and mostly the label 0; "
    "only the month differs: the split is by customer and that is how hazards are fitted"
)
MONTHS = 24
_, seed = arguments(__doc__)
torch.set_num_threads(1)
rng = np.random.default_rng(seed)


def customers(n: int):
    x = rng.normal(size=(n, 5))
    month = np.arange(1, MONTHS + 1)
    score = 0.9 * x[:, 0] - 0.7 * x[:, 1] + 0.5 * np.sin(2 * x[:, 2])
    logit = -3.0 + score[:, None] + 0.8 * np.exp(-month / 4) + 0.6 * (month % 12 == 0)
    cancels = rng.random((n, MONTHS)) < 1 / (1 + np.exp(-logit))
    event_month = np.where(cancels.any(1), cancels.argmax(1) + 1, MONTHS + 1)
    observed = rng.integers(4, MONTHS + 1, n)
    return x.astype(np.float32), np.minimum(event_month, observed), event_month <= observed


def person_months(x, last, event):
    who = np.repeat(np.arange(len(x)), last)
    month = np.concatenate([np.arange(1, k + 1) for k in last])
    label = ((month == last[who]) & event[who]).astype(np.float32)
    return torch.tensor(x[who]), torch.tensor(month), torch.tensor(label)


class Hazard(nn.Module):
    def __init__(self):
        super().__init__()
        self.month = nn.Embedding(MONTHS + 1, 1)
        self.body = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))
        nn.init.constant_(self.month.weight, -3.0)

    def forward(self, x, month):
        return (self.body(x) + self.month(month)).squeeze(1)


def concordance(risk, last, event):
    earlier = (last[:, None] < last[None, :]) & event[:, None]
    higher = (risk[:, None] > risk[None, :]).astype(float)
    return higher[earlier].mean()


x, last, event = customers(2400)
train = person_months(x[:1800], last[:1800], event[:1800])
val = person_months(x[1800:], last[1800:], event[1800:])
print(f"{len(train[2])} rows of 1800 customers, cancelled in {train[2].mean():.3f} of them")
model = Hazard()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.01)
loader = DataLoader(TensorDataset(*train), batch_size=256, shuffle=True)
for epoch in range(12):
    model.train()
    total = 0.0
    for rows, month, label in loader:
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(rows, month), label)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(label)
    model.eval()
    with torch.no_grad():
        val_loss = F.binary_cross_entropy_with_logits(model(val[0], val[1]), val[2])
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: train {total / len(train[2]):.4f}, validation {val_loss:.4f}")

rate = train[2].mean()
constant = F.binary_cross_entropy(rate.expand_as(val[2]), val[2])
with torch.no_grad():
    risk = model.body(torch.tensor(x[1800:])).squeeze(1).numpy()
print(
    f"validation {val_loss:.4f}, constant hazard {constant:.4f}; "
    f"concordance {concordance(risk, last[1800:], event[1800:]):.3f} (chance 0.5)"
)
