"""Learns to bring carts to rest at a mark with TD3: two critics and a delayed actor."""

import copy

import torch
from data import arguments
from torch import nn

ODD = (
    "the critics' loss grows while they discover how long the way is, the actor's loss is a "
    "value and not an error, it is stepped every other time, and four target nets never see an "
    "optimizer"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

CARTS, ROUNDS, HORIZON, GAMMA, NOISE = 16, 900, 50, 0.97, 0.15


def move(state, force):
    place, speed = state.unbind(1)
    reward = -(place**2 + 0.1 * speed**2 + 0.01 * force**2)
    speed = speed + 0.2 * force - 0.02 * speed
    after = place + 0.2 * speed
    speed = torch.where(after.abs() > 3, 0.0, speed)
    return torch.stack([after.clamp(-3, 3), speed], 1), reward


def start(n):
    return torch.rand(n, 2) * torch.tensor([4.0, 1.0]) - torch.tensor([2.0, 0.5])


def mlp(inputs):
    return nn.Sequential(
        nn.Linear(inputs, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1)
    )


class Critics(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = mlp(3), mlp(3)

    def forward(self, state, action):
        both = torch.cat([state, action], 1)
        return self.first(both).squeeze(1), self.second(both).squeeze(1)


@torch.no_grad()
def cost(policy):
    torch_state = torch.random.get_rng_state()
    torch.manual_seed(10_000)
    state, total = start(200), 0.0
    torch.random.set_rng_state(torch_state)
    for _ in range(HORIZON):
        state, reward = move(state, policy(state).squeeze(1))
        total = total - reward.mean().item()
    return total


actor, critics = nn.Sequential(mlp(2), nn.Tanh()), Critics()
actor_target, critics_target = copy.deepcopy(actor), copy.deepcopy(critics)
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=1e-3)
critic_optimizer = torch.optim.Adam(critics.parameters(), lr=2e-3)
memory, written = torch.zeros(CARTS * ROUNDS, 6), 0
state = start(CARTS)
print(f"cost of the untrained actor {cost(actor):.1f}")

for round_number in range(ROUNDS):
    with torch.no_grad():
        force = (actor(state) + 0.3 * torch.randn(CARTS, 1)).clamp(-1, 1)
    following, reward = move(state, force.squeeze(1))
    memory[written : written + CARTS] = torch.cat([state, force, reward[:, None], following], 1)
    written += CARTS
    state = start(CARTS) if round_number % HORIZON == HORIZON - 1 else following
    if round_number < 30:
        continue
    now, action, gain, after = memory[torch.randint(0, written, (128,))].split((2, 1, 1, 2), 1)
    with torch.no_grad():
        smoothing = (NOISE * torch.randn_like(action)).clamp(-0.3, 0.3)
        next_action = (actor_target(after) + smoothing).clamp(-1, 1)
        target = gain.squeeze(1) + GAMMA * torch.min(*critics_target(after, next_action))
    critic_loss = sum(nn.functional.mse_loss(value, target) for value in critics(now, action))
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()
    if round_number % 2 == 0:
        actor_loss = -critics(now, actor(now))[0].mean()
        actor_optimizer.zero_grad()
        actor_loss.backward()
        actor_optimizer.step()
        with torch.no_grad():
            for net, slow in ((actor, actor_target), (critics, critics_target)):
                for p, q in zip(net.parameters(), slow.parameters(), strict=True):
                    q.lerp_(p, 0.02)
    if round_number % 150 == 0:
        print(f"round {round_number}  critics {critic_loss.item():.3f}  cost {cost(actor):.1f}")

no_force = cost(lambda s: torch.zeros(len(s), 1))
by_hand = cost(lambda s: (-1.0 * s[:, :1] - 1.4 * s[:, 1:]).clamp(-1, 1))
print(f"cost: no force {no_force:.1f}, tuned by hand {by_hand:.1f}, TD3 {cost(actor):.1f}")
