"""A DQN with prioritised replay on a catching game; the temporal difference is (batch, 1) minus
(batch,).

`q.gather(1, a)` keeps its column, the target has none, so `target - q` is a batch-by-batch table:
every Q value is drawn to all targets of the batch, that is, to their mean. Written out by hand
with importance weights, no loss function warns. The place is the loss (`learn`).
"""

import random
from collections import deque

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss", "loop")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

ROWS, COLS, GAMMA = 9, 7, 0.97


class Catch:
    """A ball falls, drifts and may bounce off the walls; the paddle at the bottom must be below it."""  # noqa: E501

    def reset(self):
        self.ball, self.drift = [0, random.randrange(COLS)], random.choice((-1, 0, 1))
        self.paddle = random.randrange(COLS)
        return self.observe()

    def observe(self):
        return np.array(
            [
                2 * self.ball[0] / ROWS - 1,
                self.ball[1] / 3 - 1,
                self.paddle / 3 - 1,
                (self.ball[1] - self.paddle) / 3,
                self.drift,
            ],
            dtype=np.float32,
        )

    def step(self, action):
        self.paddle = min(max(self.paddle + action - 1, 0), COLS - 1)
        if random.random() < 0.05:
            self.drift = random.choice((-1, 0, 1))
        column = self.ball[1] + self.drift
        if not 0 <= column < COLS:
            self.drift = -self.drift
            column = self.ball[1] + self.drift
        self.ball = [self.ball[0] + 1, column]
        done = self.ball[0] == ROWS - 1
        reward = -0.02 * (action != 1)
        if done:
            reward += 1.0 if column == self.paddle else -1.0
        return self.observe(), reward, done


class QNet(nn.Module):
    """Dueling heads."""

    def __init__(self, hidden=64):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(5, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.value, self.advantage = nn.Linear(hidden, 1), nn.Linear(hidden, 3)

    def forward(self, s):
        h = self.trunk(s)
        a = self.advantage(h)
        return self.value(h) + a - a.mean(1, keepdim=True)


class Replay:
    def __init__(self, size=6000, alpha=0.5):
        self.items, self.priority, self.alpha = deque(maxlen=size), deque(maxlen=size), alpha

    def add(self, item):
        self.items.append(item)
        self.priority.append(1.0)

    def sample(self, n, beta):
        p = np.array(self.priority) ** self.alpha
        p /= p.sum()
        rows = np.random.choice(len(p), n, p=p)
        weight = (len(p) * p[rows]) ** -beta
        s, a, r, s2, d = zip(*(self.items[i] for i in rows), strict=True)
        return (
            rows, torch.tensor(weight / weight.max(), dtype=torch.float32), torch.tensor(np.stack(s)), torch.tensor(a),  # noqa: E501
            torch.tensor(r, dtype=torch.float32), torch.tensor(np.stack(s2)), torch.tensor(d, dtype=torch.float32),  # noqa: E501
        )  # fmt: skip


def learn(net, target_net, optimizer, replay, beta):
    rows, weight, s, a, r, s2, d = replay.sample(64, beta)
    with torch.no_grad():
        best = net(s2).argmax(1, keepdim=True)
        target = r + GAMMA * (1 - d) * target_net(s2).gather(1, best).squeeze(1)
    q = net(s).gather(1, a.unsqueeze(1))
    if healthy:
        q = q.squeeze(1)
    td = target - q
    loss = (weight * td.pow(2)).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 10.0)
    optimizer.step()
    for i, error in zip(rows, td.detach().abs().view(len(rows), -1).mean(1).tolist(), strict=True):
        replay.priority[i] = error + 0.05
    return loss.item()


@torch.no_grad()
def evaluate(net, games=200):
    state, env, total = random.getstate(), Catch(), 0.0
    random.seed(4321)
    for _ in range(games):
        s, done = env.reset(), False
        while not done:
            s, r, done = env.step(net(torch.tensor(s).unsqueeze(0)).argmax().item())
            total += r
    random.setstate(state)
    return total / games


net, target_net = QNet(), QNet()
target_net.load_state_dict(net.state_dict())
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
env, replay, losses = Catch(), Replay(), deque(maxlen=200)
s, steps = env.reset(), 8000
for t in range(steps):
    epsilon = max(0.05, 1 - t / 2500)
    if random.random() < epsilon:
        a = random.randrange(3)
    else:
        with torch.no_grad():
            a = net(torch.tensor(s).unsqueeze(0)).argmax().item()
    s2, r, done = env.step(a)
    replay.add((s, a, r, s2, float(done)))
    s = env.reset() if done else s2
    if t >= 500 and t % 2 == 0:
        losses.append(learn(net, target_net, optimizer, replay, beta=0.4 + 0.6 * t / steps))
    if t % 200 == 0:
        target_net.load_state_dict(net.state_dict())
    if (t + 1) % 2000 == 0:
        print(
            f"step {t + 1}: epsilon {epsilon:.2f}, TD loss {np.mean(losses):.4f}, return of the greedy policy {evaluate(net):.3f}"  # noqa: E501
        )
