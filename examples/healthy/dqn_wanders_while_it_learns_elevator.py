"""A DQN that sends a lift to waiting people earns less in training than when it is judged, and its
loss does not fall.

A quarter of the moves in training are drawn at random to explore; when judged it takes the best.
The loss is against targets that grow as the policy gets better. The reward when judged is what
counts, and it rises.
"""

import copy
import random
from collections import deque

import numpy as np
import torch
from data import arguments
from torch import nn

ODD = "training reward below the judged reward, and a loss that does not fall: it explores"
_, seed = arguments(__doc__)

FLOORS, MOVES = 6, 15


class Lift:
    """One point for each person met; a new one then waits on another floor."""

    def reset(self):
        self.at, self.calls, self.time = 0, random.sample(range(1, FLOORS), 1)[0], 0
        return self.view()

    def view(self):
        state = np.zeros(2 * FLOORS, dtype=np.float32)
        state[self.at] = state[FLOORS + self.calls] = 1
        return state

    def step(self, action):
        self.at = min(max(self.at + action - 1, 0), FLOORS - 1)
        reward = -0.05
        if self.at == self.calls:
            reward = 1.0
            self.calls = random.choice([floor for floor in range(FLOORS) if floor != self.at])
        self.time += 1
        return self.view(), reward, self.time == MOVES


class QNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2 * FLOORS, 48), nn.ReLU(), nn.Linear(48, 3))

    def forward(self, state):
        return self.net(state)


def play(lift, q, epsilon, memory=None):
    state, total, done = lift.reset(), 0.0, False
    while not done:
        if random.random() < epsilon:
            action = random.randrange(3)
        else:
            with torch.no_grad():
                action = int(q(torch.from_numpy(state)).argmax())
        following, reward, done = lift.step(action)
        if memory is not None:
            memory.append((state, action, reward, following))
        state, total = following, total + reward
    return total


def learn(q, target, memory, optimizer, gamma=0.8):
    states, actions, rewards, following = zip(*random.sample(memory, 64), strict=True)
    states, following = torch.tensor(np.stack(states)), torch.tensor(np.stack(following))
    actions, rewards = torch.tensor(actions), torch.tensor(rewards)
    with torch.no_grad():
        goal = rewards + gamma * target(following).max(1).values
    value = q(states).gather(1, actions[:, None]).squeeze(1)
    loss = nn.functional.smooth_l1_loss(value, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    lift, q = Lift(), QNetwork()
    target, memory = copy.deepcopy(q), deque(maxlen=4000)
    optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)
    for _ in range(20):
        play(lift, q, 1.0, memory)
    earned, losses = [], []
    for episode in range(1, 241):
        earned.append(play(lift, q, 0.25, memory))
        losses += [learn(q, target, memory, optimizer) for _ in range(4)]
        if episode % 10 == 0:
            target.load_state_dict(q.state_dict())
        if episode % 40 == 0:
            judged = np.mean([play(lift, q, 0.0) for _ in range(20)])
            print(
                f"episode {episode}: loss {np.mean(losses[-160:]):.4f}, "
                f"earned in training {np.mean(earned[-40:]):.2f}, when judged {judged:.2f}"
            )


main()
