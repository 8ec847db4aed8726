"""A vector-quantised auto-encoder: of 32 vectors of the codebook a part is never chosen."""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

ODD = "codes that are never used, detach() in the loss and in the pass, three terms of a loss"


class VQ(nn.Module):
    def __init__(self, codes=32, dim=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 4 * dim))
        self.codebook = nn.Embedding(codes, dim)
        nn.init.uniform_(self.codebook.weight, -0.5, 0.5)
        self.decoder = nn.Sequential(nn.Linear(4 * dim, 48), nn.ReLU(), nn.Linear(48, 64))
        self.dim = dim

    def forward(self, x):
        z = self.encoder(x).view(len(x), 4, self.dim)
        nearest = torch.cdist(z.flatten(0, 1), self.codebook.weight).argmin(1)
        e = self.codebook(nearest).view_as(z)
        extra = F.mse_loss(e, z.detach()) + 0.25 * F.mse_loss(z, e.detach())
        return self.decoder((z + (e - z).detach()).flatten(1)), extra


_, seed = arguments(__doc__)
x, *_ = digits(seed)
model = VQ()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for (rows,) in batches(x, size=64, steps=300, seed=seed):
    out, extra = model(rows)
    loss = F.mse_loss(out, rows) + extra
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
