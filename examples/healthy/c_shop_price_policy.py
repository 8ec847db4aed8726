"""Learns to set prices in a shop by trial: the policy gradient with a baseline.

The policy sees the weather, the stock and the weekday and draws one of seven discounts; the till
tells the profit. The loss is a stand-in for the gradient and says nothing about progress; the mean
profit does. A small term for the entropy keeps the policy trying.
"""

import torch
from data import arguments
from torch import nn
from torch.distributions import Categorical

ODD = "the loss wanders about zero and does not fall; the profit rises"

_, seed = arguments(__doc__)

DISCOUNTS = torch.tensor([0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5])


def mornings(n):
    return torch.cat([torch.randn(n, 2), nn.functional.one_hot(torch.randint(0, 7, (n,)), 7)], 1)


def mean_profit(state, discount):
    """What is left in the evening is thrown away, so a full stock asks for a discount."""
    weekend = state[:, 7] + state[:, 8]
    wish = 1 + 0.35 * state[:, 0] + 0.5 * weekend + 3.2 * discount
    stock = (1.8 + 0.8 * state[:, 1]).clamp(min=0.2)
    sold = torch.minimum(wish.clamp(min=0), stock)
    return sold * (1 - discount) - 0.25 * (stock - sold)


policy = nn.Sequential(nn.Linear(9, 32), nn.Tanh(), nn.Linear(32, len(DISCOUNTS)))
value = nn.Sequential(nn.Linear(9, 32), nn.Tanh(), nn.Linear(32, 1))
policy_optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
value_optimizer = torch.optim.Adam(value.parameters(), lr=5e-3)
test = mornings(1000)
best = torch.stack([mean_profit(test, d) for d in DISCOUNTS]).max(0).values.mean().item()
for step in range(1, 601):
    state = mornings(128)
    choice = Categorical(logits=policy(state))
    action = choice.sample()
    profit = mean_profit(state, DISCOUNTS[action]) + 0.2 * torch.randn(128)

    expected = value(state)[:, 0]
    value_loss = nn.functional.mse_loss(expected, profit)
    value_optimizer.zero_grad()
    value_loss.backward()
    value_optimizer.step()

    advantage = profit - expected.detach()
    loss = -(choice.log_prob(action) * advantage).mean() - 0.005 * choice.entropy().mean()
    policy_optimizer.zero_grad()
    loss.backward()
    policy_optimizer.step()
    if step % 100 == 0:
        with torch.no_grad():
            chosen = DISCOUNTS[policy(test).argmax(1)]
        earned = mean_profit(test, chosen).mean().item()
        print(f"step {step}: loss {loss.item():.4f}, profit {earned:.3f} of at most {best:.3f}")
