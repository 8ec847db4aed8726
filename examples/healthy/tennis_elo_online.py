"""Strengths of tennis players, learned match by match as in Elo's system."""

import torch
from data import arguments
from torch import nn

ODD = "batches of one match, sparse gradients of two rows, and a loss that stays near 0.5"


class Ratings(nn.Module):
    """One number per player and surface; the difference decides."""

    def __init__(self, players, surfaces):
        super().__init__()
        self.players = players
        self.general = nn.Embedding(players, 1, sparse=True)
        self.special = nn.Embedding(players * surfaces, 1, sparse=True)
        nn.init.zeros_(self.general.weight)
        nn.init.zeros_(self.special.weight)

    def forward(self, winner, loser, surface):
        def strength(who):
            return self.general(who) + self.special(surface * self.players + who)

        return (strength(winner) - strength(loser)).squeeze(-1)


def season(n, players, surfaces, seed):
    g = torch.Generator().manual_seed(seed)
    general = 1.2 * torch.randn(players, generator=g)
    special = 0.5 * torch.randn(surfaces, players, generator=g)
    pairs = torch.stack([torch.randperm(players, generator=g)[:2] for _ in range(n)])
    surface = torch.randint(0, surfaces, (n,), generator=g)
    first, second = pairs.unbind(1)
    ahead = general[first] - general[second] + special[surface, first] - special[surface, second]
    first_wins = torch.rand(n, generator=g) < ahead.sigmoid()
    return (
        torch.where(first_wins, first, second),
        torch.where(first_wins, second, first),
        surface,
        ahead.abs().sigmoid(),
    )


def main():
    _, seed = arguments(__doc__)
    winner, loser, surface, chance = season(2000, 24, 3, 20 + seed)
    cut = 1500
    ratings = Ratings(24, 3)
    optimizer = torch.optim.SGD(
        [
            {"params": ratings.general.parameters(), "lr": 0.15},
            {"params": ratings.special.parameters(), "lr": 0.05},
        ]
    )
    running = 0.0
    for match in range(cut):
        margin = ratings(winner[match], loser[match], surface[match])
        loss = nn.functional.softplus(-margin)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
        if match % 250 == 249:
            with torch.no_grad():
                said = ratings(winner[cut:], loser[cut:], surface[cut:])
            test, right = nn.functional.softplus(-said).mean(), (said > 0).float().mean()
            print(f"match {match + 1}: loss {running / 250:.3f} test {test:.3f} right {right:.3f}")
            running = 0.0
    print(f"right at best, by the true strengths: {chance[cut:].mean():.3f}")


if __name__ == "__main__":
    main()
