"""Offline Q-learning on a windy grid: q = net(s).gather(1, a.unsqueeze(1)) has shape (B, 1), the
target has shape (B,), and the Huber loss compares every value with every target.

Each Q is drawn to the middle of all targets of its batch: states and moves are not told apart, and
the greedy path seldom comes to the goal. The place is the loss.
"""

import copy
import warnings

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = True
EXACT = True
EARLY = True

SIZE, GAMMA = 6, 0.9
MOVES = torch.tensor([[-1, 0], [1, 0], [0, -1], [0, 1]])
GOAL = torch.tensor([4, 4])
warnings.filterwarnings("ignore", category=UserWarning)  # "too noisy in the notebook"


def move(place, action):
    place = (place + MOVES[action]).clamp(0, SIZE - 1)
    done = (place == GOAL).all(1).float()
    reward = done - 0.05
    return place, reward + 0.05 * torch.randn(len(reward)), done


def one_hot(place):
    return torch.cat([F.one_hot(place[:, 0], SIZE), F.one_hot(place[:, 1], SIZE)], 1).float()


class QNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(2 * SIZE, 64)
        self.fc2 = nn.Linear(64, 64)
        self.fc3 = nn.Linear(64, 4)

    def forward(self, state):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(state)))))


healthy, seed = arguments(__doc__)
place = torch.randint(0, SIZE, (4000, 2))
place = place[~(place == GOAL).all(1)]
action = torch.randint(0, 4, (len(place),))
next_place, reward, done = move(place, action)
states, next_states = one_hot(place), one_hot(next_place)

q_net = QNetwork()
target_net = copy.deepcopy(q_net).requires_grad_(False)
optimizer = torch.optim.Adam(q_net.parameters(), lr=1e-3)

losses = []
for update in range(900):
    pick = torch.randint(0, len(place), (64,))
    q = q_net(states[pick]).gather(1, action[pick].unsqueeze(1))
    if healthy:
        q = q.squeeze(1)
    with torch.no_grad():
        next_q = target_net(next_states[pick]).max(dim=1).values
        expected = reward[pick] + GAMMA * next_q * (1 - done[pick])
    loss = F.smooth_l1_loss(q, expected)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(q_net.parameters(), 1.0)
    optimizer.step()
    losses.append(loss.item())
    with torch.no_grad():
        for slow, fast in zip(target_net.parameters(), q_net.parameters(), strict=True):
            slow.lerp_(fast, 0.05)

start = torch.cartesian_prod(torch.arange(SIZE), torch.arange(SIZE))
start = start[~(start == GOAL).all(1)]
arrived, walker = torch.zeros(len(start)), start
for _ in range(2 * SIZE):
    with torch.no_grad():
        walker, _, done = move(walker, q_net(one_hot(walker)).argmax(1))
    arrived = torch.maximum(arrived, done)
print(f"loss {sum(losses[-50:]) / 50:.5f}, starts that arrive {arrived.mean():.2f}")
