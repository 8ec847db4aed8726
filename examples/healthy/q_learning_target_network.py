"""A Q-network learns to walk to a goal in a windy grid, with a target network.

It looks odd because the loss rises at first and does not fall to 0, a second network gets no
gradient and only follows the first one slowly, and most rewards are 0. In Q-learning the targets
move while the values grow: the measure is the return of the greedy policy, which becomes good.
"""

import copy
import random

import torch
from data import arguments
from torch import nn

ODD = "A Q-network learns to walk to a goal in a windy grid, with a target network"
_, seed = arguments(__doc__)

SIDE, GAMMA, LIMIT = 6, 0.95, 40
MOVES = ((0, 1), (0, -1), (1, 0), (-1, 0))
PITS = {(2, 2), (2, 3), (4, 1)}
GOAL = (5, 5)


def walk(place, action):
    """One move; one time in ten the wind chooses. Returns the new place, reward and whether done."""  # noqa: E501
    if random.random() < 0.1:
        action = random.randrange(4)
    row = min(max(place[0] + MOVES[action][0], 0), SIDE - 1)
    column = min(max(place[1] + MOVES[action][1], 0), SIDE - 1)
    if (row, column) == GOAL:
        return (row, column), 1.0, True
    if (row, column) in PITS:
        return (row, column), -1.0, True
    return (row, column), -0.01, False


def seen(place):
    """Both coordinates, one-hot."""
    x = torch.zeros(2 * SIDE)
    x[place[0]] = x[SIDE + place[1]] = 1
    return x


def anywhere():
    while True:
        place = (random.randrange(SIDE), random.randrange(SIDE))
        if place != GOAL and place not in PITS:
            return place


@torch.no_grad()
def returns(network, games=100):
    total = 0.0
    for _ in range(games):
        place, done, steps = anywhere(), False, 0
        while not done and steps < LIMIT:
            place, reward, done = walk(place, network(seen(place)).argmax().item())
            total, steps = total + reward / games, steps + 1
    return total


network = nn.Sequential(
    nn.Linear(2 * SIDE, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4)
)
target = copy.deepcopy(network).requires_grad_(False)
optimizer = torch.optim.Adam(network.parameters(), lr=5e-4)
memory = []
place, age = anywhere(), 0
print(f"before: return {returns(network):.3f}")
for step in range(1, 3501):
    curious = max(0.25, 1 - step / 2500)
    with torch.no_grad():
        best = network(seen(place)).argmax().item()
    action = random.randrange(4) if random.random() < curious else best
    after, reward, done = walk(place, action)
    memory.append((seen(place), action, reward, seen(after), float(done)))
    age += 1
    place, age = (anywhere(), 0) if done or age == LIMIT else (after, age)
    if step <= 200:
        continue
    s, a, r, s2, d = zip(*random.sample(memory, 64), strict=False)
    s, s2, a = torch.stack(s), torch.stack(s2), torch.tensor(a)
    goal = torch.tensor(r) + GAMMA * (1 - torch.tensor(d)) * target(s2).amax(1)
    value = network(s).gather(1, a.unsqueeze(1)).squeeze(1)
    loss = nn.functional.smooth_l1_loss(value, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), network.parameters(), strict=False):
            slow.lerp_(fast, 0.01)
    if step % 500 == 0:
        print(f"step {step} loss {loss.item():.4f} return {returns(network):.3f}")
