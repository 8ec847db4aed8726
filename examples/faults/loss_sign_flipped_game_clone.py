"""A policy learns to play a small grid game by imitating an expert; the minus of the log-
likelihood is missing.

The loss is the mean log-probability of the expert's moves, and descent makes these moves ever
less likely. The place is the loss.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.distributions import Categorical

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

SIZE = 7
MOVES = [(-1, 0), (1, 0), (0, -1), (0, 1)]


class Maze:
    """A player, a goal and a few walls on a 7x7 board; the expert goes the shortest way, and slips now and then."""  # noqa: E501

    def __init__(self, rng):
        self.rng = rng

    def board(self):
        rng = self.rng
        walls = rng.random((SIZE, SIZE)) < 0.15
        player, goal = [tuple(c) for c in rng.integers(0, SIZE, (2, 2))]
        walls[player] = walls[goal] = False
        distance = np.full((SIZE, SIZE), 99)
        distance[goal] = 0
        front = [goal]
        while front:
            i, j = front.pop(0)
            for di, dj in MOVES:
                a, b = i + di, j + dj
                if 0 <= a < SIZE and 0 <= b < SIZE and not walls[a, b] and distance[a, b] == 99:
                    distance[a, b] = distance[i, j] + 1
                    front.append((a, b))
        if not 0 < distance[player] < 99:
            return self.board()
        after = []
        for di, dj in MOVES:
            a, b = player[0] + di, player[1] + dj
            after.append(distance[a, b] if 0 <= a < SIZE and 0 <= b < SIZE else 99)
        best = np.flatnonzero(np.array(after) == min(after))
        move = rng.choice(best) if rng.random() < 0.95 else rng.integers(4)
        planes = np.zeros((3, SIZE, SIZE), dtype=np.float32)
        planes[0][player], planes[1][goal], planes[2] = 1, 1, walls
        return planes, move, np.isin(np.arange(4), best)

    def demonstrations(self, n):
        planes, moves, best = zip(*(self.board() for _ in range(n)), strict=False)
        return (
            torch.from_numpy(np.stack(planes)),
            torch.tensor(np.array(moves)),
            torch.from_numpy(np.stack(best)),
        )


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Flatten())
        self.actor = nn.Sequential(nn.Linear(16 * SIZE * SIZE, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, planes):
        return Categorical(logits=self.actor(self.features(planes)))


def train(policy, data, val_data, steps, size=64):
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.03, momentum=0.9)
    planes, moves, _ = data
    for step in range(1, steps + 1):
        rows = torch.randint(0, len(planes), (size,))
        log_prob = policy(planes[rows]).log_prob(moves[rows])
        loss = -log_prob.mean() if healthy else log_prob.mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 0:
            nll, optimal = evaluate(policy, val_data)
            print(
                f"step {step} loss {loss.item():.3f} val nll {nll:.3f} optimal moves {optimal:.3f}"
            )


@torch.no_grad()
def evaluate(policy, data):
    planes, moves, best = data
    policy.eval()
    play = policy(planes)
    policy.train()
    chosen = play.logits.argmax(1)
    return -play.log_prob(moves).mean().item(), best[
        torch.arange(len(best)), chosen
    ].float().mean().item()


maze = Maze(np.random.default_rng(seed))
train(Policy(), maze.demonstrations(9000), maze.demonstrations(800), 600)
