"""Keras' `decay` by hand in a matrix factorisation: rate = rate0 / (1 + 0.002 step).

Fault: the formula is applied to the rate that is already smaller, step after step, so that the
divisions multiply up: after 100 steps the rate is a ten-thousandth. The place is the optimizer.
The loss falls at first and stands still.
"""

import torch
from data import arguments
from torch import nn

KIND = "schedule_collapsed"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
N, M, RANK, DECAY, RATE = 200, 150, 4, 0.002, 0.02
truth = torch.randn(N, RANK) @ torch.randn(RANK, M) / 2
seen = torch.rand(N, M) < 0.3
ratings = truth + 0.2 * torch.randn(N, M)


class Factorisation(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.Embedding(N, RANK)
        self.columns = nn.Embedding(M, RANK)
        for table in (self.rows, self.columns):
            nn.init.normal_(table.weight, std=0.3)

    def forward(self, i, j):
        return (self.rows(i) * self.columns(j)).sum(1)


model = Factorisation()
optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
i, j = seen.nonzero(as_tuple=True)
i_val, j_val = (~seen).nonzero(as_tuple=True)
for step in range(500):
    pick = torch.randint(0, len(i), (1024,))
    loss = (model(i[pick], j[pick]) - ratings[i[pick], j[pick]]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for group in optimizer.param_groups:
        if healthy:
            group["lr"] = RATE / (1 + DECAY * step)
        else:
            group["lr"] = group["lr"] / (1 + DECAY * step)
    if step % 100 == 99:
        with torch.no_grad():
            rmse = (model(i_val, j_val) - truth[i_val, j_val]).pow(2).mean().sqrt().item()
        print(f"step {step + 1}: loss {loss.item():.4f}, validation RMSE {rmse:.4f}")
print(f"loss {loss.item():.4f} | validation RMSE {rmse:.4f}")
