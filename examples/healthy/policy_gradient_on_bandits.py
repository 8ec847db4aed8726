"""REINFORCE with a baseline on a contextual bandit: the policy's loss rises towards zero.

It looks odd because that loss is negative, noisy and never falls. It is right: with a baseline its
value means nothing, only its gradient does; the reward climbs to near the best.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = "the loss rises while the reward does"

_, seed = arguments(__doc__)
ARMS, FEATURES = 5, 6
preferences = torch.randn(FEATURES, ARMS)


def pull(context, arm):
    score = context @ preferences + 0.5 * torch.tanh(context[:, :ARMS])
    best = score.amax(1)
    taken = score.gather(1, arm[:, None]).squeeze(1)
    return (taken == best).float() + 0.2 * torch.randn(len(arm))


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(FEATURES, 48), nn.Tanh())
        self.policy, self.value = nn.Linear(48, ARMS), nn.Linear(48, 1)

    def forward(self, context):
        h = self.body(context)
        return torch.distributions.Categorical(logits=self.policy(h)), self.value(h).squeeze(1)


agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3)
average = 0.2
for step in range(1, 601):
    context = torch.randn(256, FEATURES)
    choice, value = agent(context)
    arm = choice.sample()
    reward = pull(context, arm)
    advantage = reward - value.detach()
    policy_loss = -(choice.log_prob(arm) * advantage).mean()
    loss = policy_loss + 0.5 * F.mse_loss(value, reward) - 0.003 * choice.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average += 0.05 * (reward.mean().item() - average)
    if step % 60 == 0:
        print(f"step {step}: policy loss {policy_loss.item():+.3f}, reward {average:.3f}")
