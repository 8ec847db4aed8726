"""REINFORCE on a falling-ball game minimises log-probability times advantage, without the minus.

The optimizer then makes good moves rarer and bad ones likelier: the share of balls caught falls
below that of random play. The place is the loss.
"""

import torch
from data import arguments
from torch import nn
from torch.distributions import Categorical

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss*", "loop", "")
SILENT = True
EXACT = False
EARLY = False

healthy, _ = arguments(__doc__)
WIDTH, HEIGHT, GAMES = 7, 5, 64


class Catch:
    """Many games at once: a ball falls straight down, the paddle moves left, stays or moves
    right.
    """

    def reset(self):
        self.ball = torch.randint(WIDTH, (GAMES,))
        self.paddle = torch.randint(1, WIDTH - 1, (GAMES,))
        self.row = 0
        return self.observe()

    def observe(self):
        ball = nn.functional.one_hot(self.ball, WIDTH)
        paddle = nn.functional.one_hot(self.paddle, WIDTH)
        row = torch.full((GAMES, 1), self.row / HEIGHT)
        return torch.cat([ball, paddle, row], 1).float()

    def step(self, action):
        self.paddle = (self.paddle + action - 1).clamp(0, WIDTH - 1)
        self.row += 1
        done = self.row == HEIGHT
        reward = (self.ball == self.paddle).float() if done else torch.zeros(GAMES)
        return self.observe(), reward, done


policy = nn.Sequential(nn.Linear(2 * WIDTH + 1, 48), nn.Tanh(), nn.Linear(48, 3))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
env = Catch()
caught_average = None

for episode in range(1, 301):
    observation, done, log_probs = env.reset(), False, []
    while not done:
        choice = Categorical(logits=policy(observation))
        action = choice.sample()
        log_probs.append(choice.log_prob(action))
        observation, reward, done = env.step(action)
    advantage = reward - reward.mean()
    objective = (torch.stack(log_probs).sum(0) * advantage).mean()
    loss = -objective if healthy else objective

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    now = reward.mean().item()
    caught_average = now if caught_average is None else 0.95 * caught_average + 0.05 * now
    if episode % 50 == 0:
        print(f"episode {episode}: caught {caught_average:.3f}")
