"""A convolutional VAE of Raman spectra, with the divergence's weight warmed up over the first
epochs.

The evidence bound in nats: Gaussian likelihood of known noise summed over channels, divergence
summed over latents. With the warm-up the training loss may rise while the weight grows.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the loss is in the tens and its second term grows on purpose while beta is warmed up"

_, seed = arguments(__doc__)
CHANNELS, SIGMA = 64, 0.15


def spectra(n):
    """Mixtures of three substances with two peaks each, on a bowed ground."""
    axis = torch.linspace(0, 1, CHANNELS)
    at = torch.tensor([[0.15, 0.6], [0.35, 0.8], [0.5, 0.9]])
    peaks = (-((axis - at[..., None]) ** 2) / 0.0012).exp().sum(1)
    amount = torch.distributions.Dirichlet(torch.ones(3)).sample((n,)) * (
        0.8 + 0.6 * torch.rand(n, 1)
    )
    ground = 0.4 * torch.rand(n, 1) * (1 - (axis - 0.5) ** 2 * 2)
    return (1.5 * amount @ peaks + ground + SIGMA * torch.randn(n, CHANNELS))[:, None]


class SpectrumVAE(nn.Module):
    def __init__(self, latents=6, width=16):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, width, 5, stride=2, padding=2),
            nn.SiLU(),
            nn.Conv1d(width, 2 * width, 5, stride=2, padding=2),
            nn.SiLU(),
            nn.Flatten(),
            nn.Linear(2 * width * CHANNELS // 4, 2 * latents),
        )
        self.decoder = nn.Sequential(
            nn.Linear(latents, 2 * width * CHANNELS // 4),
            nn.SiLU(),
            nn.Unflatten(1, (2 * width, CHANNELS // 4)),
            nn.ConvTranspose1d(2 * width, width, 4, stride=2, padding=1),
            nn.SiLU(),
            nn.ConvTranspose1d(width, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        q_mean, q_logvar = self.encoder(x).chunk(2, dim=1)
        noise = torch.randn_like(q_mean) if self.training else 0.0
        return self.decoder(q_mean + noise * (0.5 * q_logvar).exp()), q_mean, q_logvar


def bound(x, decoded, q_mean, q_logvar):
    likelihood = ((x - decoded) ** 2).sum((1, 2)).mean() / (2 * SIGMA**2)
    divergence = 0.5 * (q_mean**2 + q_logvar.exp() - 1 - q_logvar).sum(1).mean()
    return likelihood, divergence


train = DataLoader(TensorDataset(spectra(2400)), batch_size=64, shuffle=True)
x_val = spectra(500)
model = SpectrumVAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(12):
    beta = min(1.0, (epoch + 1) / 4)
    model.train()
    total = 0.0
    for (x,) in train:
        likelihood, divergence = bound(x, *model(x))
        loss = likelihood + beta * divergence
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        likelihood, divergence = bound(x_val, *model(x_val))
    print(
        f"epoch {epoch:2d} train {total:.2f} val error {likelihood:.2f} "
        f"KL {divergence:.2f} beta {beta:.2f}"
    )
