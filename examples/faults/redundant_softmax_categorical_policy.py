"""REINFORCE with a baseline teaches a robot to cross a small grid with walls. The policy's last
layer is a softmax, and what it returns is handed to Categorical as logits.

The softmax is so taken twice: the four probabilities cannot leave the range of about 0.17 to 0.48,
so the robot dithers for good although its returns do rise at first. The place is the policy's head.
"""

import torch
from data import arguments
from torch import nn
from torch.distributions import Categorical

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("policy*", "loss")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Grids:
    """Many 5 by 5 grids at once: start anywhere, the goal in the corner; a step costs 0.1."""

    moves = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])
    walls = torch.tensor(
        [[0, 0, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 0, 1], [0, 1, 0, 1, 0], [0, 0, 0, 0, 0]]
    )

    def __init__(self, n):
        self.n = n

    def reset(self):
        free = (self.walls == 0).nonzero()[:-1]
        self.at = free[torch.randint(len(free), (self.n,))]
        self.done = torch.zeros(self.n, dtype=torch.bool)
        return self.see()

    def see(self):
        return nn.functional.one_hot(self.at[:, 0] * 5 + self.at[:, 1], 25).float()

    def step(self, action):
        to = self.at + self.moves[action]
        blocked = ((to < 0) | (to > 4)).any(1)
        inside = to.clamp(0, 4)
        blocked |= self.walls[inside[:, 0], inside[:, 1]] == 1
        self.at = torch.where((blocked | self.done)[:, None], self.at, to)
        alive = ~self.done
        arrived = alive & (self.at == 4).all(1)
        self.done = self.done | arrived
        return self.see(), arrived.float() - 0.1 * alive.float(), alive


class Policy(nn.Sequential):
    def __init__(self):
        layers = [nn.Linear(25, 64), nn.Tanh(), nn.Linear(64, 4)]
        if not healthy:
            layers.append(nn.Softmax(dim=-1))
        super().__init__(*layers)


policy, baseline = Policy(), nn.Linear(25, 1)
optimizer = torch.optim.Adam(
    [{"params": policy.parameters(), "lr": 1e-2}, {"params": baseline.parameters(), "lr": 3e-2}]
)


def play(grids, horizon=25):
    seen, said, rewards, alive = grids.reset(), [], [], []
    states = []
    for _ in range(horizon):
        choice = Categorical(logits=policy(seen))
        action = choice.sample()
        states.append(seen)
        said.append(torch.stack([choice.log_prob(action), choice.entropy()]))
        seen, reward, live = grids.step(action)
        rewards.append(reward)
        alive.append(live)
    return torch.stack(states), torch.stack(said), torch.stack(rewards), torch.stack(alive).float()


grids = Grids(48)
for update in range(1, 151):
    states, said, rewards, alive = play(grids)
    returns, running = torch.zeros_like(rewards), torch.zeros(grids.n)
    for t in reversed(range(len(rewards))):
        running = rewards[t] + 0.97 * running
        returns[t] = running
    value = baseline(states).squeeze(-1)
    advantage = (returns - value).detach()
    count = alive.sum()
    loss = (
        -(said[:, 0] * advantage * alive).sum() / count - 0.005 * (said[:, 1] * alive).sum() / count
    )
    loss = loss + 0.5 * ((value - returns) ** 2 * alive).sum() / count
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    optimizer.step()
    if update % 15 == 0:
        with torch.no_grad():
            *_, rewards, alive = play(Grids(300))
        print(
            f"update {update} loss {loss.item():.4f} return {rewards.sum(0).mean():.3f}"
            f" steps {alive.sum(0).mean():.1f}"
        )
