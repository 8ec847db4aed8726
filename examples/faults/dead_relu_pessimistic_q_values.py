"""A DQN for a grid world sets the bias of all its Linear layers to -1, to start with low Q-values.

The states are one-hot, so each hidden unit starts below zero and its ReLU never opens; the net has
the same values for every cell and the agent goes nowhere. The twin does so at the output alone.
The place is the biases of the hidden layers net.0 and net.2.
"""

import random
from collections import deque

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = ("net.0", "net.1", "net.2", "net.3", "net.0.*", "net.2.*", "net")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SIZE, GOAL, PITS = 5, 24, {6, 8, 16, 18}
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))
GAMMA, BATCH = 0.9, 64


def step(state, action):
    row, column, (down, right) = *divmod(state, SIZE), MOVES[action]
    row, column = min(max(row + down, 0), SIZE - 1), min(max(column + right, 0), SIZE - 1)
    state = row * SIZE + column
    reward = 1.0 if state == GOAL else -1.0 if state in PITS else -0.04
    return state, reward, state == GOAL or state in PITS


class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(SIZE * SIZE, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4)
        )
        for layer in [self.net[4]] if healthy else [self.net[0], self.net[2], self.net[4]]:
            nn.init.constant_(layer.bias, -1.0)

    def forward(self, states):
        return self.net(F.one_hot(states, SIZE * SIZE).float())


class Agent:
    def __init__(self):
        self.q, self.target = QNet(), QNet()
        self.target.load_state_dict(self.q.state_dict())
        self.memory = deque(maxlen=5000)
        self.optimizer = torch.optim.Adam(self.q.parameters(), lr=1e-3)
        self.updates = 0

    @torch.no_grad()
    def act(self, state, epsilon):
        explores = random.random() < epsilon
        return random.randrange(4) if explores else self.q(torch.tensor([state])).argmax().item()

    def learn(self):
        rows = random.sample(self.memory, BATCH)
        states, actions, rewards, following, ends = map(torch.tensor, zip(*rows, strict=True))
        with torch.no_grad():
            aim = rewards + GAMMA * self.target(following).amax(1) * (~ends)
        value = self.q(states).gather(1, actions[:, None]).squeeze(1)
        self.optimizer.zero_grad()
        loss = F.smooth_l1_loss(value, aim)
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        if self.updates % 50 == 0:
            self.target.load_state_dict(self.q.state_dict())
        return loss.item()


def play(agent, epsilon, learning):
    state, total, losses = 0, 0.0, []
    for _ in range(30):
        action = agent.act(state, epsilon)
        following, reward, end = step(state, action)
        total += reward
        if learning:
            agent.memory.append((state, action, reward, following, end))
            if len(agent.memory) >= 200:
                losses.append(agent.learn())
        state = following
        if end:
            break
    return total, losses


agent = Agent()
for episode in range(1, 251):
    _, losses = play(agent, max(0.1, 1 - episode / 150), learning=True)
    if episode % 50 == 0:
        score, _ = play(agent, 0.0, learning=False)
        print(f"episode {episode}: loss {losses[-1]:.4f}, greedy return {score:.2f}")
