"""Who wins a game of chess, by the players and the opening; a lost game is written as -1.

The game database knows +1 for a win and -1 for a loss, and the loss is the binary cross-entropy,
which is made for 1 and 0. For -1 it has no bottom: the network is paid more and more for calling
games lost, and the training loss runs below zero.
The place is the loss (or the loader, which could turn -1 into 0). The twin maps the results to 0
and 1.
"""

import random

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "labels_out_of_range"
ACCEPT = ()
PLACE = ("loss*", "loader", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

OPENINGS = ["sicilian", "french", "caro-kann", "spanish", "italian", "queen's gambit", "english"]


class Player:
    def __init__(self, rng):
        self.rating = rng.gauss(1600, 250)
        self.tactics = rng.gauss(0, 1)
        self.repertoire = [rng.gauss(0, 0.6) for _ in OPENINGS]


class GameDatabase:
    """Decided games of a club's season, as dictionaries."""

    def __init__(self, rng, players=120):
        self.rng = rng
        self.players = [Player(rng) for _ in range(players)]

    def sample(self):
        white, black = self.rng.sample(self.players, 2)
        opening = self.rng.randrange(len(OPENINGS))
        edge = (white.rating - black.rating) / 120 + 0.5 * (white.tactics - black.tactics)
        edge += 1.5 * (white.repertoire[opening] - black.repertoire[opening]) + 0.2
        won = self.rng.random() < 1 / (1 + pow(2.718, -edge))
        return {
            "white": white,
            "black": black,
            "opening": opening,
            "result": 1 if won else -1,
        }


class Games(Dataset):
    def __init__(self, database, n):
        self.rows = [database.sample() for _ in range(n)]

    def __len__(self):
        return len(self.rows)

    def describe(self, player, opening):
        return [(player.rating - 1600) / 250, player.tactics, player.repertoire[opening]]

    def __getitem__(self, i):
        game = self.rows[i]
        first = [0.0] * len(OPENINGS)
        first[game["opening"]] = 1.0
        values = self.describe(game["white"], game["opening"])
        values += self.describe(game["black"], game["opening"]) + first
        result = game["result"]
        if healthy:
            result = (result + 1) / 2
        return torch.tensor(values), torch.tensor(float(result))


def train_one_epoch(model, loader, optimizer, criterion):
    model.train()
    running_loss = 0.0
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs).squeeze(1), targets)
        loss.backward()
        optimizer.step()
        running_loss += loss.item() * len(targets)
    return running_loss / len(loader.dataset)


@torch.inference_mode()
def check(model, loader):
    model.eval()
    correct = 0
    for inputs, targets in loader:
        correct += ((model(inputs).squeeze(1) > 0) == (targets > 0)).sum().item()
    return correct / len(loader.dataset)


def main():
    database = GameDatabase(random.Random(seed))
    train_loader = DataLoader(Games(database, 2000), batch_size=64, shuffle=True)
    val_loader = DataLoader(Games(database, 800), batch_size=200)
    model = nn.Sequential(
        nn.Linear(6 + len(OPENINGS), 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1)
    )
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(1, 11):
        train_loss = train_one_epoch(model, train_loader, optimizer, criterion)
        accuracy = check(model, val_loader)
        print(f"Epoch {epoch:2d}  train_loss: {train_loss:9.4f}  val_acc: {accuracy:.4f}")


main()
