"""REINFORCE on a pole on a cart; the policy loss lacks its minus, and the reward is minimised.

The gradient is that of the book, log-probability times return, but it goes to an optimizer, which
minimises. The printed loss goes down nicely and the pole falls sooner and sooner. The place is the
loss.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.distributions import Categorical

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = False
EARLY = False

LIMIT = 60


class Poles:
    """Many carts at once. A pole that leans too far, or a cart that leaves the track, is out."""

    def __init__(self, n):
        self.state = 0.1 * (torch.rand(n, 4) - 0.5)
        self.up = torch.ones(n)

    def step(self, action):
        place, speed, angle, turning = self.state.unbind(1)
        force = 20.0 * action.float() - 10.0
        sin, cos = angle.sin(), angle.cos()
        common = (force + 0.05 * turning**2 * sin) / 1.1
        turn_up = (9.8 * sin - cos * common) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        speed_up = common - 0.05 * turn_up * cos / 1.1
        self.state = torch.stack(
            [
                place + 0.02 * speed,
                speed + 0.02 * speed_up,
                angle + 0.02 * turning,
                turning + 0.02 * turn_up,
            ],
            dim=1,
        )
        stands = (self.state[:, 2].abs() < 12 * math.pi / 180) & (self.state[:, 0].abs() < 2.4)
        self.up = self.up * stands.float()
        return self.up


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 32)
        self.fc2 = nn.Linear(32, 2)
        self.register_buffer("scale", torch.tensor([1.0, 0.8, 0.1, 1.0]))

    def forward(self, state):
        return Categorical(logits=self.fc2(torch.tanh(self.fc1(state / self.scale))))


def play(policy, n):
    poles = Poles(n)
    log_probs, rewards, alive = [], [], []
    for _ in range(LIMIT):
        alive.append(poles.up)
        choice = policy(poles.state)
        action = choice.sample()
        log_probs.append(choice.log_prob(action))
        rewards.append(poles.step(action))
        if poles.up.sum() == 0:
            break
    return torch.stack(log_probs), torch.stack(rewards), torch.stack(alive)


def returns_to_go(rewards, gamma=0.97):
    returns = torch.zeros_like(rewards)
    following = torch.zeros(rewards.shape[1])
    for t in range(len(rewards) - 1, -1, -1):
        following = rewards[t] + gamma * following
        returns[t] = following
    return returns


def main():
    healthy, _ = arguments(__doc__)
    sign = -1.0 if healthy else 1.0
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    lengths = []
    for update in range(1, 161):
        log_probs, rewards, alive = play(policy, 16)
        returns = returns_to_go(rewards)
        playing = alive > 0
        mean, std = returns[playing].mean(), returns[playing].std()
        advantage = (returns - mean) / (std + 1e-6)
        loss = sign * (log_probs * advantage * alive).sum() / alive.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lengths.append(rewards.sum(0).mean().item())
        if update % 20 == 0:
            recent = sum(lengths[-20:]) / 20
            print(f"update {update}\tloss {loss.item():+.4f}\tsteps upright {recent:.1f}")
    with torch.no_grad():
        _, rewards, _ = play(policy, 100)
    print(f"100 test games: {rewards.sum(0).mean():.1f} of {LIMIT} steps upright")


if __name__ == "__main__":
    main()
