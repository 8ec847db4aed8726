"""Teaches a robot to fetch a coin by Q-learning; the gradients are cleared before the step.

While the author moved the lines of the update about, `zero_grad()` came to stand between
`backward()` and `step()`. Each step finds no gradient, and the Q-network stays as it was drawn.
The place is the loop. The twin clears before backward.
"""

import random
from collections import deque

import torch
from data import arguments
from torch import nn

KIND = "step_without_gradient"
ACCEPT = ("optimizer_never_steps",)
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = True
EARLY = True

N = 4
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))


class CoinGrid:
    """The robot's and the coin's cell on a grid; twelve moves at most."""

    def reset(self):
        self.robot = [random.randrange(N), random.randrange(N)]
        self.coin = list(self.robot)
        while self.coin == self.robot:
            self.coin = [random.randrange(N), random.randrange(N)]
        self.left = 12
        return self.state()

    def state(self):
        view = [0.0] * (4 * N)
        for k, v in enumerate((*self.robot, *self.coin)):
            view[k * N + v] = 1.0
        return view

    def step(self, action):
        for k in (0, 1):
            self.robot[k] = min(N - 1, max(0, self.robot[k] + MOVES[action][k]))
        self.left -= 1
        found = self.robot == self.coin
        return self.state(), 1.0 if found else -0.02, found, found or self.left == 0


class Agent:
    def __init__(self, clear_first):
        self.q = nn.Sequential(nn.Linear(4 * N, 64), nn.ReLU(), nn.Linear(64, 4))
        self.target = nn.Sequential(nn.Linear(4 * N, 64), nn.ReLU(), nn.Linear(64, 4))
        self.target.load_state_dict(self.q.state_dict())
        self.optimizer = torch.optim.Adam(self.q.parameters(), lr=3e-3)
        self.memory = deque(maxlen=3000)
        self.clear_first = clear_first
        self.updates = 0

    def act(self, state, epsilon):
        if random.random() < epsilon:
            return random.randrange(4)
        with torch.no_grad():
            return int(self.q(torch.tensor(state)).argmax())

    def learn(self):
        batch = random.sample(self.memory, 64)
        state, action, reward, after, found = (
            torch.tensor(part) for part in zip(*batch, strict=False)
        )
        with torch.no_grad():
            best = self.target(after).max(1).values
            goal = reward + 0.9 * best * (~found)
        value = self.q(state).gather(1, action.unsqueeze(1)).squeeze(1)
        loss = nn.functional.smooth_l1_loss(value, goal)
        if self.clear_first:
            self.optimizer.zero_grad()
            loss.backward()
        else:
            loss.backward()
            self.optimizer.zero_grad()
        self.optimizer.step()
        self.updates += 1
        if self.updates % 50 == 0:
            self.target.load_state_dict(self.q.state_dict())
        return loss.item()


def play(env, agent, epsilon, learn=False):
    state, done, total, losses = env.reset(), False, 0.0, []
    while not done:
        action = agent.act(state, epsilon)
        after, reward, found, done = env.step(action)
        total += reward
        if learn:
            agent.memory.append((state, action, reward, after, found))
            if len(agent.memory) > 200 and env.left % 3 == 0:
                losses.append(agent.learn())
        state = after
    return total, found, losses


healthy, seed = arguments(__doc__)
env, agent = CoinGrid(), Agent(clear_first=healthy)
recent = []
for episode in range(1, 401):
    epsilon = max(0.1, 1 - episode / 250)
    recent += play(env, agent, epsilon, learn=True)[2]
    if episode % 80 == 0:
        games = [play(env, agent, 0.0) for _ in range(40)]
        coins = sum(found for _, found, _ in games) / 40
        print(f"episode {episode} loss {sum(recent) / len(recent):.4f} coins found {coins:.3f}")
        recent = []
