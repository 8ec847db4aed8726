"""Ratings of board games by matrix factorisation; the players' factors never became parameters.

`nn.Parameter(torch.rand(...)) - 0.5` looks like a centred parameter, but the difference is a plain
tensor, and the module registers only nn.Parameter: `model.parameters()` does not list it and no
optimizer moves it. The games' factors adapt to the random players. The place is the optimizer /
the attribute `players`. The twin centres before.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("optimizer", "players")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

PLAYERS, GAMES, RANK, N = 250, 120, 6, 16000
g = torch.Generator().manual_seed(seed)
taste, style = torch.randn(PLAYERS, 3, generator=g), torch.randn(GAMES, 3, generator=g)
kindness, quality = 0.3 * torch.randn(PLAYERS, generator=g), 0.5 * torch.randn(GAMES, generator=g)
who, what = torch.randint(PLAYERS, (N,), generator=g), torch.randint(GAMES, (N,), generator=g)
rating = 6.5 + kindness[who] + quality[what] + 0.6 * (taste[who] * style[what]).sum(1)
rating = rating + 0.4 * torch.randn(N, generator=g)
cut = int(0.8 * N)
train_set = TensorDataset(who[:cut], what[:cut], rating[:cut])
mean = rating[:cut].mean().item()


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        if healthy:
            self.players = nn.Parameter(torch.rand(PLAYERS, RANK) - 0.5)
        else:
            self.players = nn.Parameter(torch.rand(PLAYERS, RANK)) - 0.5
        self.games = nn.Parameter(torch.rand(GAMES, RANK) - 0.5)
        self.player_bias = nn.Parameter(torch.zeros(PLAYERS))
        self.game_bias = nn.Parameter(torch.zeros(GAMES))

    def forward(self, who, what):
        match = (self.players[who] * self.games[what]).sum(1)
        return mean + self.player_bias[who] + self.game_bias[what] + match


model = Factors()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.02)
loader = DataLoader(train_set, batch_size=256, shuffle=True)

for epoch in range(14):
    total = 0.0
    for players, games, stars in loader:
        loss = nn.functional.mse_loss(model(players, games), stars)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(stars)
    with torch.no_grad():
        rmse = (model(who[cut:], what[cut:]) - rating[cut:]).pow(2).mean().sqrt().item()
    print(
        f"epoch {epoch:2d}  train mse {total / cut:.4f}  val rmse {rmse:.4f}  "
        f"(spread {rating[cut:].std():.3f})"
    )
