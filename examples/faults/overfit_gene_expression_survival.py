"""Survival of 120 patients by 400 genes: a Cox net that is trained for as long as its loss falls.

The partial likelihood of the training patients goes to nothing, that of the others rises from the
first epochs on. The place is the loop. The twin has one small layer with dropout and weight decay,
and stops when the validation does not get better.
"""

import copy

import torch
from data import arguments
from torch import nn

KIND = "overfit"
ACCEPT = ()
PLACE = ("loop", "")
SILENT = True
EXACT = False
EARLY = False

GENES, PATHWAYS = 400, 4


def cohort(n, loading):
    activity = torch.randn(n, PATHWAYS)
    x = activity @ loading + 0.9 * torch.randn(n, GENES)
    risk = 1.1 * activity[:, 0] - 0.8 * activity[:, 1]
    time = torch.empty(n).exponential_() * torch.exp(-risk)
    censored = torch.empty(n).exponential_() * 2.0
    return x, torch.minimum(time, censored), (time <= censored).float()


def partial_likelihood(risk, time, event):
    order = time.argsort(descending=True)
    risk, event = risk[order], event[order]
    return -((risk - risk.logcumsumexp(0)) * event).sum() / event.sum()


def concordance(risk, time, event):
    comparable = (time[:, None] < time) & (event[:, None] == 1)
    right = (risk[:, None] > risk).float() + 0.5 * (risk[:, None] == risk).float()
    return (right[comparable].mean()).item()


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(GENES, 256), nn.SELU(), nn.Linear(256, 64), nn.SELU(), nn.Linear(64, 1)
        )

    def forward(self, x):
        return self.net(x).squeeze(1)


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.3)
        self.risk = nn.Linear(GENES, 1, bias=False)
        nn.init.zeros_(self.risk.weight)

    def forward(self, x):
        return self.risk(self.drop(x)).squeeze(1)


healthy, seed = arguments(__doc__)
loading = torch.randn(PATHWAYS, GENES) * (torch.rand(PATHWAYS, GENES) < 0.1)
train, val, test = cohort(120, loading), cohort(100, loading), cohort(400, loading)
if healthy:
    model = Small()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, weight_decay=1.0)
else:
    model = Wide()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)

best, kept, since = float("inf"), None, 0
for epoch in range(200):
    model.train()
    x, time, event = train
    loss = partial_likelihood(model(x), time, event)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = partial_likelihood(model(val[0]), *val[1:]).item()
    if epoch % 10 == 0:
        print(f"epoch {epoch}: loss {loss.item():.3f}, val {val_loss:.3f}")
    if healthy:
        if val_loss < best - 1e-4:
            best, kept, since = val_loss, copy.deepcopy(model.state_dict()), 0
        else:
            since += 1
        if since == 8:
            model.load_state_dict(kept)
            break
with torch.no_grad():
    c, fit = (concordance(model(part[0]), *part[1:]) for part in (test, train))
print(f"loss {loss.item():.3f}, val {val_loss:.3f}, concordance test {c:.3f}, train {fit:.3f}")
