"""REINFORCE steers a cart on a line; its loss jumps around zero while the return climbs.

The loss is only a vehicle for the gradient: log-probabilities times advantages that are centred in
each batch, near zero by construction. The return is what is to be watched, and it reaches that of a
sensible controller.
"""

import torch
from data import arguments
from torch import nn
from torch.distributions import Categorical

ODD = "the loss has no trend and changes sign: advantages are centred; the return is the measure"
_, seed = arguments(__doc__)

HORIZON, CARTS, UPDATES, GAMMA = 30, 48, 200, 0.95


class CartOnALine:
    """Position and speed; three pushes; the reward is one where the cart stands at the middle."""

    def reset(self, count):
        self.position = torch.rand(count) * 4 - 2
        self.speed = torch.randn(count) * 0.2
        return self.observation()

    def observation(self):
        return torch.stack([self.position, self.speed], 1)

    def step(self, action):
        push = (action - 1).float() * 0.12
        self.speed = 0.95 * self.speed + push + 0.01 * torch.randn_like(self.speed)
        self.position = (self.position + self.speed).clamp(-3, 3)
        reward = torch.exp(-((self.position / 0.7) ** 2)) - 0.1 * self.speed.abs()
        return self.observation(), reward


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 3))

    def forward(self, observation):
        return Categorical(logits=self.body(observation))


def discounted(rewards):
    following = torch.zeros_like(rewards[0])
    returns = []
    for reward in reversed(rewards):
        following = reward + GAMMA * following
        returns.append(following)
    return torch.stack(returns[::-1])


def rollout(policy, world, count):
    observation = world.reset(count)
    log_probs, rewards, entropies = [], [], []
    for _ in range(HORIZON):
        distribution = policy(observation)
        action = distribution.sample()
        log_probs.append(distribution.log_prob(action))
        entropies.append(distribution.entropy())
        observation, reward = world.step(action)
        rewards.append(reward)
    return torch.stack(log_probs), rewards, torch.stack(entropies)


@torch.no_grad()
def greedy_return(policy, world, count=300):
    policy.eval()
    observation, total = world.reset(count), 0.0
    for _ in range(HORIZON):
        observation, reward = world.step(policy(observation).probs.argmax(1))
        total += reward.mean().item()
    policy.train()
    return total


def main():
    policy, world = Policy(), CartOnALine()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    print(f"untrained: return {greedy_return(policy, world):.2f}")
    for update in range(1, UPDATES + 1):
        log_probs, rewards, entropies = rollout(policy, world, CARTS)
        returns = discounted(rewards)
        advantages = returns - returns.mean(1, keepdim=True)
        advantages = advantages / (returns.std() + 1e-8)
        loss = -(log_probs * advantages).mean() - 0.005 * entropies.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % 20 == 0:
            print(
                f"update {update:3d}  loss {loss.item():+.4f}  entropy {entropies.mean():.2f}  "
                f"sampled return {torch.stack(rewards).sum(0).mean():.2f}  "
                f"greedy return {greedy_return(policy, world):.2f}"
            )


main()
