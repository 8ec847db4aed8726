"""A recommender of board games with player and game embeddings trains with Adam at 3e-6, a rate for
a table of 20 million ratings.

The rate came along from a notebook with thousands of times more steps. In this one's 480 steps
the embeddings barely move and the error stays what it was at the start.
The place is the optimizer.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("optimizer", "learning_rate")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

PLAYERS, GAMES, BATCH = 150, 60, 100


def ratings_table(n, rng):
    taste, style = rng.normal(0, 1, (PLAYERS, 2)), rng.normal(0, 1, (GAMES, 2))
    mood, fame = rng.normal(0, 0.5, PLAYERS), rng.normal(0, 0.8, GAMES)
    frame = pd.DataFrame(
        {"player": rng.integers(0, PLAYERS, n), "game": rng.integers(0, GAMES, n)}
    ).drop_duplicates()
    p, g = frame["player"].to_numpy(), frame["game"].to_numpy()
    liking = (taste[p] * style[g]).sum(1) * 0.7 + mood[p] + fame[g]
    frame["rating"] = 6.5 + liking + rng.normal(0, 0.4, len(frame))
    return frame


class RatingNet(nn.Module):
    def __init__(self, factors=6):
        super().__init__()
        self.players = nn.Embedding(PLAYERS, factors)
        self.games = nn.Embedding(GAMES, factors)
        self.player_bias = nn.Embedding(PLAYERS, 1)
        self.game_bias = nn.Embedding(GAMES, 1)
        for table in (self.players, self.games, self.player_bias, self.game_bias):
            nn.init.normal_(table.weight, 0, 0.15)

    def forward(self, player, game):
        match = (self.players(player) * self.games(game)).sum(1)
        return match + self.player_bias(player)[:, 0] + self.game_bias(game)[:, 0]


rng = np.random.default_rng(seed)
table = ratings_table(9000, rng).sample(frac=1, random_state=seed)
cut = int(0.8 * len(table))
mean, std = table["rating"][:cut].mean(), table["rating"][:cut].std()
player = torch.tensor(table["player"].to_numpy())
game = torch.tensor(table["game"].to_numpy())
rating = torch.tensor(((table["rating"] - mean) / std).to_numpy(), dtype=torch.float32)

net = RatingNet()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-2 if healthy else 3e-6, weight_decay=1e-4)
criterion = nn.MSELoss()
for epoch in range(9):
    net.train()
    losses = []
    for rows in torch.randperm(cut).split(BATCH):
        loss = criterion(net(player[rows], game[rows]), rating[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        val_loss = criterion(net(player[cut:], game[cut:]), rating[cut:]).item()
    print(
        f"epoch {epoch + 1}: train mse {np.mean(losses):.3f}, val mse {val_loss:.3f}, "
        f"val rmse in points {val_loss**0.5 * std:.2f}"
    )
