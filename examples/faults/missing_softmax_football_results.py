"""Football results (home win, draw, away win): the negative log likelihood gets raw scores.

`nll_loss` wants log-probabilities. Who moves from `cross_entropy`, which does the softmax itself,
to a loss with the likelihood written out easily forgets that the network's scores are no
probabilities. The loss then falls below zero without an end, and the odds that the script reports
are worthless. The place is the output of the network, just before the loss. The twin applies
`log_softmax` in `forward`.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "missing_softmax"
ACCEPT = ("wrong_loss",)
PLACE = ("output*", "loss*", "head")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

# ---------------------------------------------------------------- the season
TEAMS = 24
rng = np.random.default_rng(50 + seed)
strength = rng.normal(0, 0.45, TEAMS)
form = rng.normal(0, 0.25, (3000, 2))
home = rng.integers(0, TEAMS, 3000)
away = (home + rng.integers(1, TEAMS, 3000)) % TEAMS
rest_days = rng.integers(2, 9, (3000, 2))
edge = strength[home] - strength[away] + form[:, 0] - form[:, 1]
edge = edge + 0.04 * (rest_days[:, 0] - rest_days[:, 1])
goals_home = rng.poisson(np.exp(0.35 + edge))
goals_away = rng.poisson(np.exp(0.10 - edge))
result = np.where(goals_home > goals_away, 0, np.where(goals_home == goals_away, 1, 2))

teams = torch.tensor(np.stack([home, away], 1))
numbers = np.concatenate([form / 0.25, (rest_days - 5.0) / 2.0], 1)
numbers = torch.tensor(numbers, dtype=torch.float32)
result = torch.tensor(result)
train, val = slice(0, 2400), slice(2400, 3000)


class ResultNet(nn.Module):
    def __init__(self, teams, width=32):
        super().__init__()
        self.team = nn.Embedding(teams, 6)
        self.hidden = nn.Linear(2 * 6 + 4, width)
        self.head = nn.Linear(width, 3)

    def forward(self, teams, numbers):
        h = torch.cat([self.team(teams).flatten(1), numbers], dim=1)
        h = F.relu(self.hidden(h))
        out = self.head(h)
        if healthy:
            out = F.log_softmax(out, dim=1)
        return out


net = ResultNet(TEAMS)
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, weight_decay=1e-4)
train_teams, train_numbers, train_result = teams[train], numbers[train], result[train]

for epoch in range(12):
    net.train()
    total = 0.0
    for rows in torch.randperm(len(train_result)).split(64):
        log_p = net(train_teams[rows], train_numbers[rows])
        loss = F.nll_loss(log_p, train_result[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    net.eval()
    with torch.no_grad():
        log_p = net(teams[val], numbers[val])
        val_loss = F.nll_loss(log_p, result[val]).item()
        hits = (log_p.argmax(1) == result[val]).float().mean().item()
    if epoch % 3 == 2:
        print(
            f"epoch {epoch + 1:2d}  train {total / len(train_result):9.3f}  "
            f"val {val_loss:9.3f}  right {hits:.3f}"
        )

with torch.no_grad():
    odds = net(teams[val], numbers[val])[:3].exp()
print("first three forecasts:", [[round(p, 2) for p in row] for row in odds.tolist()])
