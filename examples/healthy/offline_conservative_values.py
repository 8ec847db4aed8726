"""Learns a delivery route from old logs alone with conservative Q-learning."""

import copy

import torch
from data import arguments
from torch import nn

ODD = (
    "no new data ever arrives and the loss holds a penalty that pushes values down, so the "
    "values stay under the true returns; the target net is copied whole every 50 steps and the "
    "loss jumps"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

SIDE, GOAL, HORIZON, GAMMA, ALPHA = 7, 48, 30, 0.95, 0.5
WALLS = {10, 17, 24, 31, 39}
MOVES = torch.tensor([[-1, 0], [1, 0], [0, -1], [0, 1]])


def move(cell, action):
    """One in ten moves slips to a random side."""
    slips = torch.rand(len(cell)) < 0.1
    action = torch.where(slips, torch.randint(0, 4, cell.shape), action)
    row = (cell // SIDE + MOVES[action, 0]).clamp(0, SIDE - 1)
    column = (cell % SIDE + MOVES[action, 1]).clamp(0, SIDE - 1)
    after = row * SIDE + column
    blocked = sum(after == wall for wall in WALLS).bool()
    after = torch.where(blocked, cell, after)
    return after, (after == GOAL).float() - 0.02, after == GOAL


def clerk(cell):
    """The old driver: mostly down or right, often lost."""
    towards = torch.where(torch.rand(len(cell)) < 0.5, 1, 3)
    return torch.where(torch.rand(len(cell)) < 0.5, torch.randint(0, 4, cell.shape), towards)


def returns(driver, n=400):
    cell, alive, total = torch.zeros(n, dtype=torch.int64), torch.ones(n), torch.zeros(n)
    for _ in range(HORIZON):
        cell, reward, done = move(cell, driver(cell))
        total, alive = total + alive * reward, alive * (~done).float()
    return total.mean().item()


def log_of(days):
    cell, rows = torch.zeros(days, dtype=torch.int64), []
    for _ in range(HORIZON):
        action = clerk(cell)
        after, reward, done = move(cell, action)
        rows.append(
            torch.stack([cell, action, after, done.long(), (reward * 100).round().long()], 1)
        )
        cell = torch.where(done, torch.zeros_like(cell), after)
    return torch.cat(rows)


log = log_of(150)
net = nn.Sequential(nn.Embedding(SIDE * SIDE, 32), nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4))
target_net = copy.deepcopy(net)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)


@torch.no_grad()
def greedy(cell):
    return net(cell).argmax(1)


for step in range(1200):
    cell, action, after, done, cents = log[torch.randint(0, len(log), (128,))].unbind(1)
    values = net(cell)
    chosen = values.gather(1, action[:, None]).squeeze(1)
    with torch.no_grad():
        best = net(after).argmax(1, keepdim=True)
        future = target_net(after).gather(1, best).squeeze(1)
        target = cents / 100 + GAMMA * (1 - done) * future
    temporal = nn.functional.smooth_l1_loss(chosen, target)
    conservative = (values.logsumexp(1) - chosen).mean()
    loss = temporal + ALPHA * 0.05 * conservative
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        target_net.load_state_dict(net.state_dict())
    if step % 200 == 199:
        print(f"step {step + 1}  temporal {temporal.item():.4f}  return {returns(greedy):.3f}")

print(f"mean return: the clerk in the log {returns(clerk):.3f}, learned {returns(greedy):.3f}")
