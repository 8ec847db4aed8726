"""Factorises a table of sales in turns: shops with one optimizer, then goods with another."""

import torch
from data import arguments
from torch import nn

ODD = "two optimizers take turns, each leaving half of the parameters as they are for ten steps"

_, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
true = torch.randn(120, 4, generator=g) @ torch.randn(4, 80, generator=g) / 2
table = true + 0.2 * torch.randn(120, 80, generator=g)
known = torch.rand(120, 80, generator=g) < 0.6
shops, goods = nn.Linear(4, 120, bias=False), nn.Linear(4, 80, bias=False)
turns = [torch.optim.Adam(part.parameters(), lr=0.02) for part in (shops, goods)]
for step in range(600):
    optimizer = turns[step // 10 % 2]
    guess = shops.weight @ goods.weight.T
    loss = (guess - table)[known].square().mean()
    for each in turns:
        each.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        val = (guess.detach() - table)[~known].square().mean()
        print(f"step {step + 1} loss {loss.item():.4f} held-out cells {val.item():.4f}")
