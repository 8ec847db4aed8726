"""A policy for a cart that is to stop at a mark, by REINFORCE with a learnt baseline and an
entropy bonus.

Looks odd: the loss goes up and down around zero and is negative at times, the data changes with
the policy, no two batches are alike, and there is no validation set. It is sound, since the loss
of a policy gradient measures nothing; the return of the greedy policy rises from about -150 to
about -6.
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import nn
from torch.distributions import Categorical

ODD = (
    "A policy for a cart that is to stop at a mark, by REINFORCE with a learnt baseline and "
    "an entropy bonus"
)

_, seed = arguments(__doc__)


@dataclass
class Args:
    envs: int = 96
    horizon: int = 30
    updates: int = 160
    gamma: float = 0.95
    lr: float = 4e-3
    entropy: float = 0.01


class Carts:
    """Many carts at once: three pushes, friction, a gust now and then; the cost is the distance to the mark."""  # noqa: E501

    def __init__(self, n):
        self.n = n

    def reset(self):
        self.x, self.v = torch.rand(self.n) * 4 - 2, 0.5 * torch.randn(self.n)
        return self.observe()

    def observe(self):
        return torch.stack([self.x, self.v], 1)

    def step(self, action):
        push = action.float() - 1
        gust = 0.05 * torch.randn(self.n)
        self.v = 0.9 * self.v + 0.3 * push + gust
        self.x = self.x + 0.3 * self.v
        reward = -(self.x.abs() + 0.1 * self.v.abs() + 0.02 * push.abs())
        return self.observe(), reward


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 3))
        self.critic = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, obs):
        return Categorical(logits=self.actor(obs)), self.critic(obs).squeeze(-1)


@torch.no_grad()
def evaluate(agent, args):
    env = Carts(256)
    obs, total = env.reset(), 0
    for _ in range(args.horizon):
        obs, reward = env.step(agent.actor(obs).argmax(1))
        total = total + reward
    return total.mean().item()


def main():
    args = Args()
    env, agent = Carts(args.envs), ActorCritic()
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.lr)
    print(f"before: {evaluate(agent, args):.2f}")
    for update in range(1, args.updates + 1):
        for group in optimizer.param_groups:
            group["lr"] = args.lr * (1 - 0.9 * update / args.updates)
        obs = env.reset()
        seen, acts, rewards = [], [], []
        with torch.no_grad():
            for _ in range(args.horizon):
                action = agent(obs)[0].sample()
                seen.append(obs)
                acts.append(action)
                obs, reward = env.step(action)
                rewards.append(reward)
            future, returns = agent(obs)[1] * 3, []
            for reward in reversed(rewards):
                future = reward + args.gamma * future
                returns.insert(0, future)
        returns = torch.stack(returns) / 3
        policy, value = agent(torch.stack(seen))
        adv = returns - value.detach()
        adv = (adv - adv.mean()) / (adv.std() + 1e-6)
        pg = -(policy.log_prob(torch.stack(acts)) * adv).mean()
        loss = pg + 0.5 * (value - returns).square().mean() - args.entropy * policy.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 1.0)
        optimizer.step()
        if update % 20 == 0:
            print(
                f"update {update}: loss {loss.item():+.3f} return {sum(rewards).mean().item():.2f} greedy {evaluate(agent, args):.2f}"  # noqa: E501
            )


main()
