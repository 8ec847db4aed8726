"""Says who will win a race at backgammon; softmax runs over the one output.

The first version gave three probabilities (win, double win, loss). Then only wins were wanted and
the last layer became one unit, but the softmax stayed: over a single number it is always 1, so
every board is a certain win and no gradient reaches the network.
The place is the output. The twin has a sigmoid there.
"""

import random

import torch
from data import arguments
from torch import nn

KIND = "softmax_single_unit"
ACCEPT = ()
PLACE = ("output*", "value.5", "value")
SILENT = False
EXACT = True
EARLY = True

POINTS, CHECKERS = 15, 7


def roll(r):
    a, b = r.randint(1, 6), r.randint(1, 6)
    return 4 * a if a == b else a + b


def position(r):
    """How many checkers of each side stand on each point."""
    mine, yours = [0] * POINTS, [0] * POINTS
    for side in (mine, yours):
        reach = r.randint(6, POINTS)
        for _ in range(CHECKERS):
            side[r.randrange(reach)] += 1
    return mine, yours


def play_out(mine, yours, r):
    """True if the side to move gets home first."""
    left = [sum(count * (k + 1) for k, count in enumerate(side)) for side in (mine, yours)]
    turn = 0
    while True:
        left[turn] -= roll(r)
        if left[turn] <= 0:
            return turn == 0
        turn = 1 - turn


def collect(n, seed):
    r = random.Random(seed)
    boards, results = [], []
    for _ in range(n):
        mine, yours = position(r)
        boards.append(mine + yours)
        results.append(float(play_out(mine, yours, r)))
    return torch.tensor(boards).float() - CHECKERS / POINTS, torch.tensor(results).unsqueeze(1)


healthy, seed = arguments(__doc__)
x, y = collect(2000, seed)
x_val, y_val = collect(600, seed + 10_000)
value = nn.Sequential(
    nn.Linear(2 * POINTS, 64),
    nn.ReLU(),
    nn.Linear(64, 32),
    nn.ReLU(),
    nn.Linear(32, 1),
    nn.Sigmoid() if healthy else nn.Softmax(dim=1),
)
criterion = nn.BCELoss()
optimizer = torch.optim.Adam(value.parameters(), lr=2e-3, weight_decay=1e-4)
for epoch in range(8):
    total = 0.0
    for rows in torch.randperm(len(x)).split(40):
        optimizer.zero_grad()
        loss = criterion(value(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows) / len(x)
    with torch.no_grad():
        p = value(x_val)
        val = criterion(p, y_val).item()
        hits = ((p > 0.5) == (y_val > 0.5)).float().mean().item()
    print(f"epoch {epoch} train {total:.3f} val {val:.3f} foretold {hits:.3f}")
