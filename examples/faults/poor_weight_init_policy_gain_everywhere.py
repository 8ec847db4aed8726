"""Behaviour cloning with the layer_init of a PPO repository: its gain of 0.01 went to every layer.

`layer_init(layer, std=0.01)` is meant for the last layer of the policy, so that it begins near
uniform. Here it is the default and the hidden layers were not given sqrt(2): the signal dies on its
way up and with it the gradient. The place is all the layers.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ("vanishing_gradient",)
PLACE = ("actor*", "")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def layer_init(layer, std=0.01, bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    def __init__(self, n_obs, n_actions):
        super().__init__()
        gain = {"std": np.sqrt(2)} if healthy else {}
        self.actor = nn.Sequential(
            layer_init(nn.Linear(n_obs, 64), **gain),
            nn.Tanh(),
            layer_init(nn.Linear(64, 64), **gain),
            nn.Tanh(),
            layer_init(nn.Linear(64, 64), **gain),
            nn.Tanh(),
            layer_init(nn.Linear(64, n_actions), std=0.01),
        )

    def forward(self, obs):
        return torch.distributions.Categorical(logits=self.actor(obs))


def expert_rollouts(n):
    """A lander: position, speed, angle, turning; the expert picks one of four thrusters."""
    obs = np.random.randn(n, 6).astype(np.float32)
    x, y, vx, vy, a, w = obs.T
    want_turn = a + 0.8 * w - 0.7 * np.tanh(x + 1.2 * vx)
    want_up = -(vy + 0.5 * y) - 0.3 * np.abs(a)
    score = np.stack([0.4 * np.ones(n), want_turn, want_up, -want_turn], 1)
    score += 0.15 * np.random.randn(n, 4)
    return torch.from_numpy(obs), torch.from_numpy(score.argmax(1))


obs, actions = expert_rollouts(8000)
obs_val, actions_val = expert_rollouts(2000)
agent = Agent(6, 4)
optimizer = torch.optim.SGD(agent.parameters(), lr=0.01, momentum=0.9)
inds = np.arange(len(obs))
for epoch in range(10):
    np.random.shuffle(inds)
    nlls = []
    for start in range(0, len(obs), 64):
        mb = torch.from_numpy(inds[start : start + 64])
        loss = -agent(obs[mb]).log_prob(actions[mb]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        nlls.append(loss.item())
    if epoch % 2 == 1:
        with torch.no_grad():
            dist = agent(obs_val)
        val = -dist.log_prob(actions_val).mean().item()
        acc = (dist.probs.argmax(1) == actions_val).float().mean().item()
        print(f"epoch {epoch + 1}: bc loss {np.mean(nlls):.4f} val {val:.4f} agreement {acc:.3f}")
