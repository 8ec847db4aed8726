"""A factorization machine's interaction vectors start at zero, where their gradient is zero as
well.

With all v = 0 the pairwise term and its derivative vanish: the factors never leave zero, and the
model stays a linear one while the clicks depend on pairs. The place is the table of factors.
"""

import torch
from data import arguments
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ("vanishing_gradient",)
PLACE = ("factors*", "fm*", "")
SILENT = True
EXACT = True
EARLY = True

FIELDS, VALUES, K = 5, 8, 6


class FactorizationMachine(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(()))
        self.linear = nn.Embedding(FIELDS * VALUES, 1)
        self.factors = nn.Embedding(FIELDS * VALUES, K)
        nn.init.zeros_(self.linear.weight)
        start(self.factors.weight)

    def forward(self, ids):
        v = self.factors(ids)
        pairs = 0.5 * (v.sum(1).pow(2) - v.pow(2).sum(1)).sum(1)
        return self.bias + self.linear(ids).sum((1, 2)) + pairs


def clicks(n, hidden):
    ids = torch.randint(VALUES, (n, FIELDS)) + VALUES * torch.arange(FIELDS)
    v = hidden[ids]
    logit = 0.5 * (v.sum(1).pow(2) - v.pow(2).sum(1)).sum(1)
    return ids, torch.bernoulli(torch.sigmoid(2.5 * logit))


def main():
    healthy, _ = arguments(__doc__)
    hidden = torch.randn(FIELDS * VALUES, 3) * 0.6
    ids, y = clicks(6000, hidden)
    test_ids, test_y = clicks(1500, hidden)
    start = (lambda w: nn.init.normal_(w, std=0.1)) if healthy else nn.init.zeros_
    model = FactorizationMachine(start)
    opt = torch.optim.Adagrad(model.parameters(), lr=0.15)
    bce = nn.BCEWithLogitsLoss()
    for epoch in range(12):
        order = torch.randperm(len(ids))
        for i in range(0, len(ids), 200):
            b = order[i : i + 200]
            opt.zero_grad()
            loss = bce(model(ids[b]), y[b])
            loss.backward()
            opt.step()
        with torch.no_grad():
            out = model(test_ids)
        right = ((out > 0) == test_y.bool()).float().mean()
        print(f"epoch {epoch}: test loss {bce(out, test_y).item():.3f} accuracy {right.item():.3f}")


main()
