"""REINFORCE learns to keep a cart in its lane: the loss hops around zero while the reward
climbs.
"""

import torch
from data import arguments
from torch import nn

ODD = "the loss does not fall, it changes its sign, and the gradient is noisy; the reward rises"

_, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)


class Lane:
    """A batch of carts on a road with wind; pushes are left, none and right."""

    def __init__(self, n):
        self.at = torch.rand(n, generator=g) * 2 - 1
        self.speed = torch.zeros(n)

    def observe(self):
        return torch.stack([self.at, self.speed * 3], 1)

    def step(self, push):
        wind = 0.05 * torch.randn(len(push), generator=g)
        self.speed = 0.9 * self.speed + 0.1 * (push - 1) + wind
        self.at = (self.at + self.speed).clamp(-3, 3)
        return 1.0 - self.at.abs()


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 3))

    def forward(self, observation):
        return torch.distributions.Categorical(logits=self.net(observation))


def rollout(policy, n, length=25, best=False):
    env, log_probs, rewards, entropy = Lane(n), [], [], 0.0
    for _ in range(length):
        says = policy(env.observe())
        push = says.probs.argmax(1) if best else torch.multinomial(says.probs, 1, generator=g)[:, 0]
        log_probs.append(says.log_prob(push))
        entropy = entropy + says.entropy().mean() / length
        rewards.append(env.step(push.float()))
    return torch.stack(log_probs), torch.stack(rewards), entropy


policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for update in range(1, 121):
    log_probs, rewards, entropy = rollout(policy, 32)
    returns = torch.zeros_like(rewards)
    future = torch.zeros(32)
    for t in reversed(range(len(rewards))):
        future = rewards[t] + 0.9 * future
        returns[t] = future
    advantage = returns - returns.mean(1, keepdim=True)
    advantage = advantage / (advantage.std() + 1e-6)
    loss = -(log_probs * advantage.detach()).mean() - 0.01 * entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if update % 30 == 0:
        with torch.no_grad():
            score = rollout(policy, 200, best=True)[1].mean().item()
        print(
            f"update {update}: loss {loss.item():+.4f}, reward {rewards.mean():.3f}, greedy "
            f"{score:.3f}"
        )
