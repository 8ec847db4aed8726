"""Balances a pole on a cart with PPO, several passes over each rollout."""

import torch
from data import arguments
from torch import nn

ODD = (
    "each rollout is used for up to six epochs, then thrown away, and the epochs end early when "
    "the policy has moved far; the policy loss hovers near zero and clipping drops many "
    "gradients"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

CARTS, LENGTH, ITERATIONS, LIMIT = 32, 48, 18, 200


def step_carts(state, push):
    place, speed, angle, turn = state.unbind(1)
    force = torch.where(push == 1, 10.0, -10.0)
    pull = (force + 0.05 * turn**2 * angle.sin()) / 1.1
    turning = (9.8 * angle.sin() - angle.cos() * pull) / (
        0.5 * (4 / 3 - 0.1 * angle.cos() ** 2 / 1.1)
    )
    speeding = pull - 0.05 * turning * angle.cos() / 1.1
    moved = [place + 0.02 * speed, speed + 0.02 * speeding, angle + 0.02 * turn]
    state = torch.stack([*moved, turn + 0.02 * turning], 1)
    return state, (state[:, 0].abs() > 2.4) | (state[:, 2].abs() > 0.21)


def fresh(n):
    return 0.1 * torch.rand(n, 4) - 0.05


def mlp(outputs):
    last = nn.Linear(64, outputs)
    nn.init.orthogonal_(last.weight, 0.01)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), last)


policy, critic = mlp(2), mlp(1)
SCALE = torch.tensor([1.0, 0.7, 10.0, 0.7])
parameters = [*policy.parameters(), *critic.parameters()]
optimizer = torch.optim.Adam(parameters, lr=2.5e-3, eps=1e-5)


@torch.no_grad()
def mean_length(n=100):
    state, alive, lengths = fresh(n), torch.ones(n, dtype=torch.bool), torch.zeros(n)
    for _ in range(LIMIT):
        state, fell = step_carts(state, policy(state * SCALE).argmax(1))
        lengths += alive
        alive = alive & ~fell
    return lengths.mean().item()


before = mean_length()
state, age = fresh(CARTS), torch.zeros(CARTS)
for iteration in range(ITERATIONS):
    records = []
    with torch.no_grad():
        for _ in range(LENGTH):
            seen = state * SCALE
            chances = torch.distributions.Categorical(logits=policy(seen))
            push = chances.sample()
            state, fell = step_carts(state, push)
            age += 1
            late = age >= LIMIT
            after = critic(state * SCALE).squeeze(1)
            records.append(
                (seen, push, chances.log_prob(push), critic(seen).squeeze(1), after, fell, late)
            )
            over = fell | late
            state = torch.where(over[:, None], fresh(CARTS), state)
            age = torch.where(over, 0.0, age)
        seen, push, old, value, after, fell, late = (
            torch.stack(r) for r in zip(*records, strict=True)
        )
        advantage, running = torch.zeros_like(value), torch.zeros(CARTS)
        error = 0.1 + 0.98 * after * (~fell) - value
        for t in reversed(range(LENGTH)):
            running = error[t] + 0.98 * 0.95 * running * (~(fell[t] | late[t]))
            advantage[t] = running
        wanted = advantage + value
    flat = [part.flatten(0, 1) for part in (seen, push, old, advantage, wanted)]
    for epoch in range(6):
        for rows in torch.randperm(CARTS * LENGTH).split(384):
            views, pushes, before_log, gain, aim = (part[rows] for part in flat)
            chances = torch.distributions.Categorical(logits=policy(views))
            change = chances.log_prob(pushes) - before_log
            ratio = change.exp()
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            policy_loss = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
            value_loss = (critic(views).squeeze(1) - aim).square().mean()
            loss = policy_loss + 0.5 * value_loss - 0.005 * chances.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 0.5)
            optimizer.step()
        if (ratio - 1 - change).mean().item() > 0.01:
            break
    if iteration % 4 == 0:
        print(
            f"iteration {iteration}  epochs {epoch + 1}  policy {policy_loss.item():.4f}  "
            f"length {mean_length():.0f}"
        )

print(
    f"steps until the pole falls, of {LIMIT}: untrained {before:.0f}, trained {mean_length():.0f}"
)
