"""A Q network learns a small grid game; its TD loss rises for most of the training, and that is
sound.

At first all values are near zero and the network agrees with itself; as rewards spread back from
the goal the values and with them the TD errors grow. What counts, the return of the greedy
policy, climbs. The target network never trains, by design: it is copied from the other.
"""

import copy
import random
from collections import deque

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "A Q network learns a small grid game; its TD loss rises for most of the training, and "
    "that is sound"
)

_, seed = arguments(__doc__)

SIZE, MOVES = 6, ((0, 1), (1, 0), (0, -1), (-1, 0))


class Maze:
    """The agent starts at random and looks for the cheese at (5, 5); holes end the game, each move costs a little."""  # noqa: E501

    HOLES = {(1, 3), (3, 1), (3, 3), (4, 4), (2, 5)}  # noqa: RUF012

    def reset(self):
        while True:
            self.at = (random.randrange(SIZE), random.randrange(SIZE))
            if self.at not in self.HOLES and self.at != (5, 5):
                break
        self.t = 0
        return self.observe()

    def observe(self):
        grid = np.zeros(SIZE * SIZE, dtype=np.float32)
        grid[self.at[0] * SIZE + self.at[1]] = 1
        return grid

    def step(self, a):
        if random.random() < 0.05:
            a = random.randrange(4)
        r, c = self.at[0] + MOVES[a][0], self.at[1] + MOVES[a][1]
        self.at = (min(max(r, 0), SIZE - 1), min(max(c, 0), SIZE - 1))
        self.t += 1
        if self.at == (5, 5):
            return self.observe(), 10.0, True
        if self.at in self.HOLES:
            return self.observe(), -5.0, True
        return self.observe(), -0.1, self.t >= 40


def greedy_return(net, games=30):
    env, total = Maze(), 0.0
    for _ in range(games):
        obs, done = env.reset(), False
        while not done:
            with torch.no_grad():
                a = net(torch.from_numpy(obs)).argmax().item()
            obs, reward, done = env.step(a)
            total += reward
    return total / games


q = nn.Sequential(
    nn.Linear(SIZE * SIZE, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4)
)
target = copy.deepcopy(q).requires_grad_(False)
optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)
memory = deque(maxlen=8000)
env = Maze()
obs, losses = env.reset(), []
for step in range(1, 3501):
    epsilon = max(0.1, 1 - step / 1800)
    if random.random() < epsilon:
        action = random.randrange(4)
    else:
        with torch.no_grad():
            action = q(torch.from_numpy(obs)).argmax().item()
    nxt, reward, done = env.step(action)
    memory.append((obs, action, reward, nxt, float(done and env.t < 40)))
    obs = env.reset() if done else nxt
    if step >= 300 and step % 2 == 0:
        s, a, r, s2, d = zip(*random.sample(memory, 64), strict=False)
        s, s2 = torch.from_numpy(np.stack(s)), torch.from_numpy(np.stack(s2))
        a, r, d = torch.tensor(a), torch.tensor(r), torch.tensor(d)
        with torch.no_grad():
            best = q(s2).argmax(1, keepdim=True)
            goal = r + 0.97 * (1 - d) * target(s2).gather(1, best).squeeze(1)
        loss = F.smooth_l1_loss(q(s).gather(1, a.unsqueeze(1)).squeeze(1), goal)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(q.parameters(), 10.0)
        optimizer.step()
        losses.append(loss.item())
        for p, t in zip(q.parameters(), target.parameters(), strict=False):
            t.data.lerp_(p.data, 0.01)
    if step % 500 == 0:
        print(
            f"step {step} TD loss {np.mean(losses[-100:]) if losses else 0:.4f} greedy return {greedy_return(q):.2f}"  # noqa: E501
        )
