"""Advantage actor-critic on a small grid: one network, two heads, a sum of three terms."""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = "a loss of either sign that does not fall, hand-made, with detached parts"

_, seed = arguments(__doc__)
size, goal = 5, 12
moves = torch.tensor([-size, size, -1, 1])


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(size * size, 32), nn.Tanh())
        self.policy = nn.Linear(32, 4)
        self.value = nn.Linear(32, 1)

    def forward(self, place):
        h = self.body(F.one_hot(place, size * size).float())
        return torch.distributions.Categorical(logits=self.policy(h)), self.value(h).squeeze(-1)


model = ActorCritic()
optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-3)
place = torch.randint(size * size, (48,))
for step in range(400):
    policy, value = model(place)
    action = policy.sample()
    there = (place + moves[action]) % (size * size)
    won = there == goal
    following = torch.where(won, torch.randint(size * size, there.shape), there)
    with torch.no_grad():
        target = won.float() + 0.9 * torch.where(won, 0.0, model(following)[1])
    gain = target - value
    loss = -(policy.log_prob(action) * gain.detach()).mean() + 0.5 * gain.square().mean()
    loss = loss - 0.01 * policy.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    place = following
print(f"loss {loss.item():.3f}, value {value.mean():.3f}")
