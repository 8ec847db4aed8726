"""REINFORCE with a learned baseline and entropy bonus: sort three cards by swapping neighbours."""

import torch
from data import arguments
from torch import nn
from torch.distributions import Categorical

ODD = "the policy loss has no trend, is negative half of the time and says nothing; no data set"

_, seed = arguments(__doc__)
HANDS, MOVES = 32, 5
policy = nn.Sequential(nn.Linear(9, 32), nn.Tanh(), nn.Linear(32, 3))  # swap 01, swap 12, stay
baseline = nn.Sequential(nn.Linear(9, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(
    [{"params": policy.parameters(), "lr": 4e-3}, {"params": baseline.parameters(), "lr": 1e-2}]
)


def deal(n):
    return torch.stack([torch.randperm(3) for _ in range(n)])


def see(cards):
    return nn.functional.one_hot(cards, 3).float().flatten(1)


def move(cards, choice):
    order = torch.tensor([[1, 0, 2], [0, 2, 1], [0, 1, 2]])[choice]
    return cards.gather(1, order)


for episode in range(220):
    cards, log_probs, values, rewards, entropy = deal(HANDS), [], [], [], 0.0
    for _ in range(MOVES):
        seen = see(cards)
        choice = Categorical(logits=policy(seen))
        a = choice.sample()
        log_probs.append(choice.log_prob(a))
        values.append(baseline(seen).squeeze(1))
        entropy = entropy + choice.entropy().mean() / MOVES
        cards = move(cards, a)
        ordered = (cards == torch.arange(3)).all(1).float()
        rewards.append(ordered - 0.1)
    returns = torch.stack(rewards).flip(0).cumsum(0).flip(0)
    log_probs, values = torch.stack(log_probs), torch.stack(values)
    advantage = (returns - values).detach()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
    policy_loss = -(log_probs * advantage).mean() - 0.005 * entropy
    value_loss = (values - returns).square().mean()
    optimizer.zero_grad()
    (policy_loss + 0.5 * value_loss).backward()
    optimizer.step()
print(f"policy loss {policy_loss.item():.3f}, sorted at the end {ordered.mean():.3f}")
