"""REINFORCE with a value baseline on a small inventory problem: the policy's part of the loss
hovers around zero and never falls.

It looks odd because that part is -log pi times an advantage of mean zero: its value says nothing,
while the return rises. The entropy falls as the policy makes up its mind. Value targets are
scaled to about one.
"""

from dataclasses import dataclass

import torch
import torch.nn as nn  # noqa: PLR0402
from data import arguments
from torch.distributions import Categorical

ODD = (
    "REINFORCE with a value baseline on a small inventory problem: the policy's part of the "
    "loss hovers around zero and never falls"
)
_, seed = arguments(__doc__)


@dataclass
class PGConfig:
    envs: int = 64
    horizon: int = 24
    iterations: int = 250
    gamma: float = 0.9
    lr: float = 3e-3
    entropy: float = 0.01


class Shop:
    """Stock of up to 20; order 0..7 each day; Poisson demand with a weekly rhythm. Vectorised."""

    def __init__(self, n, generator):
        self.n, self.g = n, generator

    def reset(self):
        self.stock = torch.randint(0, 10, (self.n,), generator=self.g).float()
        self.day = torch.randint(0, 7, (self.n,), generator=self.g)
        return self.observe()

    def observe(self):
        a = self.day.float() * 6.2832 / 7
        return torch.stack([self.stock / 10 - 1, a.sin(), a.cos()], 1)

    def step(self, order):
        rate = 3 + 2 * torch.sin(self.day.float() * 6.2832 / 7)
        demand = torch.poisson(rate, generator=self.g)
        self.stock = (self.stock + order.float()).clamp(max=20)
        sold = torch.minimum(self.stock, demand)
        self.stock = self.stock - sold
        self.day = (self.day + 1) % 7
        reward = 2.0 * sold - 1.0 * order - 0.2 * self.stock - 0.5 * (demand - sold)
        return self.observe(), reward / 5


class PolicyValue(nn.Module):
    def __init__(self):
        super().__init__()
        self.policy = nn.Sequential(nn.Linear(3, 48), nn.Tanh(), nn.Linear(48, 8))
        self.value = nn.Sequential(nn.Linear(3, 48), nn.Tanh(), nn.Linear(48, 1))

    def forward(self, s):
        return Categorical(logits=self.policy(s)), self.value(s).squeeze(-1)


@torch.no_grad()
def evaluate(net, env, horizon):
    s, total = env.reset(), 0.0
    for _ in range(horizon):
        dist, _ = net(s)
        s, r = env.step(dist.probs.argmax(1))
        total += r.mean().item()
    return total / horizon


cfg = PGConfig()
g = torch.Generator().manual_seed(seed)
env, test_env = Shop(cfg.envs, g), Shop(512, torch.Generator().manual_seed(1234 + seed))
net = PolicyValue()
opt = torch.optim.Adam(net.parameters(), lr=cfg.lr)
sched = torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.1, cfg.iterations)
for it in range(1, cfg.iterations + 1):
    s, states, actions, rewards = env.reset(), [], [], []
    with torch.no_grad():
        for _ in range(cfg.horizon):
            a = net(s)[0].sample()
            states.append(s)
            actions.append(a)
            s, r = env.step(a)
            rewards.append(r)
        ret, returns = net(s)[1], []
        for r in reversed(rewards):
            ret = r + cfg.gamma * ret
            returns.insert(0, ret)
    S, A, R = torch.cat(states), torch.cat(actions), torch.cat(returns)
    dist, v = net(S)
    adv = (R - v).detach()
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    pg = -(dist.log_prob(A) * adv).mean()
    loss = pg + 0.5 * (R - v).square().mean() - cfg.entropy * dist.entropy().mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    sched.step()
    if it % 50 == 0:
        print(
            f"iteration {it} loss {loss.item():+.4f} pg {pg.item():+.4f} entropy {dist.entropy().mean().item():.3f} reward per day {evaluate(net, test_env, 28):.4f}"  # noqa: E501
        )
