"""A pricing policy by actor-critic on many simulated shops: Adam's eps is the exploration's
epsilon.

The settings had one `epsilon`, the share of random actions (1.0 at the start), from the days of
Q-learning; `Adam(eps=s.epsilon)` came with a refactoring that passed all settings by name. Against
an eps of 1 the small gradients of a policy vanish and nothing moves. The place is the optimizer.
The twin has 1e-8.
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import nn

KIND = "bad_optimizer_settings"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


@dataclass
class Settings:
    shops: int = 256
    horizon: int = 5
    rate: float = 3e-3
    epsilon: float = 1.0  # share of random actions at the start (Q-learning only)
    adam_eps: float = 1e-8


class Shops:  # stock, season and customers' taste give the demand at one of six prices
    prices = torch.tensor([0.5, 0.8, 1.1, 1.4, 1.7, 2.0])

    def __init__(self, n: int):
        self.n = n

    def reset(self):
        self.stock = torch.rand(self.n) * 2 + 0.5
        self.season = torch.rand(self.n) * 6.283
        self.taste = torch.randn(self.n)
        return self.observe()

    def observe(self):
        return torch.stack([self.stock - 1.5, self.season.sin(), self.season.cos(), self.taste], 1)

    def step(self, action):
        price = self.prices[action]
        worth = 1.2 + 0.4 * self.season.sin() + 0.35 * self.taste
        demand = torch.sigmoid(5 * (worth - price)) * (1 + 0.1 * torch.randn(self.n))
        sold = torch.minimum(demand.clamp(min=0), self.stock)
        self.stock = self.stock - sold + 0.35
        self.season = self.season + 0.5
        return self.observe(), price * sold - 0.1 * self.stock


class ActorCritic(nn.Module):
    def __init__(self, width: int = 48):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.policy, self.value = nn.Linear(width, 6), nn.Linear(width, 1)

    def forward(self, x):
        h = self.body(x)
        return torch.distributions.Categorical(logits=self.policy(h)), self.value(h).squeeze(-1)


@torch.no_grad()
def evaluate(model, n: int = 2000, horizon: int = 20):
    model.eval()
    with torch.random.fork_rng():
        torch.manual_seed(9999)
        env = Shops(n)
        state, total = env.reset(), 0.0
        for _ in range(horizon):
            state, reward = env.step(model(state)[0].probs.argmax(1))
            total += reward.mean().item()
    return total / horizon


s = Settings()
model, env = ActorCritic(), Shops(s.shops)
optimizer = torch.optim.Adam(
    model.parameters(), lr=s.rate, eps=s.adam_eps if healthy else s.epsilon
)
print(f"validation reward before training {evaluate(model):.4f}")
state = env.reset()
for update in range(300):
    model.train()
    logs, values, rewards, entropy = [], [], [], 0.0
    for _ in range(s.horizon):
        policy, value = model(state)
        action = policy.sample()
        state, reward = env.step(action)
        for row, new in ((logs, policy.log_prob(action)), (values, value), (rewards, reward)):
            row.append(new)
        entropy = entropy + policy.entropy().mean() / s.horizon
    future, returns = model(state)[1].detach(), []
    for reward in reversed(rewards):
        future = reward + 0.8 * future
        returns.insert(0, future)
    advantage = torch.stack(returns) - torch.stack(values)
    loss = (
        -(torch.stack(logs) * advantage.detach()).mean()
        + 0.5 * advantage.square().mean()
        - 0.003 * entropy
    )
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if update % 25 == 24:
        state = env.reset()
    if update % 60 == 59:
        print(
            f"update {update + 1}: loss {loss.item():.4f}, validation reward {evaluate(model):.4f}"
        )
print(f"validation reward {evaluate(model):.4f}")
