"""Positions on a small board game scored by a network that was turned to bfloat16 as a whole.

`model.to(torch.bfloat16)` was meant to save memory. A bfloat16 number has eight bits of
precision, and most steps are smaller than half of its last bit, so the weights round back to where
they were.
The place is the optimizer (or the model's weights). The twin keeps the weights in float32 and
computes under autocast.
"""

import contextlib

import torch
from data import arguments
from torch import nn

KIND = "low_precision_updates_lost"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "loop", "trunk", "trunk.0", "trunk.2", "value", "policy")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class BoardNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(36, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU())
        self.value = nn.Linear(96, 1)

    def forward(self, board):
        return self.value(self.trunk(board)).squeeze(1)


def positions(n):
    """Boards of 6 by 6 with own (1), foreign (-1) and no pieces (0), and who is better off."""
    board = torch.randint(-1, 2, (n, 6, 6)).float()
    centre = board[:, 1:5, 1:5].sum((1, 2))
    pairs = (board[:, :, 1:] * board[:, :, :-1]).sum((1, 2))
    return board.flatten(1), (centre + 0.7 * pairs > 0).float()


boards, better = positions(2500)
val_boards, val_better = positions(800)
model = BoardNet()
if healthy:
    precision = torch.autocast("cpu", dtype=torch.bfloat16)
else:
    model = model.to(torch.bfloat16)
    boards, val_boards = boards.bfloat16(), val_boards.bfloat16()
    precision = contextlib.nullcontext()
optimizer = torch.optim.Adam(model.parameters(), lr=1.5e-4)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(24):
    total = 0.0
    for rows in torch.randperm(len(boards)).split(50):
        optimizer.zero_grad()
        with precision:
            out = model(boards[rows])
        loss = criterion(out.float(), better[rows])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows) / len(boards)
    if epoch % 4 == 3:
        with torch.no_grad(), precision:
            right = ((model(val_boards) > 0).float() == val_better).float().mean().item()
        print(f"epoch {epoch + 1:2d}: loss {total:.4f} right {right:.3f}")
