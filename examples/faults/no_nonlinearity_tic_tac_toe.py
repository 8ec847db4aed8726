"""A network judges positions of tic-tac-toe; the activation of its configuration is not applied.

The person looks the activation up by name and falls back on nn.Identity for names not found. The
table has lower-case names and the configuration says "ReLU", so four linear layers follow one
another without anything between. The place is the model, between its layers.
"""

import itertools

import torch
from data import arguments
from torch import nn

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("model", "body*", "act*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

CONFIG = {
    "hidden": [64, 64, 32],
    "activation": "relu" if healthy else "ReLU",
    "optimizer": {"lr": 0.03, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-3},
    "epochs": 24,
    "batch_size": 32,
}
ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU, "tanh": nn.Tanh, "elu": nn.ELU}
LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


def wins(board, player):
    return any(all(board[i] == player for i in line) for line in LINES)


def value(board, player, known):
    """1, 0 or -1 for the player to move, by search through all that can follow."""
    key = (board, player)
    if key not in known:
        if wins(board, -player):
            known[key] = -1
        elif 0 not in board:
            known[key] = 0
        else:
            moves = [i for i in range(9) if board[i] == 0]
            follow = ((*board[:i], player, *board[i + 1 :]) for i in moves)
            known[key] = max(-value(after, -player, known) for after in follow)
    return known[key]


def symmetries(board):
    """The board turned and mirrored in all eight ways."""
    grid = torch.tensor(board).view(3, 3)
    turned = [torch.rot90(grid, k) for k in range(4)]
    return [tuple(g.flatten().tolist()) for t in turned for g in (t, t.T)]


def positions():
    """Planes, values, and for each position the number of its family of turned positions."""
    known, boards, values, families = {}, [], [], {}
    for board in itertools.product((-1, 0, 1), repeat=9):
        if sum(board) == 0 and not wins(board, 1) and 0 in board:
            boards.append(board)
            values.append(value(board, 1, known) + 1)
    family = [families.setdefault(min(symmetries(b)), len(families)) for b in boards]
    boards = torch.tensor(boards)
    planes = torch.cat([boards == 1, boards == -1], 1).float()
    return (planes - planes.mean(0)) / planes.std(0), torch.tensor(values), torch.tensor(family)


class Judge(nn.Module):
    def __init__(self, config):
        super().__init__()
        act = ACTIVATIONS.get(config["activation"], nn.Identity)
        layers, width = [], 18
        for hidden in config["hidden"]:
            layers += [nn.Linear(width, hidden), act()]
            width = hidden
        self.body = nn.Sequential(*layers)
        self.out = nn.Linear(width, 3)

    def forward(self, x):
        return self.out(self.body(x))


def main():
    x, y, family = positions()
    order = torch.randperm(len(family.unique()), generator=torch.Generator().manual_seed(seed))
    held_out = torch.isin(family, order[: len(order) // 4])
    x, y, x_val, y_val = x[~held_out], y[~held_out], x[held_out], y[held_out]
    print(f"{len(x)} training positions, values {torch.bincount(y).tolist()}")
    model = Judge(CONFIG)
    optimizer = torch.optim.SGD(model.parameters(), **CONFIG["optimizer"])
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, CONFIG["epochs"])
    criterion = nn.CrossEntropyLoss()
    for epoch in range(CONFIG["epochs"]):
        total = 0.0
        batches = torch.randperm(len(x)).split(CONFIG["batch_size"])
        for rows in batches:
            optimizer.zero_grad()
            loss = criterion(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            total += loss.item()
        schedule.step()
        if epoch % 4 == 3:
            with torch.no_grad():
                logits = model(x_val)
                accuracy = (logits.argmax(1) == y_val).float().mean().item()
                val_loss = criterion(logits, y_val).item()
            print(
                f"epoch {epoch + 1}: loss {total / len(batches):.3f}, val {val_loss:.3f}, "
                f"accuracy {accuracy:.3f}"
            )


main()
