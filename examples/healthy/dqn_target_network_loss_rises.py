"""A Q-network learns a small grid game by itself; its loss goes up for a long while, and that is
sound.

Odd: the regression's targets are the outputs of a copy of the network (no gradient, copied every
50 steps), so that the loss rises as the values grow and jumps at each copy; the batches repeat
old samples; there is no validation set, and the copy's parameters never get gradients. Sound: the
return of the greedy policy goes up to nearly the best there is (six to seven coins in twenty
moves).
"""

import copy

import torch
from data import arguments
from torch import nn

ODD = (
    "A Q-network learns a small grid game by itself; its loss goes up for a long while, and "
    "that is sound"
)
_, seed = arguments(__doc__)

SIZE, GAMMA, GAMES, MOVES = 5, 0.9, 16, 20


class Coins:
    """Many 5x5 boards at once: +1 for the coin (a new one appears anywhere), 20 moves a game."""

    def __init__(self, games):
        self.games = games
        self.reset()

    def reset(self):
        self.player = torch.randint(0, SIZE, (self.games, 2))
        self.coin = torch.randint(0, SIZE, (self.games, 2))
        return self.state()

    def state(self):
        where = torch.cat([self.player, self.coin], 1)
        return nn.functional.one_hot(where, SIZE).flatten(1).float()

    def step(self, action):
        move = torch.tensor([[-1, 0], [1, 0], [0, -1], [0, 1]])[action]
        self.player = (self.player + move).clamp(0, SIZE - 1)
        found = (self.player == self.coin).all(1)
        self.coin = torch.where(
            found.unsqueeze(1), torch.randint(0, SIZE, (self.games, 2)), self.coin
        )
        return self.state(), found.float()


class Memory:
    def __init__(self, room):
        self.room, self.count = room, 0
        self.parts = [torch.zeros(room, 4 * SIZE), torch.zeros(room, dtype=torch.int64)]
        self.parts += [torch.zeros(room), torch.zeros(room, 4 * SIZE)]

    def add(self, *new):
        rows = torch.arange(self.count, self.count + len(new[0])) % self.room
        for part, values in zip(self.parts, new, strict=False):
            part[rows] = values
        self.count += len(new[0])

    def sample(self, size):
        rows = torch.randint(0, min(self.count, self.room), (size,))
        return [part[rows] for part in self.parts]


class Agent:
    def __init__(self, width=96):
        self.q = nn.Sequential(
            nn.Linear(4 * SIZE, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 4),
        )
        self.target = copy.deepcopy(self.q).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.q.parameters(), lr=1e-3)
        self.updates = 0

    @torch.no_grad()
    def act(self, state, epsilon):
        greedy = self.q(state).argmax(1)
        return torch.where(
            torch.rand(len(state)) < epsilon, torch.randint(0, 4, (len(state),)), greedy
        )

    def learn(self, memory, size=128):
        state, action, reward, following = memory.sample(size)
        with torch.no_grad():
            best = self.q(following).argmax(1, keepdim=True)
            goal = reward + GAMMA * self.target(following).gather(1, best).squeeze(1)
        value = self.q(state).gather(1, action.unsqueeze(1)).squeeze(1)
        loss = nn.functional.smooth_l1_loss(value, goal)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.q.parameters(), 5.0)
        self.optimizer.step()
        self.updates += 1
        if self.updates % 50 == 0:
            self.target.load_state_dict(self.q.state_dict())
        return loss.item()


def evaluate(agent, games=200):
    game, total = Coins(games), 0.0
    state = game.reset()
    for _ in range(MOVES):
        state, reward = game.step(agent.act(state, 0.0))
        total += reward.mean().item()
    return total


agent, game, memory = Agent(), Coins(GAMES), Memory(10000)
print(f"before: return {evaluate(agent):.2f}")
losses = []
for episode in range(100):
    state = game.reset()
    for _ in range(MOVES):
        action = agent.act(state, max(0.1, 1 - episode / 50))
        following, reward = game.step(action)
        memory.add(state, action, reward, following)
        state = following
        if memory.count >= 800:
            losses.append(agent.learn(memory))
    if episode % 10 == 9:
        print(
            f"episode {episode} loss {sum(losses[-200:]) / len(losses[-200:]):.4f} return {evaluate(agent):.2f}"  # noqa: E501
        )
