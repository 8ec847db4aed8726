"""Ranking of search results: the whole model is bfloat16, and most of the steps vanish.

To save memory the model was turned with `.bfloat16()`, its parameters too. A bfloat16 has eight
bits: a step of a thousandth of a weight or less is rounded off and the weight stays what it was.
The place is the parameters (net.0 and net.2) and the optimizer.
The twin keeps the parameters in float32 and computes in bfloat16 by autocast.
"""

import contextlib

import torch
from data import arguments
from torch import nn

KIND = "low_precision_updates_lost"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("net", "net.0", "net.2", "net.4", "net.0.weight", "net.2.weight", "optimizer")
SILENT = True
EXACT = False
EARLY = True


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(18, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
        )

    def forward(self, pages):
        return self.net(pages).squeeze(-1)


def queries(n, g):
    """n queries with ten pages each; which page was clicked."""
    pages = torch.randn(n, 10, 18, generator=g)
    w = torch.randn(18, generator=torch.Generator().manual_seed(3)) * 0.7
    worth = pages @ w + 1.5 * (pages[..., 0] * pages[..., 1]).tanh() - pages[..., 2].abs()
    gumbel = -torch.log(-torch.log(torch.rand(n, 10, generator=g)))
    return pages, (2 * worth + gumbel).argmax(1)


def main():
    healthy, seed = arguments(__doc__)
    g = torch.Generator().manual_seed(seed)
    pages, clicked = queries(1500, g)
    pages_val, clicked_val = queries(500, g)
    model = Ranker()
    if healthy:
        numbers = torch.autocast("cpu", dtype=torch.bfloat16)
    else:
        model = model.bfloat16()
        pages, pages_val = pages.bfloat16(), pages_val.bfloat16()
        numbers = contextlib.nullcontext()
    opt = torch.optim.Adam(model.parameters(), lr=1.5e-4)
    for epoch in range(20):
        total = 0.0
        for rows in torch.randperm(1500, generator=g).split(25):
            with numbers:
                score = model(pages[rows])
            loss = nn.functional.cross_entropy(score.float(), clicked[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() / 60
        if epoch % 4 == 3:
            with torch.no_grad(), numbers:
                score = model(pages_val).float()
            top = (score.argmax(1) == clicked_val).float().mean()
            val = nn.functional.cross_entropy(score, clicked_val)
            print(f"epoch {epoch + 1} train {total:.3f} val {val:.3f} first hit {top:.3f}")


main()
