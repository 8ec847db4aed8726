"""Few-shot learning by distances to prototypes, with the logarithm taken of a finished softmax.

The loss is the formula term by term: softmax over negative squared distances, then log. In 64
dimensions the distances differ by more than 100, the softmax gives an exact zero, its log is minus
infinity, and the weights become NaN. The place is the loss.
"""

import torch
from data import arguments
from torch import nn

KIND = "unstable_log_softmax"
ACCEPT = ("exploding_gradient",)
PLACE = ("loss", "embed*")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

N_WAY, N_SHOT, N_QUERY = 5, 3, 6
FEATURES, HIDDEN, SPACE = 40, 96, 64
EPISODES = 500


class World:
    """Classes are points on a curved sheet in 40 dimensions; half of the columns only disturb."""

    def __init__(self, classes):
        self.centres = torch.randn(classes, 6)
        fixed = torch.Generator().manual_seed(5)
        self.lift = torch.randn(6, FEATURES // 2, generator=fixed)

    def draw(self, classes, per_class):
        hidden = self.centres[classes].repeat_interleave(per_class, 0)
        hidden = hidden + 0.25 * torch.randn_like(hidden)
        signal = torch.tanh(hidden @ self.lift) * 1.4
        return torch.cat([signal, torch.randn(len(hidden), FEATURES // 2)], 1)

    def episode(self):
        classes = torch.randperm(len(self.centres))[:N_WAY]
        support = self.draw(classes, N_SHOT)
        query = self.draw(classes, N_QUERY)
        return support, query, torch.arange(N_WAY).repeat_interleave(N_QUERY)


def squared_distances(a, b):
    return (a.unsqueeze(1) - b.unsqueeze(0)).pow(2).sum(-1)


def episode_scores(embed, support, query):
    prototypes = embed(support).view(N_WAY, N_SHOT, -1).mean(1)
    return -squared_distances(embed(query), prototypes)


def negative_log_likelihood(scores, target):
    log_p = scores.log_softmax(dim=1) if healthy else torch.log(scores.softmax(dim=1))
    return -log_p.gather(1, target.unsqueeze(1)).mean()


def score(embed, world, episodes=60):
    embed.eval()
    right = 0
    with torch.no_grad():
        for _ in range(episodes):
            support, query, target = world.episode()
            right += (episode_scores(embed, support, query).argmax(1) == target).sum().item()
    embed.train()
    return right / (episodes * N_WAY * N_QUERY)


def main():
    train_world, test_world = World(60), World(20)
    embed = nn.Sequential(
        nn.Linear(FEATURES, HIDDEN),
        nn.LayerNorm(HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, SPACE),
        nn.LayerNorm(SPACE),
    )
    optimizer = torch.optim.Adam(embed.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=200, gamma=0.5)
    shown = 0.0
    for episode in range(1, EPISODES + 1):
        support, query, target = train_world.episode()
        loss = negative_log_likelihood(episode_scores(embed, support, query), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        shown += loss.item()
        if episode % 50 == 0:
            accuracy = score(embed, test_world)
            print(f"episode {episode}: loss {shown / 50:.3f}, new classes {accuracy:.3f}")
            shown = 0.0


main()
