"""REINFORCE with a learned baseline on a windy corridor: the loss changes its sign and says
nothing.
"""

import torch
from data import arguments
from torch import nn

ODD = "the policy's loss is negative half of the time and does not fall; the return rises"

_, seed = arguments(__doc__)
LENGTH, HORIZON, WALKERS = 9, 24, 32


class Corridor:
    """Walkers start in the middle; the goal's side is shown by the second input."""

    def reset(self):
        self.at = torch.full((WALKERS,), LENGTH // 2)
        self.goal = torch.where(torch.rand(WALKERS) < 0.5, 0, LENGTH - 1)
        self.alive = torch.ones(WALKERS)
        return self.look()

    def look(self):
        side = (self.goal > 0).float() * 2 - 1
        return torch.stack([self.at.float() / (LENGTH - 1) * 2 - 1, side], 1)

    def step(self, action):
        slip = torch.rand(WALKERS) < 0.1
        move = torch.where(slip, 1 - action, action) * 2 - 1
        self.at = (self.at + move * self.alive.long()).clamp(0, LENGTH - 1)
        arrived = (self.at == self.goal).float() * self.alive
        reward = arrived - 0.02 * self.alive
        mask, self.alive = self.alive, self.alive * (1 - arrived)
        return self.look(), reward, mask


policy = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
value = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(
    [{"params": policy.parameters(), "lr": 5e-4}, {"params": value.parameters(), "lr": 3e-3}]
)
env = Corridor()


def rollout():
    state, log_probs, values, rewards, masks = env.reset(), [], [], [], []
    for _ in range(HORIZON):
        choice = torch.distributions.Categorical(logits=policy(state))
        action = choice.sample()
        log_probs.append(choice.log_prob(action))
        values.append(value(state).squeeze(1))
        state, reward, mask = env.step(action)
        rewards.append(reward)
        masks.append(mask)
    return torch.stack(log_probs), torch.stack(values), torch.stack(rewards), torch.stack(masks)


for iteration in range(1, 251):
    log_probs, values, rewards, masks = rollout()
    returns, running = torch.zeros_like(rewards), torch.zeros(WALKERS)
    for t in reversed(range(HORIZON)):
        running = rewards[t] + 0.97 * running
        returns[t] = running
    advantage = (returns - values).detach()
    policy_loss = -(advantage * log_probs * masks).sum() / masks.sum()
    value_loss = ((returns - values).pow(2) * masks).sum() / masks.sum()
    loss = policy_loss + 0.5 * value_loss
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_([*policy.parameters(), *value.parameters()], 1.0)
    optimizer.step()
    if iteration % 25 == 0:
        with torch.no_grad():
            score = rollout()[2].sum(0).mean().item()
        print(
            f"{iteration}: policy loss {policy_loss.item():+.3f} "
            f"value loss {value_loss.item():.3f} return {score:.3f}"
        )
