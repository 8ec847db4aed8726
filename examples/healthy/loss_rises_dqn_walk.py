"""A deep Q-network crosses a field with holes; its loss rises as it reaches the goal more often.

At first all values are near zero and so are the errors; as rewards are found the values grow, the
targets move, and the errors with them. Nothing is wrong.
"""

import random
from collections import deque

import torch
from data import arguments
from torch import nn

ODD = "the loss rises while the return improves: the targets grow with the values that are learned"

SIDE = 5
GOAL = (4, 4)
HOLES = {(1, 3), (3, 1)}
MOVES = [(-1, 0), (1, 0), (0, -1), (0, 1)]


class Field:
    def reset(self):
        self.place = random.choice([(0, 0), (0, 1), (1, 0), (1, 1)])
        self.time = 0
        return self.place

    def step(self, action):
        if random.random() < 0.1:
            action = random.randrange(4)
        row = min(max(self.place[0] + MOVES[action][0], 0), SIDE - 1)
        col = min(max(self.place[1] + MOVES[action][1], 0), SIDE - 1)
        self.place, self.time = (row, col), self.time + 1
        if self.place == GOAL:
            return self.place, 10.0, True
        if self.place in HOLES:
            return self.place, 0.0, True
        return self.place, 0.0, self.time >= 30


def observe(places):
    index = torch.tensor([r * SIDE + c for r, c in places])
    return nn.functional.one_hot(index, SIDE * SIDE).float()


def build_net():
    return nn.Sequential(
        nn.Linear(SIDE * SIDE, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4)
    )


class Agent:
    def __init__(self, gamma=0.9, lr=5e-4, batch_size=64):
        self.online, self.target = build_net(), build_net()
        self.target.load_state_dict(self.online.state_dict())
        self.target.requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=lr)
        self.memory = deque(maxlen=5000)
        self.gamma, self.batch_size = gamma, batch_size
        self.updates = 0

    def act(self, place, epsilon):
        if random.random() < epsilon:
            return random.randrange(4)
        with torch.no_grad():
            return self.online(observe([place])).argmax().item()

    def learn(self):
        places, actions, rewards, following, ends = zip(
            *random.sample(self.memory, self.batch_size), strict=True
        )
        value = self.online(observe(places)).gather(1, torch.tensor(actions).unsqueeze(1))
        with torch.no_grad():
            choice = self.online(observe(following)).argmax(1, keepdim=True)
            best = self.target(observe(following)).gather(1, choice).squeeze(1)
            goal = torch.tensor(rewards) + self.gamma * best * (1 - torch.tensor(ends).float())
        loss = nn.functional.mse_loss(value.squeeze(1), goal)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.online.parameters(), 10.0)
        self.optimizer.step()
        self.updates += 1
        if self.updates % 100 == 0:
            self.target.load_state_dict(self.online.state_dict())
        return loss.item()


def greedy_return(agent, games=60):
    env, total = Field(), 0.0
    for _ in range(games):
        place, end = env.reset(), False
        while not end:
            place, reward, end = env.step(agent.act(place, 0.0))
            total += reward
    return total / games


def main():
    arguments(__doc__)
    agent, env = Agent(), Field()
    place, losses = env.reset(), []
    for step in range(1, 4001):
        epsilon = max(0.1, 1 - step / 3000)
        action = agent.act(place, epsilon)
        following, reward, end = env.step(action)
        agent.memory.append((place, action, reward, following, end and env.time < 30))
        place = env.reset() if end else following
        if step >= 200 and step % 2 == 0:
            losses.append(agent.learn())
        if step % 400 == 0:
            recent = losses[-150:]
            print(
                f"step {step}: epsilon {epsilon:.2f}, loss {sum(recent) / len(recent):.4f}, "
                f"greedy return {greedy_return(agent):.2f}"
            )


if __name__ == "__main__":
    main()
