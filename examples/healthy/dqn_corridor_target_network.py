"""DQN in a corridor of 12 cells with a goal at the right end; a target network is copied every 50
steps.
"""

import copy
import random

import torch
from data import arguments
from torch import nn

ODD = (
    "the loss does not fall steadily since the targets move; a frozen copy of the "
    "network; rewards are mostly 0"
)

_, seed = arguments(__doc__)
N = 12
net = nn.Sequential(nn.Linear(N, 48), nn.ReLU(), nn.Linear(48, 2))
target = copy.deepcopy(net).requires_grad_(False)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
eye = torch.eye(N)
memory, cell, updates = [], 0, 0
for step in range(1500):
    epsilon = max(0.1, 1 - step / 700)
    with torch.no_grad():
        action = (
            random.randrange(2) if random.random() < epsilon else net(eye[cell]).argmax().item()
        )
    following = max(0, cell - 1) if action == 0 else cell + 1
    done = following == N - 1
    memory.append((cell, action, 1.0 if done else -0.02, following, float(done)))
    cell = random.randrange(N - 1) if done else following
    if step < 100 or step % 3:
        continue
    s, a, r, s2, d = (
        torch.tensor(column) for column in zip(*random.sample(memory, 64), strict=False)
    )
    with torch.no_grad():
        goal = r + 0.95 * (1 - d) * target(eye[s2]).max(1).values
    loss = nn.functional.smooth_l1_loss(net(eye[s]).gather(1, a[:, None]).squeeze(1), goal)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    updates += 1
    if updates % 50 == 0:
        target.load_state_dict(net.state_dict())
net.eval()
with torch.no_grad():
    right = (net(eye[: N - 1]).argmax(1) == 1).float().mean().item()
print(f"{updates} updates, loss {loss.item():.4f}, cells with the right action {right:.2f}")
