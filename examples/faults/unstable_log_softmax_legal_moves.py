"""Distilling a search into a policy network for a board game: log of a softmax over masked moves.

The loss was split so that the probabilities could be drawn: `softmax` first, `.log()` in the loss.
Occupied squares are masked by a large negative logit, so their probability is exactly 0, its log is
minus infinity, and 0 visits times that is NaN. The place is the loss. The twin takes `log_softmax`,
where an occupied square costs 0 times a large finite number.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "unstable_log_softmax"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
SIDE = 5


def positions(count, g):
    """Boards with +1 and -1 stones and the share of visits a search gave to each free square."""
    draw = torch.rand(count, SIDE, SIDE, generator=g)
    board = (draw < 0.25).float() - (draw > 0.75).float()
    mine = F.conv2d(board.clamp(min=0)[:, None], torch.ones(1, 1, 3, 3), padding=1)[:, 0]
    theirs = F.conv2d((-board).clamp(min=0)[:, None], torch.ones(1, 1, 3, 3), padding=1)[:, 0]
    centre = 2.0 - (torch.arange(SIDE) - SIDE // 2).abs().float()
    worth = 1.2 * mine + 0.8 * theirs * (mine == 0) + 0.7 * (centre[:, None] + centre[None])
    worth = worth + 0.3 * torch.randn(count, SIDE, SIDE, generator=g)
    legal = (board == 0).flatten(1)
    visits = worth.flatten(1).masked_fill(~legal, -torch.inf).softmax(1)
    return board[:, None], legal, visits


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return F.relu(x + self.second(F.relu(self.first(x))))


class Policy(nn.Module):
    def __init__(self, channels=24):
        super().__init__()
        self.stem = nn.Conv2d(1, channels, 3, padding=1)
        self.tower = nn.Sequential(Residual(channels), Residual(channels))
        self.squares = nn.Conv2d(channels, 1, 1)
        self.bias = nn.Parameter(torch.zeros(SIDE * SIDE))

    def forward(self, board, legal):
        logits = self.squares(self.tower(F.relu(self.stem(board)))).flatten(1) + self.bias
        return logits.masked_fill(~legal, -1e4)


def distance(logits, visits):
    """Cross-entropy against the shares of visits."""
    log_policy = F.log_softmax(logits, dim=1) if healthy else F.softmax(logits, dim=1).log()
    return -(visits * log_policy).sum(1).mean()


g = torch.Generator().manual_seed(seed)
board, legal, visits = positions(4000, g)
val_board, val_legal, val_visits = positions(1000, g)
policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [250, 350], gamma=0.3)
for step in range(1, 401):
    policy.train()
    rows = torch.randint(0, len(board), (96,), generator=g)
    loss = distance(policy(board[rows], legal[rows]), visits[rows])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 50 == 0:
        policy.eval()
        with torch.no_grad():
            logits = policy(val_board, val_legal)
            agree = (logits.argmax(1) == val_visits.argmax(1)).float().mean()
            val = distance(logits, val_visits)
        print(
            f"step {step} loss {loss:.4f} val loss {val:.4f} "
            f"validation agreement with the search {agree:.3f}"
        )
