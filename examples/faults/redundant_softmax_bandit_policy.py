"""A policy for a bandit with ten arms ends in a softmax, and its output goes to
Categorical(logits=...), which takes the softmax again.

"Logits" between 0 and 1 give no arm a chance above e / (e + 9) = 23 %: the policy stays nearly
random however long it trains. The place is the policy's last layer, the softmax.
"""

import torch
from data import arguments
from torch import nn
from torch.distributions import Categorical

KIND = "redundant_softmax"
ACCEPT = ("wrong_loss", "output_activation_range")
PLACE = ("*softmax*", "actor*", "head*", "loss*", "*out*", "")
SILENT = True
EXACT = False
EARLY = True


class Kiosk:
    """Which of ten magazines a passer-by will buy depends on six things one can see."""

    def __init__(self):
        self.taste = 2.0 * torch.randn(6, 10)

    def look(self, n):
        return torch.randn(n, 6)

    def sell(self, people, offer):
        wish = (people @ self.taste).argmax(1)
        return (offer == wish).float()


class Policy(nn.Module):
    def __init__(self, softmax):
        super().__init__()
        self.body = nn.Linear(6, 64)
        self.head = nn.Linear(64, 10)
        self.softmax = nn.Softmax(dim=-1) if softmax else nn.Identity()

    def forward(self, people):
        return self.softmax(self.head(torch.relu(self.body(people))))


healthy, _ = arguments(__doc__)
kiosk = Kiosk()
policy = Policy(softmax=not healthy)
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
usual = 0.1
for step in range(1, 601):
    people = kiosk.look(256)
    choice = Categorical(logits=policy(people))
    offer = choice.sample()
    reward = kiosk.sell(people, offer)
    loss = -(choice.log_prob(offer) * (reward - usual)).mean() - 0.003 * choice.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    usual = 0.95 * usual + 0.05 * reward.mean().item()
    if step % 100 == 0:
        print(
            f"step {step}: sold to {usual:.3f} of the people, entropy {choice.entropy().mean():.3f}"
        )
