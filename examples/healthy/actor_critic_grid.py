"""An actor and a critic learn to reach a goal; the critic's loss grows as the rewards do.

At first all returns are 0 and easy to tell; as the actor gets better they grow and differ, and the
critic has something to learn. Its loss falls to nearly 0 once all games are won. The actor's loss
means nothing by itself: it wavers about 0.
"""

import torch
from data import arguments
from torch import nn
from torch.distributions import Categorical

ODD = (
    "the value loss rises with the rewards and the policy loss wavers about 0: "
    "the data of both change with the policy"
)
_, seed = arguments(__doc__)

SIZE = 6
GAMMA = 0.96
LONGEST = 30
MOVES = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])


class GridWorlds:
    """Many games side by side: from a random place to the goal in a corner, around two pits."""

    def __init__(self, games):
        self.games = games
        self.goal = torch.tensor([SIZE - 1, SIZE - 1])
        self.pits = torch.tensor([[2, 3], [4, 2]])
        self.reset(torch.ones(games, dtype=torch.bool))

    def reset(self, which):
        if not hasattr(self, "place"):
            self.place = torch.zeros(self.games, 2, dtype=torch.long)
            self.age = torch.zeros(self.games, dtype=torch.long)
        self.place[which] = torch.randint(0, SIZE - 1, (int(which.sum()), 2))
        self.age[which] = 0

    def observe(self):
        return nn.functional.one_hot(self.place[:, 0] * SIZE + self.place[:, 1], SIZE**2).float()

    def step(self, action):
        self.place = (self.place + MOVES[action]).clamp(0, SIZE - 1)
        self.age += 1
        won = (self.place == self.goal).all(1)
        fell = (self.place[:, None] == self.pits).all(2).any(1)
        reward = 10.0 * won - 1.0 * fell
        done = won | fell | (self.age >= LONGEST)
        self.reset(done)
        return reward, done, won


class ActorCritic(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.actor = nn.Sequential(
            nn.Linear(SIZE**2, hidden), nn.Tanh(), nn.Linear(hidden, len(MOVES))
        )
        self.critic = nn.Sequential(nn.Linear(SIZE**2, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, state):
        return Categorical(logits=self.actor(state)), self.critic(state).squeeze(1)


def rollout(env, model, length=12):
    log_probs, values, entropies, rewards, dones = [], [], [], [], []
    finished = won_games = 0
    for _ in range(length):
        policy, value = model(env.observe())
        action = policy.sample()
        reward, done, won = env.step(action)
        log_probs.append(policy.log_prob(action))
        entropies.append(policy.entropy())
        values.append(value)
        rewards.append(reward)
        dones.append(done.float())
        finished += int(done.sum())
        won_games += int(won.sum())
    with torch.no_grad():
        ahead = model(env.observe())[1]
    returns = []
    for reward, done in zip(reversed(rewards), reversed(dones), strict=True):
        ahead = reward + GAMMA * ahead * (1 - done)
        returns.append(ahead)
    returns = torch.stack(returns[::-1])
    stacked = [torch.stack(part) for part in (log_probs, values, entropies)]
    return stacked, returns, won_games / max(finished, 1), torch.stack(rewards).mean().item()


def main():
    env, model = GridWorlds(games=32), ActorCritic()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    means = torch.zeros(4)
    for update in range(1, 401):
        (log_probs, values, entropies), returns, won, reward = rollout(env, model)
        advantage = (returns - values).detach()
        policy_loss = -(log_probs * advantage).mean()
        value_loss = (returns - values).pow(2).mean()
        loss = policy_loss + 0.5 * value_loss - 0.03 * entropies.mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        means += torch.tensor([policy_loss.item(), value_loss.item(), won, reward]) / 25
        if update % 25 == 0:
            print(
                f"update {update:3d} | policy loss {means[0]:+.3f} | value loss {means[1]:.3f} | "
                f"games won {means[2]:.2f} | reward a step {means[3]:.3f}"
            )
            means = torch.zeros(4)


if __name__ == "__main__":
    main()
