"""What else a customer buys, from baskets of ten among 500 goods, by a small auto-encoder.

Nearly all inputs are 0, some goods are hardly ever bought, so that their rows move little. The loss
is a multinomial likelihood, which stays near 5 since baskets are random.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

ODD = "98 of 100 inputs are zero, and the loss has a high floor because baskets are random"

_, seed = arguments(__doc__)
GOODS, TASTES = 500, 8


def baskets(n, g):
    shelf = torch.Generator().manual_seed(31)
    popular = torch.randn(GOODS, generator=shelf)
    liked = 2.0 * torch.randn(TASTES, GOODS, generator=shelf)
    taste = torch.randint(0, TASTES, (n,), generator=g)
    chance = (popular + liked[taste]).softmax(1)
    bought = torch.multinomial(chance, 12, generator=g)
    given, held = bought[:, :8], bought[:, 8:]
    x = torch.zeros(n, GOODS).scatter_(1, given, 1.0)
    return x, torch.zeros(n, GOODS).scatter_(1, held, 1.0)


class Baskets(nn.Module):
    def __init__(self):
        super().__init__()
        self.read = nn.Linear(GOODS, 64)
        self.drop = nn.Dropout(0.3)
        self.tell = nn.Linear(64, GOODS)

    def forward(self, x):
        return self.tell(self.read(self.drop(F.normalize(x, dim=1))).tanh())


def likelihood(scores, held):
    return -(scores.log_softmax(1) * held).sum(1).mean() / 4


g = torch.Generator().manual_seed(seed)
x, held = baskets(4000, g)
x_val, held_val = baskets(500, g)
model = Baskets()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x), generator=g).split(80):
        loss = likelihood(model(x[rows]), held[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / 50
    model.eval()
    with torch.no_grad():
        scores = model(x_val)
        top = scores.masked_fill(x_val > 0, -99).topk(20, 1).indices
        recall = (held_val.gather(1, top).sum(1) / 4).mean().item()
    print(
        f"epoch {epoch}: loss {total:.3f} val {likelihood(scores, held_val):.3f} top {recall:.3f}"
    )
