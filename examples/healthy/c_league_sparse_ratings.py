"""Rates 600 table tennis players from their matches, a number each, with sparse gradients.

The chance of a win is the logistic function of the difference of two ratings. A step touches only
the players of its matches, so the table of ratings has sparse gradients and SparseAdam.
"""

import torch
from data import arguments
from torch import nn

ODD = "most ratings have no gradient in a step, and chance keeps the loss well above zero"

_, seed = arguments(__doc__)

PLAYERS = 600


class Ratings(nn.Module):
    def __init__(self):
        super().__init__()
        self.rating = nn.Embedding(PLAYERS, 1, sparse=True)
        nn.init.zeros_(self.rating.weight)
        self.home = nn.Parameter(torch.zeros(()))

    def forward(self, pairs):
        both = self.rating(pairs).squeeze(2)
        return both[:, 0] - both[:, 1] + self.home


def season(n, strength, generator):
    pairs = torch.randint(0, PLAYERS, (n, 2), generator=generator)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    edge = strength[pairs[:, 0]] - strength[pairs[:, 1]] + 0.25
    return pairs, (torch.rand(len(pairs), generator=generator) < edge.sigmoid()).float()


g = torch.Generator().manual_seed(seed)
strength = 1.2 * torch.randn(PLAYERS, generator=g)
pairs, won = season(16000, strength, g)
pairs_val, won_val = season(4000, strength, g)
model = Ratings()
table = torch.optim.SparseAdam(list(model.rating.parameters()), lr=0.03)
rest = torch.optim.SGD([model.home], lr=0.1)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(4):
    total, count = 0.0, 0
    for rows in torch.randperm(len(pairs)).split(128):
        loss = criterion(model(pairs[rows]), won[rows])
        for optimizer in (table, rest):
            optimizer.zero_grad()
        loss.backward()
        for optimizer in (table, rest):
            optimizer.step()
        total += loss.item()
        count += 1
    with torch.no_grad():
        scores = model(pairs_val)
        error = criterion(scores, won_val).item()
    right = ((scores > 0) == (won_val > 0.5)).float().mean().item()
    alike = torch.corrcoef(torch.stack([model.rating.weight.detach()[:, 0], strength]))[0, 1]
    print(
        f"epoch {epoch}: loss {total / count:.4f}, validation {error:.4f}, accuracy {right:.3f}, "
        f"correlation with the true strength {alike:.3f}"
    )
