"""An actor-critic learns to ride out gusts with a kite, and the critic's loss grows fivefold just
while the policy becomes better.

People ask whether the critic diverges. The values it has to foretell grow with the returns:
flights of three steps are easily foretold, flights of ten to fifty are not. The return rises, and
that is what counts; once all flights are long the loss falls.
"""

import torch
from data import arguments
from torch import nn

ODD = (
    "the critic's loss grows fivefold while the policy improves most: its targets, the returns, "
    "grow and spread"
)
_, seed = arguments(__doc__)

KITES, LONGEST, DISCOUNT, REWARD = 24, 60, 0.98, 0.1


class Kites:
    """Kites in the wind, that fall when they lean too far. Steer left, right, or not."""

    def reset(self):
        self.lean = 0.2 * torch.randn(KITES)
        self.turn = 0.2 * torch.randn(KITES)
        self.moment = 0
        return self.seen()

    def seen(self):
        time = torch.full((KITES,), 2 * self.moment / LONGEST - 1)
        return torch.stack([2 * self.lean, self.turn, time], 1)

    def step(self, action):
        gust = 0.25 * torch.randn(KITES)
        self.turn = self.turn + 0.15 * (4 * self.lean + 4 * (action - 1.0) + 2 * gust)
        self.lean = self.lean + 0.15 * self.turn
        self.moment += 1
        return self.seen(), self.lean.abs() > 1.0


class ActorCritic:
    def __init__(self):
        self.actor = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 3))
        self.critic = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=4e-3)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=1e-2)

    @torch.no_grad()
    def fly(self, kites):
        seen, flying = kites.reset(), torch.ones(KITES, dtype=torch.bool)
        flight = {"seen": [], "action": [], "flying": []}
        for _ in range(LONGEST):
            action = torch.distributions.Categorical(logits=self.actor(seen)).sample()
            for name, part in (("seen", seen), ("action", action), ("flying", flying)):
                flight[name].append(part)
            seen, fallen = kites.step(action)
            flying = flying & ~fallen
        return {name: torch.stack(parts) for name, parts in flight.items()}

    def learn(self, flight):
        flying = flight["flying"]
        returns, ahead = [], torch.zeros(KITES)
        for up in flying.flip(0):
            ahead = up * (REWARD + DISCOUNT * ahead)
            returns.append(ahead)
        returns = torch.stack(returns[::-1])[flying]
        seen, action = flight["seen"][flying], flight["action"][flying]
        value = self.critic(seen)[:, 0]
        critic_loss = (value - returns).square().mean()
        advantage = returns - value.detach()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        policy = torch.distributions.Categorical(logits=self.actor(seen))
        actor_loss = -(policy.log_prob(action) * advantage).mean() - 0.01 * policy.entropy().mean()
        pairs = (self.critic_optimizer, critic_loss), (self.actor_optimizer, actor_loss)
        for optimizer, loss in pairs:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return critic_loss.item(), flying.float().sum(0).mean().item()


def main():
    learner, kites = ActorCritic(), Kites()
    losses, lengths = [], []
    for iteration in range(1, 181):
        loss, length = learner.learn(learner.fly(kites))
        losses.append(loss)
        lengths.append(length)
        if iteration % 10 == 0:
            print(
                f"iteration {iteration:3d}  critic loss {sum(losses[-10:]) / 10:.4f}"
                f"  steps in the air {sum(lengths[-10:]) / 10:5.1f} of {LONGEST}"
            )


main()
