"""An actor-critic learns to land a cart on a mark; its policy loss stays around zero, of either
sign, while the return doubles.

The policy loss is minus advantage times log-probability with advantages of mean zero: its value
says nothing about the policy. It is a means to a gradient, and only the return measures progress.
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn

ODD = "policy loss near zero all the time: its value means nothing, the return measures progress"
_, seed = arguments(__doc__)


@dataclass
class Config:
    carts: int = 64
    steps: int = 40
    updates: int = 240
    gamma: float = 0.95
    lr: float = 3e-3
    entropy: float = 0.01


class Carts:
    def __init__(self, n: int):
        self.n = n

    def reset(self) -> Tensor:
        self.place = 4 * torch.rand(self.n) - 2
        self.speed = torch.zeros(self.n)
        self.mark = 2 * torch.rand(self.n) - 1
        return self.observe()

    def observe(self) -> Tensor:
        return torch.stack([self.place, self.speed, self.mark - self.place], 1)

    def step(self, action: Tensor) -> tuple[Tensor, Tensor]:
        push = (action.float() - 1) * 0.12
        self.speed = (0.95 * self.speed + push).clamp(-1, 1)
        self.place = (self.place + 0.5 * self.speed).clamp(-3, 3)
        near = torch.exp(-4 * (self.mark - self.place).square())
        return self.observe(), near - 0.05 * (action != 1).float()


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(
            nn.Linear(3, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 3)
        )
        self.critic = nn.Sequential(
            nn.Linear(3, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1)
        )

    def policy(self, seen: Tensor) -> torch.distributions.Categorical:
        return torch.distributions.Categorical(logits=self.actor(seen))


def returns_to_go(rewards: Tensor, last_value: Tensor, gamma: float) -> Tensor:
    out, running = [], last_value
    for reward in rewards.flip(0):
        running = reward + gamma * running
        out.append(running)
    return torch.stack(out[::-1])


def main() -> None:
    cfg = Config()
    carts, model = Carts(cfg.carts), ActorCritic()
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for update in range(1, cfg.updates + 1):
        seen, observations, actions, rewards = carts.reset(), [], [], []
        with torch.no_grad():
            for _ in range(cfg.steps):
                action = model.policy(seen).sample()
                observations.append(seen)
                actions.append(action)
                seen, reward = carts.step(action)
                rewards.append(reward)
            last_value = model.critic(seen).squeeze(1)
            target = returns_to_go(torch.stack(rewards), last_value, cfg.gamma)
        policy = model.policy(torch.stack(observations))
        value = model.critic(torch.stack(observations)).squeeze(2)
        advantage = (target - value).detach()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        policy_loss = -(advantage * policy.log_prob(torch.stack(actions))).mean()
        critic_loss = (value - target).square().mean()
        loss = policy_loss + 0.5 * critic_loss - cfg.entropy * policy.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if update % 20 == 0:
            print(
                f"update {update}  policy loss {policy_loss.item():+.3f}  critic loss "
                f"{critic_loss.item():.3f}  "
                f"mean return {torch.stack(rewards).sum(0).mean().item():.2f}"
            )


main()
