"""Price of an ice cream stand by policy gradient; the loss itself tells nothing."""

import torch
from data import arguments
from torch import nn

ODD = "The loss wanders around zero, for it is an advantage times a log-probability; rewards rise."

_, seed = arguments(__doc__)
PRICES = torch.tensor([1.0, 1.5, 2.0, 2.5, 3.0, 3.5])


def sell(heat, price):
    """Profit of a day: warm days bear higher prices."""
    buyers = torch.sigmoid(3 * (2.0 + 0.8 * heat - price))
    return buyers * (price - 0.7) + 0.1 * torch.randn_like(price)


policy = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, len(PRICES)))
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
test_heat = torch.randn(1000, 1)
baseline = 0.0
for step in range(1, 601):
    heat = torch.randn(64, 1)
    choice = torch.distributions.Categorical(logits=policy(heat))
    action = choice.sample()
    profit = sell(heat.squeeze(1), PRICES[action])
    baseline = 0.95 * baseline + 0.05 * profit.mean().item()
    loss = -(choice.log_prob(action) * (profit - baseline)).mean()
    loss = loss - 0.01 * choice.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 150 == 0:
        with torch.no_grad():
            best = PRICES[policy(test_heat).argmax(1)]
        print(
            f"step {step}: loss {loss.item():+.3f}, profit {profit.mean():.3f}, "
            f"test {sell(test_heat.squeeze(1), best).mean():.3f}"
        )
