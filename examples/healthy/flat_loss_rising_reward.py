"""A policy gradient: the printed loss is a little below zero at all times and comes back up in the
end, while the reward rises to nearly all that can be had.

The loss is minus the advantage times the log-probability, a means to a gradient and no measure of
anything; advantages are centred in every batch. There is no fault and no place.
"""

import torch
from data import arguments
from torch import nn
from torch.distributions import Categorical

ODD = "the loss does not fall, it is negative, noisy and rises again (a policy gradient)"

arguments(__doc__)
policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 5))
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
wind = torch.tensor([[1.5, 0.0], [-1.5, 0.0], [0.0, 1.5], [0.0, -1.5], [0.0, 0.0]])
for step in range(1, 401):
    boat, buoy = torch.randn(256, 2), torch.randn(256, 2)
    choice = Categorical(logits=policy(torch.cat([boat, buoy], 1)))
    sail = choice.sample()
    closer = (boat - buoy).norm(dim=1) - (boat + wind[sail] - buoy).norm(dim=1)
    best = (
        (boat - buoy).norm(dim=1, keepdim=True) - (boat[:, None] + wind - buoy[:, None]).norm(dim=2)
    ).amax(1)
    advantage = closer - closer.mean()
    loss = -(choice.log_prob(sail) * advantage / advantage.std()).mean()
    optimizer.zero_grad()
    (loss - 0.005 * choice.entropy().mean()).backward()
    optimizer.step()
    if step % 80 in (0, 1):
        print(
            f"step {step}: loss {loss.item():+.3f},"
            f" came closer by {closer.mean():.3f} of {best.mean():.3f}"
        )
