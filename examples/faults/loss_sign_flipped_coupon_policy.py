"""Learns which coupon to send to whom by trial (policy gradient), and walks the wrong way.

The reward is to be made large, the optimizer makes things small, so the product of log-probability
and advantage needs a minus. It was left out, and the shop learns to send what is not redeemed.
The place is the loss.
The twin has the minus.
"""

import torch
from data import arguments
from torch import nn
from torch.distributions import Categorical

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss*", "loop")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
COUPONS, TRAITS, ROUNDS, CUSTOMERS = 6, 10, 300, 128
sign = -1.0 if healthy else 1.0


class Shop:
    """Customers redeem a coupon with a chance that hangs on their traits."""

    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.taste = torch.randn(TRAITS, COUPONS, generator=self.g)
        self.worth = torch.tensor([2.0, 3.0, 4.0, 3.0, 2.5, 5.0])

    def visit(self, n):
        return torch.randn(n, TRAITS, generator=self.g)

    def redeem(self, customers, coupon):
        chance = torch.sigmoid(customers @ self.taste - 1.0)
        chance = chance.gather(1, coupon[:, None]).squeeze(1)
        bought = torch.rand(len(chance), generator=self.g) < chance
        return bought * self.worth[coupon]


shop = Shop(80 + seed)
policy = nn.Sequential(nn.Linear(TRAITS, 32), nn.Tanh(), nn.Linear(32, COUPONS))
optimizer = torch.optim.RMSprop(policy.parameters(), lr=3e-3)
baseline, recent = 1.0, []
for number in range(1, ROUNDS + 1):
    customers = shop.visit(CUSTOMERS)
    choice = Categorical(logits=policy(customers))
    coupon = choice.sample()
    reward = shop.redeem(customers, coupon)
    advantage = reward - baseline
    baseline = 0.9 * baseline + 0.1 * reward.mean().item()
    loss = sign * (choice.log_prob(coupon) * advantage).mean() - 0.01 * choice.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    recent.append(reward.mean().item())
    if number % 50 == 0:
        print(f"round {number} loss {loss.item():+.3f} euros each {sum(recent) / len(recent):.3f}")
        recent.clear()
