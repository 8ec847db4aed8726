"""Survival of patients: Cox's partial likelihood over risk sets; a net without output bias."""

import numpy as np
import torch
from data import arguments, standardise
from torch import nn

ODD = (
    "the loss stays near log of the risk set's size (about 4) and falls by little; the ranking is "
    "good"
)

_, seed = arguments(__doc__)
rng = np.random.default_rng(seed)


def patients(n):
    x = rng.normal(0, 1, (n, 8))
    risk = 0.9 * x[:, 0] - 0.7 * x[:, 1] + 0.8 * np.abs(x[:, 2]) + 0.6 * x[:, 3] * x[:, 4]
    event = rng.exponential(np.exp(-risk))
    censored = rng.exponential(1.5, n)
    parts = x, np.minimum(event, censored), event <= censored
    return tuple(torch.tensor(p, dtype=torch.float32) for p in parts)


def cox_loss(risk, time, observed):
    order = time.argsort(descending=True)
    risk, observed = risk[order], observed[order]
    at_risk = risk.logcumsumexp(0)
    return -((risk - at_risk) * observed).sum() / observed.sum()


def concordance(risk, time, observed):
    earlier = (time[:, None] < time[None, :]) & (observed[:, None] > 0)
    return (risk[:, None] > risk[None, :])[earlier].float().mean().item()


x, time, observed = patients(2400)
x_val, time_val, observed_val = patients(800)
x, x_val = standardise(x, x_val)
model = nn.Sequential(
    nn.Linear(8, 48),
    nn.SiLU(),
    nn.Dropout(0.1),
    nn.Linear(48, 48),
    nn.SiLU(),
    nn.Linear(48, 1, bias=False),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
for epoch in range(20):
    model.train()
    total, rows = 0.0, torch.randperm(len(x)).split(120)
    for i in rows:
        loss = cox_loss(model(x[i]).squeeze(1), time[i], observed[i])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(rows)
    schedule.step()
    model.eval()
    with torch.no_grad():
        risk = model(x_val).squeeze(1)
        losses = [
            cox_loss(risk[k : k + 160], time_val[k : k + 160], observed_val[k : k + 160])
            for k in range(0, 800, 160)
        ]
    print(
        f"epoch {epoch:2d} loss {total:.3f} val {sum(losses) / 5:.3f} "
        f"concordance {concordance(risk, time_val, observed_val):.3f}"
    )
