"""A contextual bandit by policy gradient: one digit shown, ten levers, reward 1 for the
right one."""

import torch
from data import arguments, digits
from torch import nn

ODD = (
    "the loss hovers around 0, changes its sign and does not fall while the reward rises; the"
    " policy learns from its own labels"
)

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
policy = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
baseline = 0.1
for step in range(1000):
    seen = torch.randint(len(x), (64,))
    levers = torch.distributions.Categorical(logits=policy(x[seen]))
    pulled = levers.sample()
    reward = (pulled == y[seen]).float()
    loss = -((reward - baseline) * levers.log_prob(pulled)).mean() - 0.03 * levers.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    baseline += 0.05 * (reward.mean().item() - baseline)
with torch.no_grad():
    right = (policy(x_val).argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, mean reward {baseline:.3f}, validation accuracy {right:.3f}")
