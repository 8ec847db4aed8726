"""A prototypical network learns plankton species from few examples, and takes the log of a
softmax by hand.

The scores are negative squared distances to the class prototypes. Where a query is more than
about 100 further from its own prototype than from another, softmax gives exactly 0 in float32,
the log gives -inf and the gradient NaN. The place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "unstable_log_softmax"
ACCEPT = ()
PLACE = ("loss",)
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
WAYS, SHOTS, QUERIES, FEATURES = 6, 5, 10, 24


class Sea:
    """Species with a shape each; an animal is its species turned and grown, seen through 24
    descriptors.
    """

    def __init__(self, generator, species):
        self.g = generator
        self.mean = torch.randn(species, 8, generator=generator)
        self.view = torch.randn(8, FEATURES, generator=torch.Generator().manual_seed(77)) / 8**0.5

    def catch(self, kind, n):
        body = self.mean[kind] + 0.45 * torch.randn(n, 8, generator=self.g)
        size = 1 + 0.2 * torch.randn(n, 1, generator=self.g)
        return size * torch.tanh(body @ self.view) + 0.1 * torch.randn(
            n, FEATURES, generator=self.g
        )

    def episode(self):
        kinds = torch.randperm(len(self.mean), generator=self.g)[:WAYS]
        animals = torch.stack([self.catch(k, SHOTS + QUERIES) for k in kinds])
        return (
            animals[:, :SHOTS],
            animals[:, SHOTS:].reshape(-1, FEATURES),
            torch.arange(WAYS).repeat_interleave(QUERIES),
        )


class Embedder(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(FEATURES, 128), nn.GELU(), nn.Linear(128, dim))
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        return self.norm(self.net(x))


def scores(model, support, query):
    prototypes = model(support).mean(1)
    return -(model(query).unsqueeze(1) - prototypes.unsqueeze(0)).square().sum(-1)


def episode_loss(score, target):
    log_p = F.log_softmax(score, 1) if healthy else torch.log(torch.softmax(score, 1))
    return -log_p[torch.arange(len(target)), target].mean()


generator = torch.Generator().manual_seed(seed)
sea, other_sea = Sea(generator, 60), Sea(generator, 25)
model = Embedder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def validate(episodes=40):
    model.eval()
    with torch.no_grad():
        hits = 0.0
        for _ in range(episodes):
            support, query, target = other_sea.episode()
            hits += (scores(model, support, query).argmax(1) == target).float().mean().item()
    model.train()
    return hits / episodes


for step in range(1, 1201):
    support, query, target = sea.episode()
    loss = episode_loss(scores(model, support, query), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step} loss {loss.item():.4f} accuracy on new species {validate():.3f}")
