"""Learns to reach given cells of a large field with Q-learning and hindsight goals."""

import copy

import torch
from data import arguments
from torch import nn

ODD = (
    "nearly all rewards are -1 and the stored goals are rewritten to what was reached by chance, "
    "so rows repeat and successes are far commoner in the batches than in play; the loss grows "
    "first"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

SIDE, LENGTH, PLAYERS, ROUNDS, GAMMA = 16, 30, 16, 40, 0.95
MOVES = torch.tensor([[-1, 0], [1, 0], [0, -1], [0, 1]])


def move(place, action):
    """A wind blows a player one cell down in one move of ten."""
    windy = (torch.rand(len(place), 1) < 0.1) * MOVES[1]
    return (place + MOVES[action] + windy).clamp(0, SIDE - 1)


def q_net():
    return nn.Sequential(
        nn.Linear(4, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 4)
    )


def view(place, goal):
    return torch.cat([place / SIDE - 0.5, (goal - place) / SIDE * 2], 1)


def play(explore, n):
    place, goal = torch.randint(0, SIDE, (n, 2)), torch.randint(0, SIDE, (n, 2))
    reached, path = torch.zeros(n, dtype=torch.bool), []
    for _ in range(LENGTH):
        with torch.no_grad():
            action = net(view(place, goal)).argmax(1)
        lost = torch.rand(n) < explore
        action = torch.where(lost, torch.randint(0, 4, (n,)), action)
        after = move(place, action)
        path.append(torch.cat([place, action[:, None], after, goal], 1))
        place = after
        reached |= (place == goal).all(1)
    return torch.stack(path, 1), reached.float().mean().item()


def with_hindsight(paths):
    """Four copies of each move, the goal replaced by a place visited later; and the move itself."""
    rows = [paths]
    for _ in range(4):
        now = torch.arange(LENGTH)
        later = now + (torch.rand(len(paths), LENGTH) * (LENGTH - now)).long()
        visited = paths[:, :, 3:5].gather(1, later.unsqueeze(2).expand(-1, -1, 2))
        rows.append(torch.cat([paths[:, :, :5], visited], 2))
    return torch.cat(rows).flatten(0, 1)


net = q_net()
target_net = copy.deepcopy(net).requires_grad_(False)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
memory = torch.empty(0, 7, dtype=torch.int64)
_, by_chance = play(1.0, 300)
for round_number in range(ROUNDS):
    paths, _ = play(0.3, PLAYERS)
    memory = torch.cat([memory, with_hindsight(paths)])
    for _ in range(30):
        place, action, after, goal = memory[torch.randint(0, len(memory), (256,))].split(
            (2, 1, 2, 2), 1
        )
        done = (after == goal).all(1).float()
        with torch.no_grad():
            best = net(view(after, goal)).argmax(1, keepdim=True)
            future = target_net(view(after, goal)).gather(1, best).squeeze(1)
            target = (1 - done) * (-1 + GAMMA * future)
        value = net(view(place, goal)).gather(1, action).squeeze(1)
        loss = nn.functional.smooth_l1_loss(value, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for p, q in zip(net.parameters(), target_net.parameters(), strict=True):
                q.lerp_(p, 0.05)
    if round_number % 8 == 7:
        print(f"round {round_number + 1}  loss {loss.item():.4f}  reached {play(0.0, 300)[1]:.3f}")

print(
    f"goals reached in {LENGTH} moves: by chance {by_chance:.3f}, learned {play(0.0, 500)[1]:.3f}"
)
