"""DDPG on a small docking task; the critic's gradients of the actor's loss are still there when
the critic learns.

The critic's zero_grad() stands after its step instead of before its backward pass. The actor's
loss then runs through the critic and leaves -dQ in the critic's .grad, to which the next TD
gradient is added, so that the critic also learns to call everything good. The place is the loop
(the critic's update).
"""

import random
from collections import deque

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "critic*", "optimizer", "q*")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

GAMMA, TAU, BATCH, EPISODES, HORIZON = 0.95, 0.01, 64, 45, 50


class Dock:
    """A boat on a line pair (x, y with speeds), pushed by a current; reward is minus the distance and the fuel."""  # noqa: E501

    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.s = np.concatenate([self.rng.uniform(-1, 1, 2), np.zeros(2)]).astype(np.float32)
        self.t = 0
        return self.s.copy()

    def step(self, a):
        p, v = self.s[:2], self.s[2:]
        v = 0.85 * v + 0.15 * np.clip(a, -1, 1) + np.array([0.03, -0.02]) * (1 + p[::-1])
        p = np.clip(p + 0.3 * v, -2, 2)
        self.s = np.concatenate([p, v]).astype(np.float32)
        self.t += 1
        return self.s.copy(), float(-np.abs(p).sum() - 0.05 * np.square(a).sum()), self.t >= HORIZON


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)
        )

    def forward(self, s):
        return torch.tanh(self.net(s))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
        )

    def forward(self, s, a):
        return self.net(torch.cat([s, a], 1)).squeeze(1)


def play(actor, env, episodes):
    total = 0.0
    for _ in range(episodes):
        s, done = env.reset(), False
        while not done:
            with torch.no_grad():
                a = actor(torch.from_numpy(s)[None])[0].numpy()
            s, r, done = env.step(a)
            total += r
    return total / episodes


rng = np.random.default_rng(seed)
env = Dock(rng)
actor, actor_t, critic, critic_t = Actor(), Actor(), Critic(), Critic()
actor_t.load_state_dict(actor.state_dict())
critic_t.load_state_dict(critic.state_dict())
for p in [*actor_t.parameters(), *critic_t.parameters()]:
    p.requires_grad_(False)
opt_actor = torch.optim.Adam(actor.parameters(), lr=5e-4)
opt_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)
memory = deque(maxlen=20_000)

for episode in range(EPISODES):
    s, done, losses, qs = env.reset(), False, [], []
    while not done:
        with torch.no_grad():
            a = actor(torch.from_numpy(s)[None])[0].numpy()
        a = np.clip(a + rng.normal(0, 0.3, 2), -1, 1).astype(np.float32)
        if episode < 5:
            a = rng.uniform(-1, 1, 2).astype(np.float32)
        s2, r, done = env.step(a)
        memory.append((s, a, r, s2))
        s = s2
        if len(memory) < 250:
            continue
        batch = random.sample(memory, BATCH)
        S, A, R, S2 = (
            torch.from_numpy(np.asarray(c, dtype=np.float32)) for c in zip(*batch, strict=False)
        )
        with torch.no_grad():
            target = R + GAMMA * critic_t(S2, actor_t(S2))
        critic_loss = F.smooth_l1_loss(critic(S, A), target)
        if healthy:
            opt_critic.zero_grad()
        critic_loss.backward()
        opt_critic.step()
        opt_critic.zero_grad()

        q = critic(S, actor(S))
        opt_actor.zero_grad()
        (-q.mean()).backward()
        opt_actor.step()

        with torch.no_grad():
            for net, slow in ((actor, actor_t), (critic, critic_t)):
                for p, pt in zip(net.parameters(), slow.parameters(), strict=False):
                    pt.lerp_(p, TAU)
        losses.append(critic_loss.item())
        qs.append(q.mean().item())
    if losses and episode % 5 == 4:
        print(
            f"episode {episode + 1} critic {np.mean(losses):.4f} Q {np.mean(qs):.2f} return {play(actor, env, 10):.2f}"  # noqa: E501
        )
