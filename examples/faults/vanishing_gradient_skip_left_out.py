"""A deep evaluation network for four-in-a-row boards; the blocks were meant to be residual, and
the skip was left out.

Fourteen blocks end in a sigmoid gate without `x +`, so each multiplies the gradient by a small
number and the first get next to nothing. The place is the blocks.
"""

import torch
from data import arguments
from torch import nn

KIND = "vanishing_gradient"
ACCEPT = ("saturated_activation",)
PLACE = ("tower*", "embed*", "stem*")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

ROWS, COLS = 5, 6
LINES = [
    [(r + dr * k) * COLS + c + dc * k for k in range(4)]
    for r in range(ROWS)
    for c in range(COLS)
    for dr, dc in ((0, 1), (1, 0), (1, 1), (1, -1))
    if 0 <= r + 3 * dr < ROWS and 0 <= c + 3 * dc < COLS
]
LINES = torch.tensor(LINES)


def boards(n, g):
    """Random positions by legal drops; labelled by the open threats: one side is ahead (0, 2) or even (1)."""  # noqa: E501
    board = torch.zeros(n, COLS, ROWS)
    height = torch.zeros(n, COLS, dtype=torch.long)
    plies = torch.randint(8, 20, (n,), generator=g)
    for ply in range(20):
        column = torch.randint(0, COLS, (n,), generator=g)
        rows = torch.arange(n)
        free = (height[rows, column] < ROWS) & (ply < plies)
        at = rows[free], column[free]
        board[at[0], at[1], height[at]] = 1.0 if ply % 2 == 0 else -1.0
        height[at] += 1
    flat = board.transpose(1, 2).reshape(n, -1)
    lines = flat[:, LINES]
    own, other = (lines > 0).sum(-1), (lines < 0).sum(-1)
    threat = ((other == 0) * own.float() ** 2).sum(1) - ((own == 0) * other.float() ** 2).sum(1)
    label = (threat > 4).long() - (threat < -4).long() + 1
    return flat, label


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)

    def forward(self, x):
        h = self.norm(x)
        h = torch.sigmoid(self.gate(torch.sigmoid(self.fc(h))))
        return x + (h - 0.5) if healthy else h


class Evaluator(nn.Module):
    def __init__(self, width=64, depth=14):
        super().__init__()
        self.stem = nn.Linear(ROWS * COLS, width)
        self.tower = nn.Sequential(*[Block(width) for _ in range(depth)])
        self.value = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 3))

    def forward(self, x):
        return self.value(self.tower(self.stem(x)))


def run():
    g = torch.Generator().manual_seed(seed)
    x, y = boards(16000, g)
    x_val, y_val = boards(2000, g)
    print("share of the classes", torch.bincount(y).div(len(y)).tolist())
    net = Evaluator()
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.1, total_steps=700, pct_start=0.2)
    for step in range(700):
        idx = torch.randint(0, len(x), (128,), generator=g)
        loss = nn.functional.cross_entropy(net(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 2.0)
        opt.step()
        sched.step()
        if step % 100 == 99:
            net.eval()
            with torch.no_grad():
                acc = (net(x_val).argmax(-1) == y_val).float().mean()
            net.train()
            print(f"[{step + 1:4d}] loss={loss.item():.4f} val_acc={acc:.3f}")


run()
