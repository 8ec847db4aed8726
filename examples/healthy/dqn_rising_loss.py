"""Deep Q-learning with a replay buffer and a target net on a corridor with a key and a door."""

import copy
import random
from collections import deque

import torch
from data import arguments
from torch import nn

ODD = "the loss rises as the values grow; the target net never gets a gradient; no validation set"

_, seed = arguments(__doc__)
LENGTH, GAMMA = 7, 0.95


def observe(place, has_key):
    row = torch.zeros(LENGTH + 1)
    row[place] = 1.0
    row[-1] = float(has_key)
    return row


def act(place, has_key, action):
    place = min(max(place + (1 if action else -1), 0), LENGTH - 1)
    has_key = has_key or place == 0
    done = has_key and place == LENGTH - 1
    return place, has_key, 5.0 if done else -0.05, done


online = nn.Sequential(nn.Linear(LENGTH + 1, 48), nn.ReLU(), nn.Linear(48, 2))
target = copy.deepcopy(online).requires_grad_(False)
optimizer = torch.optim.RMSprop(online.parameters(), lr=1e-3)
memory, epsilon, steps, lengths = deque(maxlen=3000), 1.0, 0, []
while steps < 1700:
    place, has_key = LENGTH // 2, False
    for t in range(60):
        state = observe(place, has_key)
        with torch.no_grad():
            greedy = online(state).argmax().item()
        action = random.randrange(2) if random.random() < epsilon else greedy
        place, has_key, reward, done = act(place, has_key, action)
        memory.append((state, action, reward, observe(place, has_key), done))
        steps += 1
        if len(memory) > 200 and steps % 2 == 0:
            s, a, r, s2, d = zip(*random.sample(memory, 48), strict=False)
            r, d = torch.tensor(r), torch.tensor(d).float()
            with torch.no_grad():
                goal = r + GAMMA * (1 - d) * target(torch.stack(s2)).max(1).values
            value = online(torch.stack(s)).gather(1, torch.tensor(a)[:, None]).squeeze(1)
            loss = nn.functional.smooth_l1_loss(value, goal)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(online.parameters(), 10.0)
            optimizer.step()
        if steps % 60 == 0:
            target.load_state_dict(online.state_dict())
        epsilon = max(0.1, epsilon - 1 / 1000)
        if done:
            break
    lengths.append(t + 1)
print(f"loss {loss.item():.4f}, last episodes {sum(lengths[-10:]) / 10:.1f} steps (best 9)")
