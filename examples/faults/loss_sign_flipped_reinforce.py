"""REINFORCE with a baseline on a game of choosing one of six levers by what is seen.

Fault: the formula of the book is for ascent; the minus that a descent needs was left out: the
policy learns to lose. The place is the loss. The "loss" falls; so do the rewards.
"""

import torch
from data import arguments
from torch import nn
from torch.distributions import Categorical

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss*", "loop")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
hidden = torch.randn(8, 6)


def play(state, action):
    value = (state @ hidden).gather(1, action[:, None]).squeeze(1)
    return value + 0.3 * torch.randn(len(state))


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.Tanh())
        self.actor = nn.Linear(32, 6)
        self.critic = nn.Linear(32, 1)

    def forward(self, state):
        h = self.body(state)
        return Categorical(logits=self.actor(h)), self.critic(h).squeeze(1)


policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
exam = torch.randn(500, 8)


@torch.no_grad()
def mean_reward():
    best = policy(exam)[0].probs.argmax(1)
    return play(exam, best).mean().item()


for episode in range(1, 401):
    state = torch.randn(64, 8)
    choice, value = policy(state)
    action = choice.sample()
    reward = play(state, action)
    advantage = (reward - value).detach()
    gain = (choice.log_prob(action) * advantage).mean()
    actor_loss = -gain if healthy else gain
    loss = actor_loss + 0.5 * (reward - value).pow(2).mean() - 0.01 * choice.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 5.0)
    optimizer.step()
    if episode % 80 == 0:
        print(f"episode {episode}: loss {loss.item():.3f}, reward {mean_reward():.3f}")
print(f"loss {loss.item():.4f} | validation reward {mean_reward():.3f}")
