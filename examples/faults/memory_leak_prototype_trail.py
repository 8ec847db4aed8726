"""A few-shot learner of seals keeps codes of fixed seals after each step, with graphs, for a plot.

Their prototypes are never part of a backward pass, so each entry of the list holds a whole forward
pass of the fixed prints: the memory grows by some hundred kilobytes a step and is never given
back. The place is the loop: the list trail.
"""

import resource

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "memory_leak"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SIDE, WAYS, SHOTS, QUERIES = 14, 5, 4, 6
SEALS, KEPT_BACK, EPISODES = 60, 15, 300


def seals(g):
    """Coarse random patterns, one per seal; each print is moved, faint in places and noisy."""
    coarse = torch.randn(SEALS, 1, 4, 4, generator=g)
    return F.interpolate(coarse, (SIDE, SIDE), mode="bicubic").squeeze(1)


def prints(pattern, n, g):
    ink = 0.5 + torch.rand(n, 1, 1, generator=g)
    moved = torch.stack(
        [
            pattern.roll(tuple(torch.randint(-1, 2, (2,), generator=g).tolist()), (0, 1))
            for _ in range(n)
        ]
    )
    return (ink * moved + 0.9 * torch.randn(n, SIDE, SIDE, generator=g)).unsqueeze(1)


def episode(patterns, g):
    chosen = patterns[torch.randperm(len(patterns), generator=g)[:WAYS]]
    drawn = torch.stack([prints(pattern, SHOTS + QUERIES, g) for pattern in chosen])
    label = torch.arange(WAYS).repeat_interleave(QUERIES)
    return {"support": drawn[:, :SHOTS], "query": drawn[:, SHOTS:].flatten(0, 1), "label": label}


def embedder(channels=12, code=24):
    return nn.Sequential(
        nn.Conv2d(1, channels, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(channels, channels, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(channels * 9, code),
    )


def prototypes_of(model, support):
    return model(support.flatten(0, 1)).view(WAYS, SHOTS, -1).mean(1)


def scores_of(model, prototypes, query):
    return -torch.cdist(model(query), prototypes).square() / 10


def memory_used():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def judged(model, patterns, g, rounds=40):
    hits = 0.0
    with torch.no_grad():
        for _ in range(rounds):
            task = episode(patterns, g)
            scores = scores_of(model, prototypes_of(model, task["support"]), task["query"])
            hits += (scores.argmax(1) == task["label"]).float().mean().item()
    return hits / rounds


g = torch.Generator().manual_seed(seed)
patterns = seals(g)
known, new = patterns[:-KEPT_BACK], patterns[-KEPT_BACK:]
model = embedder()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
fixed, trail = episode(known, g)["support"], []
for number in range(EPISODES):
    task = episode(known, g)
    prototypes = prototypes_of(model, task["support"])
    loss = F.cross_entropy(scores_of(model, prototypes, task["query"]), task["label"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    drift = prototypes_of(model, fixed)
    trail.append(drift.detach() if healthy else drift)
    if number == 9:
        before = memory_used()
    if number % 50 == 49:
        moved = (drift.detach() - trail[-50].detach()).norm(dim=1).mean().item()
        print(f"episode {number + 1}  loss {loss.item():.3f}  fixed seals moved by {moved:.3f}")
print(f"right on new seals {judged(model, new, g):.3f}")
with_graph = sum(kept.grad_fn is not None for kept in trail)
print(
    f"kept prototypes {len(trail)}, with a graph {with_graph}, "
    f"memory grown by {(memory_used() - before) / 1024:.0f} MB"
)
