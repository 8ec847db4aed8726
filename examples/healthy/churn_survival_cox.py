"""How long customers stay: a Cox network with the partial likelihood over large batches.

Six in ten customers are still there at the end of the study (censored). The loss compares those
who leave with all who were still there, so it depends on the size of the batch and has no natural
zero; the network's output has no fixed level, only differences count. Judged by concordance.
"""

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

ODD = "the loss falls only a little from log of the batch's size, and the output layer has no bias"

_, seed = arguments(__doc__)


def customers(n, g):
    """Nine columns; hazard by tariff, complaints, age and their meetings; months and event."""
    x = torch.randn(n, 9, generator=g)
    hazard = 0.9 * x[:, 0] - 0.8 * x[:, 1].abs() + 0.7 * x[:, 2] * x[:, 3] + 0.4 * x[:, 4]
    waits = -torch.log(torch.rand(n, generator=g)) * torch.exp(-hazard)
    leaves = (20 * waits) ** 0.8
    ends = 1 + 17 * torch.rand(n, generator=g)
    return x * 3 + 2, torch.minimum(leaves, ends), (leaves <= ends).float()


class CoxNet(nn.Module):
    def __init__(self, columns, width=48):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(columns, width), nn.SiLU(), nn.Dropout(0.1),
            nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, 1, bias=False),
        )  # fmt: skip

    def forward(self, x):
        return self.layers(x).squeeze(-1)


def cox_loss(risk, months, event):
    order = months.argsort(descending=True)
    risk, event = risk[order], event[order]
    at_risk = torch.logcumsumexp(risk, 0)
    return ((at_risk - risk) * event).sum() / event.sum().clamp(min=1)


def concordance(risk, months, event):
    earlier = (months[:, None] < months[None, :]) & (event[:, None] > 0)
    right = (risk[:, None] > risk[None, :]) & earlier
    return (right.sum() / earlier.sum()).item()


g = torch.Generator().manual_seed(seed)
x, months, event = customers(4000, g)
train, val = random_split(range(4000), [3000, 1000], generator=g)
train, val = torch.tensor(list(train)), torch.tensor(list(val))
x_train, x_val = standardise(x[train], x[val])
loader = DataLoader(
    TensorDataset(x_train, months[train], event[train]), batch_size=150, shuffle=True
)
model = CoxNet(x.shape[1])
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 16)

print(f"share of leavers {event.mean():.2f}")
for epoch in range(1, 17):
    model.train()
    total = 0.0
    for xb, mb, eb in loader:
        optimizer.zero_grad()
        loss = cox_loss(model(xb), mb, eb)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += loss.item()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        risk = model(x_val)
        val_loss = cox_loss(risk, months[val], event[val]).item()
    c = concordance(risk, months[val], event[val])
    if epoch % 2 == 0:
        print(f"{epoch:2d} train {total / len(loader):.3f} val {val_loss:.3f} concordance {c:.3f}")
