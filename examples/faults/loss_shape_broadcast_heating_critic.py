"""An actor-critic heats houses; returns (N,) minus values (N, 1) give N x N advantages.

The critic is fitted to every return at once and learns only their mean; the actor then gets a
baseline that does not depend on the state.
The place is the loss, where the advantages are computed.
"""

import torch
from data import arguments
from torch import nn
from torch.distributions import Categorical

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

HOUSES, HOURS, GAMMA = 24, 16, 0.9


class Heating:
    """Houses side by side; the state is inside, outside and the price; the action is the level."""

    def reset(self):
        self.inside = 20 + 4 * torch.randn(HOUSES)
        self.outside = 5 + 5 * torch.randn(HOUSES)
        self.price = torch.rand(HOUSES)
        return self.observe()

    def observe(self):
        return torch.stack(
            [(self.inside - 20) / 4, (self.outside - 5) / 5, (self.price - 0.5) * 3.5], 1
        )

    def step(self, action):
        heat = action.float()
        self.inside = self.inside + 0.12 * (self.outside - self.inside) + 1.8 * heat
        self.inside = self.inside + 0.2 * torch.randn(HOUSES)
        self.outside = self.outside + 0.3 * torch.randn(HOUSES)
        discomfort = (self.inside - 20).abs().clamp(max=8)
        return self.observe(), -0.2 * discomfort - 0.15 * self.price * heat


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(3, 48), nn.Tanh(), nn.Linear(48, 3))
        self.critic = nn.Sequential(nn.Linear(3, 48), nn.Tanh(), nn.Linear(48, 1))

    def forward(self, state):
        return Categorical(logits=self.actor(state)), self.critic(state)


def rollout(model, environment):
    state, memory = environment.reset(), []
    for _ in range(HOURS):
        with torch.no_grad():
            action = model(state)[0].sample()
        after, reward = environment.step(action)
        memory.append((state, action, reward))
        state = after
    states, actions, rewards = (torch.stack(part) for part in zip(*memory, strict=True))
    with torch.no_grad():
        future = model(state)[1].squeeze(1)
    returns = torch.empty_like(rewards)
    for hour in reversed(range(HOURS)):
        future = rewards[hour] + GAMMA * future
        returns[hour] = future
    return states.flatten(0, 1), actions.flatten(), returns.flatten(), rewards.mean().item()


model, environment = ActorCritic(), Heating()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for update in range(1, 301):
    states, actions, returns, mean_reward = rollout(model, environment)
    policy, values = model(states)
    advantage = returns - (values.squeeze(1) if healthy else values)
    actor_loss = -(policy.log_prob(actions) * advantage.detach()).mean()
    critic_loss = advantage.pow(2).mean()
    loss = actor_loss + 0.5 * critic_loss - 0.01 * policy.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 2.0)
    optimizer.step()
    if update % 50 == 0:
        explained = 1 - (returns - values.detach().squeeze(1)).var() / returns.var()
        print(
            f"update {update} reward per hour {mean_reward:.3f} critic loss "
            f"{critic_loss.item():.3f} explained variance {explained.item():.3f}"
        )
