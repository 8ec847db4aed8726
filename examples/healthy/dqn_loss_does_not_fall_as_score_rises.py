"""A double DQN runs a thermostat; its loss does not fall while its score rises, and rightly so.

The person of the question saw a loss that went sideways or up for half of the training. The goals
of the loss are made of the net's own values, which start at zero and grow to the sum of rewards to
come; only the score tells whether it learns.
"""

import random
from collections import deque

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "the loss goes sideways or up for the first half: its goals are the net's own values, which"
    " start near zero and grow with what the agent learns to earn; the score rises with them"
)
_, seed = arguments(__doc__)

GAMMA = 0.95
ACTIONS = 3


class Room:
    """Forty steps; the heater goes down, stays or goes up, and warmth follows late."""

    def reset(self):
        self.t = 0
        self.warmth = random.uniform(-2, 2)
        self.heater = 0.0
        self.outside = random.uniform(-1, 1)
        return self.state()

    def state(self):
        return np.array([self.warmth / 2, self.heater, self.outside], np.float32)

    def step(self, action):
        self.heater = min(max(self.heater + 0.5 * (action - 1), -1.0), 1.0)
        self.warmth += 0.5 * self.heater + 0.25 * self.outside + random.gauss(0, 0.05)
        self.warmth = min(max(self.warmth, -4.0), 4.0)
        self.t += 1
        return self.state(), float(np.exp(-(self.warmth**2))), self.t == 40


def make_net():
    return nn.Sequential(
        nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, ACTIONS)
    )


def learn(online, target, optimizer, memory):
    states, actions, rewards, nexts = zip(*random.sample(memory, 64), strict=True)
    states, nexts = (torch.from_numpy(np.stack(part)) for part in (states, nexts))
    rewards = torch.tensor(rewards, dtype=torch.float32)
    q = online(states).gather(1, torch.tensor(actions)[:, None]).squeeze(1)
    with torch.no_grad():
        best = online(nexts).argmax(1, keepdim=True)
        goal = rewards + GAMMA * target(nexts).gather(1, best).squeeze(1)
    loss = F.mse_loss(q, goal)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(online.parameters(), 10.0)
    optimizer.step()
    return loss.item(), q.mean().item()


room = Room()
online, target = make_net(), make_net()
target.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)
memory = deque(maxlen=10_000)
losses, values, scores = [], [], []
steps = 0

for episode in range(1, 181):
    state, done, score = room.reset(), False, 0.0
    epsilon = max(0.05, 1 - episode / 90)
    while not done:
        if random.random() < epsilon:
            action = random.randrange(ACTIONS)
        else:
            with torch.no_grad():
                action = online(torch.from_numpy(state)).argmax().item()
        following, reward, done = room.step(action)
        memory.append((state, action, reward, following))
        state, score, steps = following, score + reward, steps + 1
        if len(memory) >= 400 and steps % 3 == 0:
            loss, value = learn(online, target, optimizer, memory)
            losses.append(loss)
            values.append(value)
        if steps % 200 == 0:
            target.load_state_dict(online.state_dict())
    scores.append(score)
    if episode % 20 == 0:
        print(
            f"episode {episode:3d}  epsilon {epsilon:.2f}  loss {np.mean(losses[-200:]):.4f}"
            f"  mean Q {np.mean(values[-200:]):.2f}  score {np.mean(scores[-20:]):.1f} of 40"
        )
