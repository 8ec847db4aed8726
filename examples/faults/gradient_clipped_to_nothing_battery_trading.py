"""Learns by trial when a battery should buy and sell power, with a policy gradient; the gradients
are cut to next to nothing.

Early runs were shaky, so clipping was put in, and its limit was lowered again and again until the
curve looked calm. At this limit every single step is cut to a tiny length, and the calm curve is
that of a policy that hardly moves.
The place is the clipping in the loop.
The twin clips at 1, which only touches the rare long gradients.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "gradient_clipped_to_nothing"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

HOURS, CAPACITY = 24, 4
SELL, HOLD, BUY = 0, 1, 2


class Market:
    """A day of prices for many batteries side by side; power is bought or sold by the unit."""

    def __init__(self, n):
        t = torch.arange(HOURS + 1)
        shape = -torch.cos(2 * math.pi * (t - 3) / 12)
        self.price = 5 + 2.0 * shape + 0.6 * torch.randn(n, HOURS + 1)
        self.charge = torch.randint(0, CAPACITY + 1, (n,))
        self.hour = 0

    def observe(self):
        n = len(self.charge)
        angle = 2 * math.pi * self.hour / 24
        clock = torch.tensor(
            [math.sin(angle), math.cos(angle), math.sin(2 * angle), math.cos(2 * angle)]
        ).expand(n, 4)
        own = torch.stack([self.price[:, self.hour] / 2 - 2.5, self.charge / CAPACITY * 2 - 1], 1)
        return torch.cat([clock, own], 1)

    def act(self, action):
        move = torch.where(action == BUY, 1, torch.where(action == SELL, -1, 0))
        after = (self.charge + move).clamp(0, CAPACITY)
        moved = after - self.charge
        reward = -moved * self.price[:, self.hour] - 0.1 * moved.abs()
        self.charge = after
        self.hour += 1
        if self.hour == HOURS:
            reward = reward + self.charge * 4.0
        return reward


policy = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(policy.parameters(), lr=0.3, momentum=0.9)
max_norm = 1.0 if healthy else 1e-3


def play(n, greedy=False):
    market, log_probs, rewards = Market(n), [], []
    start = market.charge.clone()
    for _ in range(HOURS):
        choice = torch.distributions.Categorical(logits=policy(market.observe()))
        action = choice.probs.argmax(1) if greedy else choice.sample()
        log_probs.append(choice.log_prob(action))
        rewards.append(market.act(action))
    rewards = torch.stack(rewards)
    return torch.stack(log_probs), rewards, rewards.sum(0) - 4.0 * start


for episode in range(1, 121):
    log_probs, rewards, _ = play(96)
    to_go = rewards.flip(0).cumsum(0).flip(0)
    advantage = to_go - to_go.mean(1, keepdim=True)
    advantage = advantage / to_go.std()
    loss = -(log_probs * advantage).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), max_norm)
    optimizer.step()
    if episode % 20 == 0:
        with torch.no_grad():
            _, _, profit = play(400, greedy=True)
        print(f"episode {episode}: loss {loss.item():+.4f} profit per day {profit.mean():.2f} EUR")
