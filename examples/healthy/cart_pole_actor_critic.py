"""Balancing a pole by advantage actor-critic, on 32 carts at once simulated in tensors.

Rollouts of 20 steps, generalised advantages, an entropy bonus; actor and critic have a body each.
The data are the agent's own, so there is no validation set; what counts is the greedy policy's
episodes.
"""

import torch
from data import arguments
from torch import nn

ODD = (
    "the loss is noise around zero, may be negative or rise, "
    "and the inputs change as the agent improves"
)

_, seed = arguments(__doc__)
CARTS, ROLLOUT, UPDATES, GAMMA, LAMBDA, LIMIT = 32, 20, 200, 0.98, 0.95, 200


class Carts:
    """The cart-pole: state (place, speed, angle, turning), two actions, a reward of 1 a step."""

    def __init__(self, n):
        self.state, self.age = 0.1 * torch.rand(n, 4) - 0.05, torch.zeros(n)

    def step(self, action):
        x, v, a, w = self.state.unbind(1)
        force = 20.0 * action - 10.0
        push = (force + 0.05 * w**2 * a.sin()) / 1.1
        turn = (9.8 * a.sin() - a.cos() * push) / (0.5 * (4 / 3 - 0.1 * a.cos() ** 2 / 1.1))
        speed_up = push - 0.05 * turn * a.cos() / 1.1
        self.state = torch.stack(
            [x + 0.02 * v, v + 0.02 * speed_up, a + 0.02 * w, w + 0.02 * turn], 1
        )
        self.age += 1
        fell = (self.state[:, 0].abs() > 2.4) | (self.state[:, 2].abs() > 0.21)
        over = fell | (self.age >= LIMIT)
        after = self.state
        self.state = torch.where(over[:, None], 0.1 * torch.rand_like(after) - 0.05, after)
        self.age = torch.where(over, torch.zeros_like(self.age), self.age)
        return after, fell, over


def body(outputs):
    return nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, outputs))


SCALE = torch.tensor([1.0, 1.0, 0.1, 1.0])
actor, critic = body(2), body(1)
optimizer = torch.optim.Adam(
    [{"params": actor.parameters(), "lr": 3e-3}, {"params": critic.parameters(), "lr": 5e-3}]
)


def value(state):
    return critic(state / SCALE).squeeze(-1) * 10


@torch.no_grad()
def greedy_length(n=50):
    carts, alive, length = Carts(n), torch.ones(n, dtype=torch.bool), torch.zeros(n)
    for _ in range(LIMIT):
        _, _, over = carts.step(actor(carts.state / SCALE).argmax(1).float())
        length += alive
        alive &= ~over
    return length.mean().item()


carts = Carts(CARTS)
for update in range(1, UPDATES + 1):
    states, actions, deltas, keeps = [], [], [], []
    with torch.no_grad():
        for _ in range(ROLLOUT):
            state = carts.state
            action = torch.distributions.Categorical(logits=actor(state / SCALE)).sample()
            after, fell, over = carts.step(action.float())
            delta = 1.0 + GAMMA * value(after) * ~fell - value(state)
            for kept, item in zip(
                (states, actions, deltas, keeps), (state, action, delta, ~over), strict=False
            ):
                kept.append(item)
        advantage, advantages = torch.zeros(CARTS), []
        for delta, keep in zip(reversed(deltas), reversed(keeps), strict=False):
            advantage = delta + GAMMA * LAMBDA * keep * advantage
            advantages.insert(0, advantage)
        s, a, adv = torch.cat(states), torch.cat(actions), torch.cat(advantages)
        returns = adv + value(s)
        adv = (adv - adv.mean()) / (adv.std() + 1e-6)
    policy = torch.distributions.Categorical(logits=actor(s / SCALE))
    actor_loss = -(policy.log_prob(a) * adv).mean()
    critic_loss = nn.functional.smooth_l1_loss(value(s), returns)
    loss = actor_loss + 0.2 * critic_loss - 0.005 * policy.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_([*actor.parameters(), *critic.parameters()], 0.5)
    optimizer.step()
    if update % 20 == 0:
        print(
            f"update {update} loss {loss.item():.3f} critic {critic_loss.item():.3f} "
            f"greedy {greedy_length():.0f} steps"
        )
