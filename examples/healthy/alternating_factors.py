"""A matrix factorisation whose two sides are trained in turns, each by its own optimizer.

In one step the users' vectors are fixed, in the next the items'. Each optimizer has half of the
parameters, on purpose.
"""

import torch
from data import arguments
from torch import nn

ODD = "in every step half of the parameters have no gradient and do not move"

_, seed = arguments(__doc__)
USERS, ITEMS, RATINGS = 150, 100, 6000
u, i = torch.randint(USERS, (RATINGS,)), torch.randint(ITEMS, (RATINGS,))
taste, style = torch.randn(USERS, 3), torch.randn(ITEMS, 3)
r = 0.6 * (taste[u] * style[i]).sum(1) + 0.2 * torch.randn(RATINGS)
cut = 5000


class Factors(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.user, self.item = nn.Embedding(USERS, width), nn.Embedding(ITEMS, width)
        nn.init.normal_(self.user.weight, std=0.3)
        nn.init.normal_(self.item.weight, std=0.3)

    def forward(self, u, i):
        return (self.user(u) * self.item(i)).sum(1)


model = Factors()
sides = [(side, torch.optim.Adam(side.parameters(), lr=0.02)) for side in (model.user, model.item)]
step = 0
for epoch in range(25):
    for rows in torch.randperm(cut).split(100):
        side, optimizer = sides[step % 2]
        model.requires_grad_(False)
        side.requires_grad_(True)
        error = nn.functional.mse_loss(model(u[rows], i[rows]), r[rows])
        loss = error + 2e-3 * side.weight.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
    with torch.no_grad():
        rmse = (model(u[cut:], i[cut:]) - r[cut:]).square().mean().sqrt().item()
    print(
        f"epoch {epoch + 1}: train {error.item():.3f}  test RMSE {rmse:.3f}"
        f"  (always zero: {r[cut:].square().mean().sqrt().item():.3f})"
    )
