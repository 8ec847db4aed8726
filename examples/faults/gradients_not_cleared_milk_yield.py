"""Milk yield of cows: the gradients are cleared once per epoch and not once per step.

When the loop over single cows was rewritten with batches, `zero_grad()` stayed where it had been,
in front of the inner loop. Within an epoch each step goes along the sum of all gradients so far.
The place is the loop.
The twin clears in front of each backward pass.
"""

import torch
from data import arguments
from torch import nn

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = True
EARLY = True


def herd(n, g):
    days = torch.rand(n, generator=g) * 300 + 5
    parity = torch.randint(1, 6, (n,), generator=g).float()
    feed = 18 + 3 * torch.randn(n, generator=g)
    warm = 12 + 8 * torch.randn(n, generator=g)
    cells = torch.randn(n, generator=g)
    # Wood's curve of lactation
    milk = 14 * days**0.2 * torch.exp(-0.0034 * days) * (0.8 + 0.08 * parity.clamp(max=4))
    milk = milk + 0.5 * (feed - 18) - 0.15 * (warm - 20).clamp(min=0) - 0.8 * cells
    milk = milk + 1.2 * torch.randn(n, generator=g)
    return torch.stack([days, parity, feed, warm, cells], 1), milk.unsqueeze(1)


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    g = torch.Generator().manual_seed(60 + seed)
    x, y = herd(2000, g)
    xv, yv = herd(500, g)
    mx, sx, my, sy = x.mean(0), x.std(0), y.mean(), y.std()
    x, xv, y = (x - mx) / sx, (xv - mx) / sx, (y - my) / sy

    model = nn.Sequential(
        nn.Linear(5, 40), nn.SiLU(), nn.Linear(40, 40), nn.SiLU(), nn.Linear(40, 1)
    )
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(1, 21):
        total = 0.0
        opt.zero_grad()
        for batch in torch.randperm(len(x), generator=g).chunk(50):
            if healthy:
                opt.zero_grad()
            loss = ((model(x[batch]) - y[batch]) ** 2).mean()
            loss.backward()
            opt.step()
            total += loss.item() / 50
        if epoch % 4 == 0:
            with torch.no_grad():
                err = (model(xv) * sy + my - yv).abs().mean()
            print(f"{epoch:3d} | loss {total:.4f} | error on other herd {err:.2f} kg")
