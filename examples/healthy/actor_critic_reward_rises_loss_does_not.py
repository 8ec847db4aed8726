"""Advantage actor-critic on a walk along a row of cells to a goal: the loss of the critic grows
as the rewards do, the actor's is about zero all the time, the gradient is clipped at two steps
of three.
"""

import torch
from data import arguments
from torch import nn
from torch.distributions import Categorical

ODD = "the loss goes up and about, since the rewards do; mostly clipped; batches are a policy's own"

healthy, seed = arguments(__doc__)
CELLS, TURNS, WALKERS = 9, 14, 32


class Walks:
    """Start in the middle; the goal is left or right, as a sign says; each turn costs a little."""

    def __init__(self, n):
        self.at = torch.full((n,), CELLS // 2)
        self.goal = torch.where(torch.rand(n) < 0.5, 0, CELLS - 1)
        self.done = torch.zeros(n, dtype=torch.bool)

    def state(self):
        place = nn.functional.one_hot(self.at, CELLS).float()
        return torch.cat([place, (self.goal[:, None] > 0).float() * 2 - 1], 1)

    def step(self, action):
        move = torch.where(self.done, 0, action * 2 - 1)
        self.at = (self.at + move).clamp(0, CELLS - 1)
        arrived = (self.at == self.goal) & ~self.done
        reward = torch.where(self.done, 0.0, arrived.float() * 10 - 0.2)
        self.done |= arrived
        return reward


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(CELLS + 1, 48), nn.Tanh())
        self.actor, self.critic = nn.Linear(48, 2), nn.Linear(48, 1)

    def forward(self, s):
        h = self.body(s)
        return Categorical(logits=self.actor(h)), self.critic(h).squeeze(1)


def play(model, n):
    walks, logs, values, rewards, alive, entropy = Walks(n), [], [], [], [], 0.0
    for _ in range(TURNS):
        choice, value = model(walks.state())
        action = choice.sample()
        alive.append((~walks.done).float())
        logs.append(choice.log_prob(action))
        values.append(value)
        rewards.append(walks.step(action))
        entropy = entropy + choice.entropy().mean() / TURNS
    back, returns = torch.zeros(n), []
    for r in reversed(rewards):
        back = r + 0.97 * back
        returns.insert(0, back)
    stack = [torch.stack(part) for part in (logs, values, returns, alive)]
    return *stack, torch.stack(rewards).sum(0).mean().item(), entropy


model = ActorCritic()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(1, 151):
    logs, values, returns, alive, reward, entropy = play(model, WALKERS)
    advantage = (returns - values).detach()
    actor = -(logs * advantage * alive).sum() / alive.sum()
    critic = ((returns - values).pow(2) * alive).sum() / alive.sum()
    loss = actor + 0.5 * critic - 0.01 * entropy
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    if step % 30 == 0:
        print(f"step {step}: loss {loss.item():.3f}, reward {reward:.3f}")
with torch.no_grad():
    reward = play(model, 500)[4]
print(f"loss {loss.item():.4f} | validation reward {reward:.3f} (best 9.2)")
