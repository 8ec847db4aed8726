"""A DQN brings a courier past a canal; the Q-network ends in a ReLU, so it knows no negative value.

Every street costs one point and the canal ten, so most action values are below zero; after the
ReLU they are all 0, the greedy action is arbitrary and the courier does not arrive.
The place is the last layer of the Q-network (fc3 and the ReLU behind it).
"""

import random
from collections import deque

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "output_activation_range"
ACCEPT = ("dead_relu",)
PLACE = ("fc3", "model", "loss")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

ROWS, COLUMNS = 4, 6
MOVES, GAMMA, BATCH_SIZE = [(-1, 0), (0, 1), (1, 0), (0, -1)], 0.95, 64


class Town:
    def reset(self):
        self.row, self.column = ROWS - 1, 0
        return self.state()

    def state(self):
        place = torch.tensor(self.row * COLUMNS + self.column)
        return F.one_hot(place, ROWS * COLUMNS).float()

    def step(self, action):
        down, right = MOVES[action]
        self.row = min(max(self.row + down, 0), ROWS - 1)
        self.column = min(max(self.column + right, 0), COLUMNS - 1)
        if self.row == ROWS - 1 and 0 < self.column < COLUMNS - 1:
            return self.reset(), -10.0, False
        return self.state(), -1.0, (self.row, self.column) == (ROWS - 1, COLUMNS - 1)


class DQN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(ROWS * COLUMNS, 64), nn.Linear(64, 64)
        self.fc3 = nn.Linear(64, len(MOVES))

    def forward(self, x):
        x = F.relu(self.fc2(F.relu(self.fc1(x))))
        return self.fc3(x) if healthy else F.relu(self.fc3(x))


def learn(memory, policy, target, optimizer):
    state, action, reward, after, done = zip(*random.sample(memory, BATCH_SIZE), strict=True)
    q = policy(torch.stack(state)).gather(1, torch.tensor(action).unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        best = target(torch.stack(after)).max(1).values
    expected = torch.tensor(reward) + GAMMA * best * (1 - torch.tensor(done).float())
    loss = F.smooth_l1_loss(q, expected)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def play(town, policy, epsilon, limit=60):
    state = town.reset()
    for _ in range(limit):
        action = random.randrange(len(MOVES))
        if random.random() >= epsilon:
            action = policy(state).argmax().item()
        after, reward, done = town.step(action)
        yield state, action, reward, after, done
        if done:
            return
        state = after


town, policy, target = Town(), DQN(), DQN()
target.load_state_dict(policy.state_dict())
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
memory, losses, steps = deque(maxlen=5000), [0.0], 0
for episode in range(120):
    for transition in play(town, policy, max(0.05, 1 - episode / 60)):
        memory.append(transition)
        steps += 1
        if len(memory) > 300 and steps % 2 == 0:
            losses.append(learn(memory, policy, target, optimizer))
        if steps % 100 == 0:
            target.load_state_dict(policy.state_dict())
    if (episode + 1) % 20 == 0:
        rewards = [step[2] for step in play(town, policy, 0.0)]
        print(
            f"episode {episode + 1} loss {sum(losses[-100:]) / len(losses[-100:]):.3f} "
            f"greedy return {sum(rewards):.0f} in {len(rewards)} moves"
        )
