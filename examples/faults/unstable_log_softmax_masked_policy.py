"""A policy network that imitates an expert, with illegal moves masked and an entropy bonus.

The entropy is computed as p * log(p) with p = softmax of the masked scores: an illegal move has p
= 0 exactly, its logarithm is -inf, 0 * -inf is NaN, and the first step makes all weights NaN. The
place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches
from torch import nn

KIND = "unstable_log_softmax"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
MOVES, STATE = 9, 12
g = torch.Generator().manual_seed(seed)
state = torch.randn(3000, STATE, generator=g)
legal = torch.rand(3000, MOVES, generator=g) < 0.7
legal[:, 0] = True
value = state @ torch.randn(STATE, MOVES, generator=g)
move = value.masked_fill(~legal, -1e9).argmax(1)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(STATE, 48), nn.Tanh())
        self.scores = nn.Linear(48, MOVES)

    def forward(self, state, legal):
        return self.scores(self.body(state)).masked_fill(~legal, -1e9)


def policy_loss(scores, move):
    p = F.softmax(scores, dim=1)
    log_p = F.log_softmax(scores, dim=1) if healthy else torch.log(p)
    entropy = -(p * log_p).sum(1).mean()
    return F.nll_loss(log_p, move) - 0.01 * entropy


policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=300)
train = slice(0, 2500)
for s, ok, m in batches(state[train], legal[train], move[train], size=50, steps=300, seed=seed):
    optimizer.zero_grad()
    loss = policy_loss(policy(s, ok), m)
    loss.backward()
    optimizer.step()
    schedule.step()
with torch.no_grad():
    scores = policy(state[2500:], legal[2500:])
    acc = (scores.argmax(1) == move[2500:]).float().mean().item()
print(f"loss {loss.item():.3f}, val loss {F.cross_entropy(scores, move[2500:]):.3f}, acc {acc:.3f}")
