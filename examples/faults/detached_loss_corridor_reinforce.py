"""Teaches a player to walk a small maze by REINFORCE; the loss is made of plain numbers.

The losses of an episode's moves were gathered with `.item()` to keep the list small, and put
together by `torch.tensor(...)`. PyTorch complained that the result needs no gradient, so
`requires_grad=True` was added: backward runs, but no parameter ever gets a gradient.
The place is the loss. The twin stacks the tensors.
"""

import torch
from data import arguments
from torch import nn
from torch.distributions import Categorical

KIND = "detached_loss"
ACCEPT = ("detached_graph", "step_without_gradient")
PLACE = ("loss*", "loop")
SILENT = False
EXACT = True
EARLY = True

SIZE, GOAL, MAX_MOVES = 4, (3, 3), 20
WALLS = {(1, 1), (2, 1), (1, 3)}
MOVES = [(-1, 0), (1, 0), (0, -1), (0, 1)]


class Maze:
    def reset(self):
        self.at, self.count = (0, 0), 0
        return self.observe()

    def observe(self):
        view = torch.zeros(SIZE * SIZE)
        view[self.at[0] * SIZE + self.at[1]] = 1.0
        return view

    def step(self, action):
        r, c = self.at[0] + MOVES[action][0], self.at[1] + MOVES[action][1]
        self.count += 1
        if 0 <= r < SIZE and 0 <= c < SIZE and (r, c) not in WALLS:
            self.at = (r, c)
        won = self.at == GOAL
        return self.observe(), 1.0 if won else -0.05, won or self.count >= MAX_MOVES


def play(env, policy):
    seen, log_probs, rewards = env.reset(), [], []
    done = False
    while not done:
        choice = Categorical(logits=policy(seen))
        action = choice.sample()
        log_probs.append(choice.log_prob(action))
        seen, reward, done = env.step(int(action))
        rewards.append(reward)
    return log_probs, rewards


def discounted(rewards, gamma=0.95):
    out, running = [], 0.0
    for reward in reversed(rewards):
        running = reward + gamma * running
        out.append(running)
    return out[::-1]


healthy, seed = arguments(__doc__)
env = Maze()
policy = nn.Sequential(nn.Linear(SIZE * SIZE, 32), nn.Tanh(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
baseline = 0.0
scores = []
for update in range(200):
    terms = []
    for _ in range(4):
        log_probs, rewards = play(env, policy)
        scores.append(sum(rewards))
        for log_prob, ret in zip(log_probs, discounted(rewards), strict=False):
            term = -log_prob * (ret - baseline)
            terms.append(term if healthy else term.item())
            baseline += 0.002 * (ret - baseline)
    loss = torch.stack(terms).mean() if healthy else torch.tensor(terms, requires_grad=True).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (update + 1) % 25 == 0:
        print(
            f"update {update + 1}: loss {loss.item():.3f}, "
            f"mean score of 100 games {sum(scores[-100:]) / len(scores[-100:]):.3f}"
        )
