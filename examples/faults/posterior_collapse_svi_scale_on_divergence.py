"""Gene expression of single cells: a variational auto-encoder with counts of Poisson.

Stochastic variational inference scales a batch up to the whole set, by N / B. Here the factor found
its way to the divergence only: the codes are pushed onto the prior forty times too hard and say
nothing about the cell; every cell is decoded as the average one. The loss falls all the same
(silent). The place is the loss. The twin has no factor, since both terms are means over the batch.
"""

import torch
from data import arguments
from torch import nn
from torch.distributions import Normal, Poisson, kl_divergence
from torch.utils.data import DataLoader, TensorDataset

KIND = "posterior_collapse"
ACCEPT = ("over_regularized",)
PLACE = ("encoder*", "mean*", "log_scale*", "decoder*", "loss*", "loop", "")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
GENES, CODES, TYPES = 40, 6, 5


class CellVae(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(GENES, width), nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, width),
            nn.ReLU(),
        )  # fmt: skip
        self.mean, self.log_scale = nn.Linear(width, CODES), nn.Linear(width, CODES)
        self.decoder = nn.Sequential(
            nn.Linear(CODES, width), nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, GENES)
        )

    def posterior(self, counts):
        h = self.encoder(torch.log1p(counts))
        return Normal(self.mean(h), self.log_scale(h).clamp(-6, 3).exp())

    def rates(self, z, size):
        return self.decoder(z).softmax(1) * size

    def forward(self, counts):
        q = self.posterior(counts)
        size = counts.sum(1, keepdim=True)
        likelihood = Poisson(self.rates(q.rsample(), size) + 1e-6).log_prob(counts).sum(1)
        kl = kl_divergence(q, Normal(0.0, 1.0)).sum(1)
        return likelihood.mean(), kl.mean()


def cells(n, g):
    known = torch.Generator().manual_seed(11)
    profile = torch.randn(TYPES, GENES, generator=known)
    program = 0.8 * torch.randn(GENES, generator=known)
    kind = torch.randint(0, TYPES, (n,), generator=g)
    activity = torch.randn(n, 1, generator=g)
    share = (profile[kind] + activity * program).softmax(1)
    depth = 150 * torch.exp(0.3 * torch.randn(n, 1, generator=g))
    return torch.poisson(share * depth, generator=g), kind


g = torch.Generator().manual_seed(seed)
counts, _ = cells(2000, g)
unseen, kinds = cells(500, g)
loader = DataLoader(TensorDataset(counts), batch_size=50, shuffle=True)
scale = 1.0 if healthy else len(loader.dataset) / loader.batch_size
model = CellVae()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    mean = 0.0
    for (batch,) in loader:
        likelihood, kl = model(batch)
        loss = -likelihood + scale * kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean += loss.item() / len(loader)
    with torch.no_grad():
        q = model.posterior(unseen)
        likelihood, kl = model(unseen)
        centres = torch.stack([q.mean[kinds == k].mean(0) for k in range(TYPES)])
        nearest = torch.cdist(q.mean, centres).argmin(1)
        types = (nearest == kinds).float().mean().item()
    print(
        f"epoch {epoch} loss {mean:.3f} val nll {-likelihood.item():.2f} "
        f"kl {kl.item():.3f} types told apart {types:.3f}"
    )
