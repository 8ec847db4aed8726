"""A DQN waits for more transitions than its replay memory can hold, and so never learns.

The person made the memory smaller to save space (a deque of 1,000) and forgot that learning starts
from a fill of 2,000, a value in another corner of the settings. `learn` returns at its first line,
for ever; epsilon falls and the agent drops apples. The place is the loop.
"""

import random
from collections import deque

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "optimizer_never_steps"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

CONFIG = {
    "memory": 4000 if healthy else 1000,
    "learn_start": 2000,
    "batch_size": 64,
    "gamma": 0.9,
    "lr": 2e-3,
    "learn_every": 4,
    "copy_every": 100,
    "episodes": 1100,
    "epsilon_steps": 6000,
}


class AppleGame:
    """An apple falls from row 0 to 8 on a field of 7 columns and drifts; the basket moves."""

    WIDTH, HEIGHT = 7, 9

    def reset(self):
        self.row, self.column = 0, random.randrange(self.WIDTH)
        self.drift = random.choice([-1, 0, 1])
        self.basket = random.randrange(self.WIDTH)
        return self.state()

    def state(self):
        values = [self.row / 4 - 1, self.column / 3 - 1, self.drift, self.basket / 3 - 1]
        return np.array(values, np.float32)

    def step(self, action):
        self.basket = min(max(self.basket + action - 1, 0), self.WIDTH - 1)
        self.row += 1
        if self.row % 3 == 0:
            self.column = min(max(self.column + self.drift, 0), self.WIDTH - 1)
        done = self.row == self.HEIGHT - 1
        reward = (1.0 if self.basket == self.column else -1.0) if done else 0.0
        return self.state(), reward, done


class DQN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 64)
        self.fc2 = nn.Linear(64, 64)
        self.fc3 = nn.Linear(64, 3)

    def forward(self, x):
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))


class Agent:
    def __init__(self):
        self.policy = DQN()
        self.target = DQN()
        self.target.load_state_dict(self.policy.state_dict())
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=CONFIG["lr"])
        self.memory = deque(maxlen=CONFIG["memory"])
        self.seen = 0
        self.updates = 0

    def epsilon(self):
        return max(0.05, 1 - self.seen / CONFIG["epsilon_steps"])

    def act(self, state, epsilon):
        if random.random() < epsilon:
            return random.randrange(3)
        with torch.no_grad():
            return self.policy(torch.from_numpy(state)).argmax().item()

    def remember(self, *transition):
        self.memory.append(transition)
        self.seen += 1

    def learn(self):
        if len(self.memory) < CONFIG["learn_start"]:
            return
        batch = random.sample(self.memory, CONFIG["batch_size"])
        states, actions, rewards, nexts, dones = (
            np.array(part) for part in zip(*batch, strict=True)
        )
        actions = torch.from_numpy(actions).unsqueeze(1)
        q = self.policy(torch.from_numpy(states)).gather(1, actions).squeeze(1)
        with torch.no_grad():
            future = self.target(torch.from_numpy(nexts)).amax(1)
            goal = torch.tensor(rewards, dtype=torch.float32)
            goal += CONFIG["gamma"] * future * torch.tensor(1.0 - dones, dtype=torch.float32)
        loss = nn.functional.smooth_l1_loss(q, goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        if self.updates % CONFIG["copy_every"] == 0:
            self.target.load_state_dict(self.policy.state_dict())


def caught(agent, game, episodes=150):
    wins = 0
    for _ in range(episodes):
        state, done = game.reset(), False
        while not done:
            state, reward, done = game.step(agent.act(state, 0.0))
        wins += reward > 0
    return wins / episodes


game, agent = AppleGame(), Agent()
rewards = deque(maxlen=100)
for episode in range(1, CONFIG["episodes"] + 1):
    state, done = game.reset(), False
    while not done:
        action = agent.act(state, agent.epsilon())
        following, reward, done = game.step(action)
        agent.remember(state, action, reward, following, done)
        state = following
        if agent.seen % CONFIG["learn_every"] == 0:
            agent.learn()
    rewards.append(reward)
    if episode % 100 == 0:
        print(
            f"Episode {episode}\tAverage Score: {np.mean(rewards):.2f}"
            f"\tEpsilon: {agent.epsilon():.2f}\tMemory: {len(agent.memory)}"
        )
print(f"apples caught without exploring: {caught(agent, game):.2f}")
