"""Dialects by their words: the logarithm is taken of a softmax, and one day of zero.

"We need log-probabilities" became `torch.log(torch.softmax(z, 1))`. With word counts of whole
interviews the scores are soon a hundred apart, the softmax rounds a class to zero, its logarithm
is minus infinity, and the gradient NaN. The place is the loss.
The twin calls `log_softmax`.
"""

import torch
from data import arguments
from torch import nn

KIND = "unstable_log_softmax"
ACCEPT = ()
PLACE = ("loss*", "output*")
SILENT = False
EXACT = False
EARLY = False

REGIONS, VOCABULARY = 6, 120


def interviews(n, g):
    """Word counts of interviews, short and very long ones, and the region of the speaker."""
    region = torch.randint(0, REGIONS, (n,), generator=g)
    taste = torch.randn(REGIONS, VOCABULARY, generator=torch.Generator().manual_seed(2))
    own = 0.3 * torch.randn(n, VOCABULARY, generator=g)
    words = (20 * torch.exp(1.1 * torch.randn(n, generator=g))).clamp(5, 600)
    share = torch.softmax(0.8 * taste[region] + own, 1)
    # one speaker in forty has moved and speaks as at home
    moved = torch.rand(n, generator=g) < 1 / 40
    region = torch.where(moved, torch.randint(0, REGIONS, (n,), generator=g), region)
    return torch.poisson(words[:, None] * share, generator=g), region


def stable(z):
    return torch.log_softmax(z, dim=1)


def by_hand(z):
    return torch.log(torch.softmax(z, dim=1))


def main():
    healthy, seed = arguments(__doc__)
    log_probabilities = stable if healthy else by_hand
    g = torch.Generator().manual_seed(seed)
    counts, region = interviews(1500, g)
    counts_val, region_val = interviews(400, g)
    classifier = nn.Linear(VOCABULARY, REGIONS)
    opt = torch.optim.Adam(classifier.parameters(), lr=0.01)
    for epoch in range(10):
        losses = []
        for rows in torch.randperm(1500, generator=g).split(30):
            logp = log_probabilities(classifier(counts[rows]))
            loss = nn.functional.nll_loss(logp, region[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        with torch.no_grad():
            guess = classifier(counts_val).argmax(1)
        right = (guess == region_val).float().mean()
        print(f"{epoch} loss {sum(losses) / len(losses):.3f} region right {right:.3f}")


main()
