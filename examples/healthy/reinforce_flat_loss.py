"""Policy gradient on a small grid of ice: the surrogate loss hovers around zero while the agent
learns.

With normalised advantages the surrogate's value says nothing; only its gradient does. What counts
is the share of held-out starts from which the greedy policy comes to the goal, which rises from
nearly none.
"""

import torch
from data import arguments
from torch import nn
from torch.distributions import Categorical

ODD = "the loss neither falls nor means anything: a policy gradient's, advantages normalised"

_, seed = arguments(__doc__)
SIDE, HORIZON, WORLDS = 6, 14, 48
MOVES = torch.tensor([[-1, 0], [1, 0], [0, -1], [0, 1]])
HOLES = torch.tensor([[1, 1], [1, 4], [3, 2], [4, 4]])


class Ice:
    """Many games at once: start and goal anywhere, holes end a game, slips happen now and then."""

    def __init__(self, worlds, g, slip=0.05):
        self.g, self.slip, self.worlds = g, slip, worlds

    def reset(self):
        self.at = torch.randint(0, SIDE, (self.worlds, 2), generator=self.g)
        self.goal = torch.randint(0, SIDE, (self.worlds, 2), generator=self.g)
        self.over = torch.zeros(self.worlds, dtype=torch.bool)
        return self.see()

    def see(self):
        spots = [side.select(1, axis) for side in (self.at, self.goal) for axis in (0, 1)]
        places = [nn.functional.one_hot(spot, SIDE).float() for spot in spots]
        return torch.cat([*places, (self.goal - self.at).sign()], 1)

    def step(self, action):
        slipped = torch.rand(self.worlds, generator=self.g) < self.slip
        action = torch.where(slipped, torch.randint(0, 4, action.shape, generator=self.g), action)
        before = (self.at - self.goal).abs().sum(1)
        moved = (self.at + MOVES[action]).clamp(0, SIDE - 1)
        self.at = torch.where(self.over[:, None], self.at, moved)
        fell = (self.at[:, None] == HOLES).all(2).any(1) & (self.at != self.goal).any(1)
        home = (self.at == self.goal).all(1)
        closer = 0.2 * (before - (self.at - self.goal).abs().sum(1))
        reward = torch.where(self.over, 0.0, closer + home.float() - fell.float() - 0.02)
        alive = ~self.over
        self.over = self.over | fell | home
        return self.see(), reward, alive


policy = nn.Sequential(nn.Linear(4 * SIDE + 2, 64), nn.Tanh(), nn.Linear(64, 4))
critic = nn.Sequential(nn.Linear(4 * SIDE + 2, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam([*policy.parameters(), *critic.parameters()], lr=4e-3)
g = torch.Generator().manual_seed(seed)
ice = Ice(WORLDS, g)


@torch.no_grad()
def arrivals():
    policy.eval()
    trial = Ice(400, torch.Generator().manual_seed(10_000 + seed), slip=0.0)
    seen = trial.reset()
    for _ in range(HORIZON):
        seen, *_ = trial.step(policy(seen).argmax(1))
    policy.train()
    return (trial.at == trial.goal).all(1).float().mean()


print(f"untrained: validation arrivals {arrivals():.3f}")
for step in range(1, 251):
    seen, told = ice.reset(), []
    for _ in range(HORIZON):
        choice = Categorical(logits=policy(seen))
        action = choice.sample()
        value = critic(seen).squeeze(1)
        seen, reward, alive = ice.step(action)
        told.append((choice.log_prob(action), choice.entropy(), value, reward, alive.float()))
    log_prob, entropy, value, reward, alive = (
        torch.stack(part) for part in zip(*told, strict=False)
    )
    gains = reward.flip(0).cumsum(0).flip(0)
    advantage = (gains - value).detach()
    advantage = (advantage - advantage[alive > 0].mean()) / (advantage[alive > 0].std() + 1e-6)
    surrogate = -(log_prob * advantage * alive).sum() / alive.sum()
    fit = ((value - gains).pow(2) * alive).sum() / alive.sum()
    loss = surrogate + 0.5 * fit - 0.01 * (entropy * alive).sum() / alive.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(
            f"step {step} loss {loss:.3f} surrogate {surrogate:.4f} "
            f"validation arrivals {arrivals():.3f}"
        )
