"""A vector-quantised autoencoder without the straight-through estimator.

The decoder gets the chosen codes themselves, which the codebook's moving averages keep up: no
gradient reaches the encoder, which stays as it was made. The twin passes gradients straight
through and has the commitment term. The place is the encoder.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("encoder", "encoder.0", "encoder.2", "quantize", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Quantizer(nn.Module):
    def __init__(self, codes=32, dim=8, decay=0.95):
        super().__init__()
        self.decay = decay
        self.register_buffer("codebook", torch.randn(codes, dim) * 0.3)
        self.register_buffer("count", torch.ones(codes))
        self.register_buffer("total", self.codebook.clone())

    def forward(self, z):
        flat = z.detach().permute(0, 2, 3, 1).flatten(0, 2)
        index = torch.cdist(flat, self.codebook).argmin(1)
        if self.training:
            chosen = F.one_hot(index, len(self.codebook)).float()
            self.count.lerp_(chosen.sum(0), 1 - self.decay)
            self.total.lerp_(chosen.T @ flat, 1 - self.decay)
            unused = self.count < 0.05
            again = flat[torch.randint(0, len(flat), (int(unused.sum()),))]
            self.count[unused], self.total[unused] = 1.0, again
            self.codebook.copy_(self.total / self.count.unsqueeze(1))
        q = self.codebook[index].view(z.shape[0], *z.shape[2:], -1).permute(0, 3, 1, 2)
        if healthy:
            q = z + (q - z).detach()
        return q


class VQVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 32, 4, stride=2, padding=1), nn.ReLU(), nn.Conv2d(32, 8, 3, padding=1)
        )
        self.quantize = Quantizer()
        self.decoder = nn.Sequential(
            nn.Conv2d(8, 32, 3, padding=1), nn.ReLU(), nn.ConvTranspose2d(32, 1, 4, 2, 1)
        )

    def forward(self, x):
        z = self.encoder(x)
        q = self.quantize(z)
        commitment = F.mse_loss(z, q.detach()) if healthy else F.mse_loss(z.detach(), q.detach())
        return self.decoder(q), commitment


x, _, x_val, _ = images(seed)
model = VQVAE()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(20):
    model.train()
    for rows in torch.randperm(len(x)).split(64):
        out, commitment = model(x[rows])
        loss = F.mse_loss(out, x[rows]) + 0.25 * commitment
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out, _ = model(x_val)
        error = F.mse_loss(out, x_val).item()
    print(f"epoch {epoch}: loss {loss.item():.3f}, reconstruction error {error:.3f}")
