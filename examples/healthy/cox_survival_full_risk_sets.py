"""Survival after surgery by a neural Cox model: the partial likelihood over batches sorted by
time.

The loss has no natural scale (it grows with the log of the batch), censored rows have no term of
their own, and the output's mean is free: the score of everybody may drift by a constant.
Concordance is what counts.
"""

import torch
from data import arguments
from torch import nn

ODD = (
    "the loss stays near 4 and falls by a tenth; half of the rows have no label; batches are sorted"
)

_, seed = arguments(__doc__)


def patients(n, g):
    x = torch.randn(n, 10, generator=g)
    risk = 0.9 * x[:, 0] + 0.7 * x[:, 1].abs() - 0.8 * x[:, 2] * (x[:, 3] > 0) + 0.4 * x[:, 4]
    death = -torch.log(torch.rand(n, generator=g)) * torch.exp(-1.3 * risk)
    leaves = -torch.log(torch.rand(n, generator=g)) * 1.2
    return x, torch.minimum(death, leaves), (death <= leaves).float()


def partial_likelihood(score, time, event):
    order = time.argsort(descending=True)
    score, event = score[order], event[order]
    at_risk = torch.logcumsumexp(score, 0)
    return -((score - at_risk) * event).sum() / event.sum()


def concordance(score, time, event):
    comparable = (time[:, None] < time) & (event[:, None] > 0)
    right = (score[:, None] > score) & comparable
    return (right.sum() / comparable.sum()).item()


g = torch.Generator().manual_seed(seed)
x, time, event = patients(2400, g)
x_val, time_val, event_val = patients(800, g)
model = nn.Sequential(
    nn.Linear(10, 32), nn.SELU(), nn.Linear(32, 16), nn.SELU(), nn.Linear(16, 1, bias=False)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
print(f"{event.mean().item():.2f} of the patients died under observation")
for epoch in range(20):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x), generator=g).view(-1, 120):
        loss = partial_likelihood(model(x[rows]).squeeze(1), time[rows], event[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / 20
    schedule.step()
    model.eval()
    with torch.no_grad():
        score = model(x_val).squeeze(1)
        val = (
            sum(
                partial_likelihood(
                    *(part[i : i + 100] for part in (score, time_val, event_val))
                ).item()
                for i in range(0, 800, 100)
            )
            / 8
        )
    print(
        f"epoch {epoch} train {total:.4f} val (of 100) {val:.4f} "
        f"concordance {concordance(score, time_val, event_val):.3f}"
    )
