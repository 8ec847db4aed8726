"""A vector-quantised auto-encoder: straight-through gradients, the codebook a moving average."""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

ODD = (
    "the codebook has no gradient and changes outside the optimizer; detach() three times; "
    "unused codes"
)

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)


class Codebook(nn.Module):
    def __init__(self, codes=64, dim=8, decay=0.95):
        super().__init__()
        self.decay = decay
        self.register_buffer("book", torch.randn(codes, dim))
        self.register_buffer("count", torch.ones(codes))
        self.register_buffer("total", self.book.clone())

    def forward(self, z):
        flat = z.reshape(-1, self.book.shape[1])
        chosen = torch.cdist(flat.detach(), self.book).argmin(1)
        quantised = self.book[chosen].view_as(z)
        if self.training:
            hot = F.one_hot(chosen, len(self.book)).float()
            self.count.mul_(self.decay).add_(hot.sum(0), alpha=1 - self.decay)
            self.total.mul_(self.decay).add_(hot.T @ flat.detach(), alpha=1 - self.decay)
            self.book.copy_(self.total / self.count.clamp(min=1e-2).unsqueeze(1))
        commitment = (z - quantised.detach()).square().mean()
        return z + (quantised - z).detach(), commitment


encoder = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 48))
decoder = nn.Sequential(nn.Linear(48, 96), nn.ReLU(), nn.Linear(96, 64))
codebook = Codebook()
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
for (pixels,) in batches(x, size=64, steps=450, seed=seed):
    z, commitment = codebook(encoder(pixels).view(-1, 6, 8))
    loss = F.mse_loss(decoder(z.flatten(1)), pixels) + 0.25 * commitment
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
codebook.eval()
with torch.no_grad():
    val_loss = F.mse_loss(decoder(codebook(encoder(x_val).view(-1, 6, 8))[0].flatten(1)), x_val)
print(f"loss {loss.item():.3f}, validation error {val_loss:.3f} of a variance of 1")
