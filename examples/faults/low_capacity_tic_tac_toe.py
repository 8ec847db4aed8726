"""A network learns who wins a tic-tac-toe position with best play, from two numbers per position.

All positions that can occur are solved by search; the network in between has hidden layers of two
units, as they were set for a first try on a laptop, and so it can't hold the rules. The place is
the hidden layers (their width).
"""

from functools import cache

import torch
from data import arguments
from torch import nn

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("layers*", "*layers*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


@cache
def solve(board, player):
    """1 when the player to move wins, 0 for a draw, -1 when he loses."""
    if any(all(board[i] == -player for i in line) for line in LINES):
        return -1
    free = [i for i in range(9) if board[i] == 0]
    if not free:
        return 0
    return max(-solve((*board[:i], player, *board[i + 1 :]), -player) for i in free)


def positions():
    """Own stones and the other's as 18 zeros and ones, and the outcome (0 lost, 1 drawn, 2 won)."""
    seen, todo = {}, [((0,) * 9, 1)]
    while todo:
        board, player = todo.pop()
        if (board, player) in seen or any(all(board[i] == -player for i in line) for line in LINES):
            continue
        seen[board, player] = solve(board, player)
        todo += [
            ((*board[:i], player, *board[i + 1 :]), -player) for i in range(9) if board[i] == 0
        ]
    boards = torch.tensor([[c * player for c in board] for board, player in seen])
    planes = torch.cat([boards == 1, boards == -1], 1).float()
    return (planes - planes.mean()) / planes.std(), torch.tensor(list(seen.values())) + 1


class OutcomeNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(18, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 3)
        )

    def forward(self, planes):
        return self.layers(planes)


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        logits = model(x)
    model.train()
    recall = [(logits.argmax(1)[y == k] == k).float().mean().item() for k in range(3)]
    return (
        nn.functional.cross_entropy(logits, y).item(),
        (logits.argmax(1) == y).float().mean().item(),
        recall,
    )


def main():
    x, y = positions()
    order = torch.randperm(len(x))
    train_rows, val_rows = order[: int(0.8 * len(x))], order[int(0.8 * len(x)) :]
    model = OutcomeNet(width=128 if healthy else 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
    for epoch in range(20):
        total = 0.0
        batches = train_rows[torch.randperm(len(train_rows))].split(64)
        for rows in batches:
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / len(batches)
        if epoch % 4 == 3:
            val_loss, accuracy, recall = evaluate(model, x[val_rows], y[val_rows])
            print(
                f"epoch {epoch} loss {total:.3f} val loss {val_loss:.3f} acc {accuracy:.3f}",
                [round(v, 2) for v in recall],
            )


main()
