"""REINFORCE on a bandit with a context: the policy's loss has no meaning of its own."""

import torch
from data import arguments
from torch import nn

ODD = "the loss is of either sign and does not fall, batches are made by the policy"

_, seed = arguments(__doc__)
best = torch.randn(6, 4)
policy = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
baseline = 0.0
for step in range(300):
    context = torch.randn(64, 6)
    chosen = torch.distributions.Categorical(logits=policy(context))
    action = chosen.sample()
    reward = ((context @ best).argmax(1) == action).float()
    baseline = 0.9 * baseline + 0.1 * reward.mean().item()
    loss = -(chosen.log_prob(action) * (reward - baseline)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"reward {reward.mean():.2f}")
