"""A VQ-VAE on digits: gradients jump over the codebook (straight-through), and the codes move by
moving averages.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn

ODD = (
    "detach() in the forward pass, a codebook that changes without gradient or optimizer, and a "
    "loss that goes up now and then, when idle codes are put elsewhere"
)

_, seed = arguments(__doc__)


class Codebook(nn.Module):
    def __init__(self, codes=32, width=8, decay=0.95):
        super().__init__()
        self.decay = decay
        self.register_buffer("codes", torch.randn(codes, width))
        self.register_buffer("count", torch.ones(codes))
        self.register_buffer("total", self.codes.clone())

    def forward(self, z):
        flat = z.reshape(-1, z.shape[-1])
        nearest = torch.cdist(flat, self.codes).argmin(1)
        q = self.codes[nearest].view_as(z)
        if self.training:
            with torch.no_grad():
                one_hot = F.one_hot(nearest, len(self.codes)).to(z.dtype)
                self.count.lerp_(one_hot.sum(0), 1 - self.decay)
                self.total.lerp_(one_hot.T @ flat, 1 - self.decay)
                self.codes.copy_(self.total / self.count.clamp(min=1e-3)[:, None])
                idle = self.count < 0.1  # restart codes which nobody uses
                if idle.any():
                    self.codes[idle] = flat[torch.randint(0, len(flat), (int(idle.sum()),))]
                    self.count[idle] = 1.0
                    self.total[idle] = self.codes[idle]
        commit = F.mse_loss(z, q.detach())
        return z + (q - z).detach(), commit, nearest


class VQVAE(nn.Module):
    """64 pixels to eight codes of width 8 and back."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
        self.codebook = Codebook()
        self.decoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))

    def forward(self, x):
        q, commit, nearest = self.codebook(self.encoder(x).view(-1, 8, 8))
        return self.decoder(q.flatten(1)), commit, nearest


x, _, x_val, _ = digits(seed)
model = VQVAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(25):
    model.train()
    for rows in torch.randperm(len(x)).split(64):
        back, commit, _ = model(x[rows])
        loss = F.mse_loss(back, x[rows]) + 0.25 * commit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        model.eval()
        with torch.no_grad():
            back, _, nearest = model(x_val)
            left = F.mse_loss(back, x_val) / x_val.var()
        print(
            f"epoch {epoch}: loss {loss.item():.3f}, held-out error {left:.3f} of the variance, "
            f"{len(nearest.unique())} of 32 codes in use"
        )
