"""Deep Q-learning on a corridor: replay, a target network copied now and then, Huber loss."""

import copy
import random
from collections import deque

import torch
from data import arguments
from torch import nn

ODD = "the loss rises when the target network changes, rows repeat, targets come from a model"

_, seed = arguments(__doc__)
LENGTH = 8


def encode(place):
    row = torch.zeros(LENGTH)
    row[place] = 1.0
    return row


def move(place, action):
    place = max(0, place - 1) if action == 0 else place + 1
    done = place == LENGTH - 1
    return place, 1.0 if done else -0.02, done


q = nn.Sequential(nn.Linear(LENGTH, 32), nn.ReLU(), nn.Linear(32, 2))
target = copy.deepcopy(q)
optimizer = torch.optim.Adam(q.parameters(), lr=2e-3)
memory = deque(maxlen=1000)
place, steps_done = 0, 0
for step in range(600):
    if random.random() < max(0.1, 1 - step / 300):
        action = random.randrange(2)
    else:
        with torch.no_grad():
            action = int(q(encode(place).unsqueeze(0)).argmax())
    following, reward, done = move(place, action)
    memory.append((encode(place), action, reward, encode(following), float(done)))
    place = 0 if done else following
    if len(memory) < 64:
        continue
    now, actions, rewards, after, ends = zip(*random.sample(memory, 32), strict=True)
    with torch.no_grad():
        best = target(torch.stack(after)).max(1).values
        goal = torch.tensor(rewards) + 0.95 * best * (1 - torch.tensor(ends))
    value = q(torch.stack(now)).gather(1, torch.tensor(actions).unsqueeze(1)).squeeze(1)
    loss = nn.functional.smooth_l1_loss(value, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        target.load_state_dict(q.state_dict())
print(f"loss {loss.item():.4f}")
