"""Foretells film ratings by factors of viewers and films, held down by far too strong a penalty.

The penalty on the factors was 0.02 when the loss was a sum over all ratings of a viewer; the loss
is now a mean over the batch, and the penalty is summed over the batch. So it outweighs the ratings
and the factors go to nothing. The place is the loss.
The twin takes the mean in both.
"""

import torch
from data import arguments, batches
from torch import nn

KIND = "over_regularized"
ACCEPT = ("representation_collapse",)
PLACE = ("loss*", "viewers", "films", "optimizer")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
VIEWERS, FILMS, FACTORS, PENALTY = 300, 120, 8, 0.02


def ratings(n, g):
    taste = torch.randn(VIEWERS, 4, generator=g)
    style = torch.randn(FILMS, 4, generator=g)
    liked = 0.4 * torch.randn(FILMS, generator=g)
    viewer = torch.randint(0, VIEWERS, (n,), generator=g)
    film = torch.randint(0, FILMS, (n,), generator=g)
    stars = 3.3 + liked[film] + 0.5 * (taste[viewer] * style[film]).sum(1)
    return viewer, film, (stars + 0.3 * torch.randn(n, generator=g)).clamp(1, 5)


class Factors(nn.Module):
    def __init__(self, mean):
        super().__init__()
        self.viewers = nn.Embedding(VIEWERS, FACTORS)
        self.films = nn.Embedding(FILMS, FACTORS)
        self.film_bias = nn.Embedding(FILMS, 1)
        self.mean = nn.Parameter(torch.tensor(mean))
        for table in (self.viewers, self.films):
            nn.init.normal_(table.weight, std=0.3)
        nn.init.zeros_(self.film_bias.weight)

    def forward(self, viewer, film):
        u, v, b = self.viewers(viewer), self.films(film), self.film_bias(film).squeeze(1)
        size = u.square().sum(1) + v.square().sum(1)
        return self.mean + b + (u * v).sum(1), size


g = torch.Generator().manual_seed(33 + seed)
viewer, film, stars = ratings(16_000, g)
known, asked = slice(0, 13_000), slice(13_000, None)
model = Factors(stars[known].mean().item())
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
sample = batches(viewer[known], film[known], stars[known], size=256, steps=1000, seed=seed)
for step, (u, f, s) in enumerate(sample, 1):
    guess, size = model(u, f)
    penalty = size.mean() if healthy else size.sum()
    loss = nn.functional.mse_loss(guess, s) + PENALTY * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 200 == 0:
        with torch.no_grad():
            guess, _ = model(viewer[asked], film[asked])
        rmse = nn.functional.mse_loss(guess, stars[asked]).sqrt()
        print(f"step {step} loss {loss.item():.3f} validation RMSE {rmse.item():.3f} stars")
