"""Chooses one of six exercises for each pupil by an actor and a critic; the reward is progress."""

import torch
from data import arguments
from torch import nn
from torch.distributions import Categorical

ODD = "the actor's loss is often negative and goes to and fro about zero while the reward rises"

_, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
FEATURES, EXERCISES = 5, 6
fits = torch.randn(FEATURES, EXERCISES, generator=g)


def progress(pupils, choice):
    expected = (pupils @ fits).gather(1, choice.unsqueeze(1)).squeeze(1)
    return torch.tanh(expected) + 0.2 * torch.randn(len(pupils), generator=g)


actor = nn.Sequential(nn.Linear(FEATURES, 32), nn.Tanh(), nn.Linear(32, EXERCISES))
critic = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 1))
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=5e-3)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=5e-3)
pupils_val = torch.randn(400, FEATURES, generator=g)
for update in range(1, 401):
    pupils = torch.randn(48, FEATURES, generator=g)
    policy = Categorical(logits=actor(pupils))
    choice = policy.sample()
    reward = progress(pupils, choice)
    value = critic(pupils).squeeze(1)
    advantage = (reward - value).detach()
    critic_loss = nn.functional.mse_loss(value, reward)
    actor_loss = -(policy.log_prob(choice) * advantage).mean() - 0.01 * policy.entropy().mean()
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()
    actor_optimizer.zero_grad()
    actor_loss.backward()
    actor_optimizer.step()
    if update % 50 == 0:
        with torch.no_grad():
            gain = progress(pupils_val, actor(pupils_val).argmax(1)).mean().item()
        print(
            f"{update} actor {actor_loss.item():.3f} critic {critic_loss.item():.3f} "
            f"progress {gain:.3f}"
        )
