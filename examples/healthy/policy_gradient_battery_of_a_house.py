"""A policy gradient agent trades with the battery of a house: it buys at night and sells at six.

32 houses at once play a day of 24 hours; the loss is -log p x advantage with a running baseline for
each hour and a bonus for entropy, and says nothing about how good the agent is.
"""

import torch
from data import arguments
from torch import nn

ODD = "a loss around 0 that neither falls nor rises, batches drawn by the policy, no validation"

HOURS, HOUSES, CAPACITY = 24, 32, 4.0


class Battery:
    """States: hour, charge, price, demand. Actions: sell, rest, charge one kilowatt hour."""

    def __init__(self, houses):
        self.houses = houses

    def reset(self):
        self.hour = 0
        self.charge = torch.full((self.houses,), 1.0)
        self.mood = 1 + 0.2 * torch.randn(self.houses)
        return self.observe()

    def observe(self):
        hour = torch.tensor(float(self.hour))
        wave = 1 + 0.5 * torch.sin((hour - 13) / 24 * 6.283) + 0.45 * (hour > 16) * (hour < 21)
        self.price = (self.mood * wave + 0.1 * torch.randn(self.houses)).clamp(0.1)
        angle = hour / 24 * 6.283
        clock = torch.stack([angle.sin(), angle.cos()]).expand(self.houses, 2)
        return torch.cat([clock, self.charge[:, None] / 2 - 1, self.price[:, None] - 1], 1)

    def step(self, action):
        change = (action - 1).float()
        change = torch.where(self.charge + change > CAPACITY, 0.0, change)
        change = torch.where(self.charge + change < 0, 0.0, change)
        reward = -self.price * change - 0.03 * change.abs() - 0.05 * (change == 0) * (action != 1)
        self.charge = self.charge + change * torch.where(change > 0, 0.95, 1.0)
        self.hour += 1
        if self.hour == HOURS:
            reward = reward + 0.4 * self.charge
        return self.observe(), reward


_, seed = arguments(__doc__)
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(policy.parameters(), lr=4e-3)
house = Battery(HOUSES)
baseline = torch.zeros(HOURS)
earned = []
for day in range(200):
    state, log_p, entropy, rewards = house.reset(), [], [], []
    for _ in range(HOURS):
        choice = torch.distributions.Categorical(logits=policy(state))
        action = choice.sample()
        state, reward = house.step(action)
        log_p.append(choice.log_prob(action))
        entropy.append(choice.entropy())
        rewards.append(reward)
    rewards = torch.stack(rewards)
    returns = rewards.flip(0).cumsum(0).flip(0)
    advantage = returns - baseline[:, None]
    baseline.lerp_(returns.mean(1), 0.1)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
    bonus = 0.01 * torch.stack(entropy).mean()
    loss = -(torch.stack(log_p) * advantage).mean() - bonus
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
    optimizer.step()
    earned.append(rewards.sum(0).mean().item())
    if day % 40 == 39:
        print(f"day {day + 1}: loss {loss.item():.4f}, earned {sum(earned[-20:]) / 20:.3f}")
first, last = sum(earned[:10]) / 10, sum(earned[-20:]) / 20
print(f"loss {loss.item():.4f}, earned first {first:.2f}, last {last:.2f}")
