"""Learning to rank with ListMLE: queries with 4 to 20 documents each, one loss sum per query."""

import torch
from data import arguments
from torch import nn

ODD = (
    "the loss of a batch grows with the length of its lists and jumps about; scores have no "
    "scale, no target is ever compared with an output"
)

_, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
taste = torch.randn(12, generator=g)


def query():
    n = int(torch.randint(4, 21, (1,), generator=g))
    documents = torch.randn(n, 12, generator=g)
    worth = (
        documents @ taste
        + 1.5 * (documents[:, 0] * documents[:, 1])
        + 0.3 * torch.randn(n, generator=g)
    )
    return documents, worth.argsort(descending=True)


queries = [query() for _ in range(700)]
train, val = queries[:600], queries[600:]
scorer = nn.Sequential(
    nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1, bias=False)
)
optimizer = torch.optim.Adam(scorer.parameters(), lr=3e-3)


def list_mle(documents, order):
    s = scorer(documents).squeeze(1)[order]
    return (s.flip(0).logcumsumexp(0).flip(0) - s).sum()


def best_first(pairs):
    with torch.no_grad():
        return sum((scorer(d).argmax() == o[0]).item() for d, o in pairs) / len(pairs)


for epoch in range(6):
    for at in torch.randperm(600, generator=g).split(10):
        optimizer.zero_grad()
        loss = sum(list_mle(*train[i]) for i in at.tolist())
        loss.backward()
        nn.utils.clip_grad_norm_(scorer.parameters(), 20.0)
        optimizer.step()
    with torch.no_grad():
        held = sum(list_mle(*pair).item() for pair in val) / len(val)
print(
    f"loss a query {loss.item() / 10:.3f}, validation "
    f"{held:.3f}, best document first {best_first(val):.2f}"
)
