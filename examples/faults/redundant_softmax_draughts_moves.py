"""Imitates a player's moves on a small board; the policy gives probabilities to cross_entropy.

The policy network came from a policy gradient, where torch.distributions wants probabilities. In
the imitation it is followed by F.cross_entropy, which applies softmax once more: even a perfect
policy has a high loss, and the gradient is faint.
The place is the loss and the output. The twin's policy returns scores.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "redundant_softmax"
ACCEPT = ("wrong_loss",)
PLACE = ("loss*", "move", ", ")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
SIDE = 5


def games(n, g):
    """Own, foreign and empty squares; the move goes to the empty square worth most."""
    state = torch.randint(0, 3, (n, SIDE, SIDE), generator=g)
    board = F.one_hot(state, 3).permute(0, 3, 1, 2).float()
    around = torch.ones(1, 1, 3, 3)
    near = F.conv2d(board[:, :1], around, padding=1) - 0.6 * F.conv2d(
        board[:, 1:2], around, padding=1
    )
    worth = near + 0.05 * torch.randn(n, 1, SIDE, SIDE, generator=g)
    return board, worth.masked_fill(state.unsqueeze(1) != 2, -99).flatten(1).argmax(1)


class Policy(nn.Module):
    def __init__(self, channels=24):
        super().__init__()
        self.conv1 = nn.Conv2d(3, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.move = nn.Conv2d(channels, 1, 1)

    def forward(self, board):
        h = F.relu(self.conv2(F.relu(self.conv1(board))))
        scores = self.move(h).flatten(1)
        return scores if healthy else F.softmax(scores, dim=1)


g = torch.Generator().manual_seed(seed)
boards, moves = games(3000, g)
loader = DataLoader(TensorDataset(boards[:2500], moves[:2500]), batch_size=50, shuffle=True)
policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)
for epoch in range(8):
    total = 0.0
    for board, move in loader:
        loss = F.cross_entropy(policy(board), move)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    schedule.step()
    with torch.no_grad():
        agreed = (policy(boards[2500:]).argmax(1) == moves[2500:]).float().mean()
    print(f"epoch {epoch}: loss {total / len(loader):.3f}, same move {agreed:.3f}")
