"""A DQN learns to steer a boat home against currents; its loss rises, and so do the returns.

It looks odd because the loss grows during training, jumps whenever the target network is renewed,
and a whole copy of the network never gets a gradient. The values grow from 0 to the true returns,
and the errors with them; what counts is the share of boats that come home.
"""

import copy
import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = "a loss that grows with the returns and jumps; a target network without gradients"
_, seed = arguments(__doc__)
MOVES = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0], [0, 0]]).float()


class Sea:
    """Many boats at once in a square of side 2; home is the middle, the current turns around it."""

    def __init__(self, n, g):
        self.n, self.g = n, g
        self.place, self.age = self.fresh(n), torch.zeros(n)

    def fresh(self, n):
        return 2 * torch.rand(n, 2, generator=self.g) - 1

    def step(self, move):
        current = 0.05 * torch.stack([-self.place[:, 1], self.place[:, 0]], 1)
        after = (
            self.place
            + 0.12 * MOVES[move]
            + current
            + 0.02 * torch.randn(self.n, 2, generator=self.g)
        )
        after = after.clamp(-1.2, 1.2)
        home = after.norm(dim=1) < 0.2
        reward = home.float() - 0.02
        self.age += 1
        done = home | (self.age >= 40)
        kept = after.clone()
        self.place = torch.where(done[:, None], self.fresh(self.n), after)
        self.age = torch.where(done, torch.zeros(self.n), self.age)
        return kept, reward, home, done


def network():
    return nn.Sequential(
        nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, len(MOVES))
    )


class Agent:
    def __init__(self):
        self.online = network()
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=5e-4)

    @torch.no_grad()
    def move(self, place, curiosity, g):
        best = self.online(place).argmax(1)
        chance = torch.randint(0, len(MOVES), best.shape, generator=g)
        return torch.where(torch.rand(best.shape, generator=g) < curiosity, chance, best)

    def learn(self, place, move, reward, after, home):
        with torch.no_grad():
            best = self.online(after).argmax(1, keepdim=True)
            wanted = reward + 0.97 * (~home).float() * self.target(after).gather(1, best).squeeze(1)
        value = self.online(place).gather(1, move.unsqueeze(1)).squeeze(1)
        loss = F.smooth_l1_loss(value, wanted)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.online.parameters(), 10.0)
        self.optimizer.step()
        return loss.item()


def evaluate(agent, g):
    sea = Sea(200, g)
    came = torch.zeros(200, dtype=torch.bool)
    over = torch.zeros(200, dtype=torch.bool)
    for _ in range(40):
        _, _, home, done = sea.step(agent.move(sea.place, 0.0, g))
        came |= home & ~over
        over |= done
    return came.float().mean().item()


g = torch.Generator().manual_seed(seed)
agent, sea, memory, losses = Agent(), Sea(16, g), [], []
for step in range(1, 1201):
    place = sea.place
    move = agent.move(place, max(0.1, 1 - step / 800), g)
    after, reward, home, _ = sea.step(move)
    memory.extend(zip(place, move, reward, after, home, strict=True))
    memory = memory[-20000:]
    if step > 50:
        batch = zip(*random.sample(memory, 64), strict=True)
        losses.append(agent.learn(*(torch.stack(part) for part in batch)))
    if step % 100 == 0:
        agent.target.load_state_dict(agent.online.state_dict())
    if step % 100 == 0:
        print(
            f"step {step} loss {sum(losses[-100:]) / 100:.5f} "
            f"boats that come home {evaluate(agent, g):.3f}"
        )
