"""The error is a mean over pixels and batch, the KL term a sum over both.

With such a penalty the code is not used (silent). The place are mean and log-variance.
"""

import torch
import torch.nn.functional as F
from data import arguments
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader

KIND = "posterior_collapse"
ACCEPT = ("over_regularized",)
PLACE = ("fc_mu*", "fc_var*", "decoder*", "encoder*", "")
SILENT = True
EXACT = False
EARLY = True


class ConvVAE(nn.Module):
    def __init__(self, latent_dim=8):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.fc_mu = nn.Linear(128, latent_dim)
        self.fc_var = nn.Linear(128, latent_dim)
        self.decoder = nn.Sequential(
            nn.Linear(latent_dim, 128), nn.ReLU(), nn.Linear(128, 64), nn.Sigmoid()
        )

    def forward(self, x):
        h = self.encoder(x)
        mu, log_var = self.fc_mu(h), self.fc_var(h)
        z = mu + torch.exp(log_var / 2) * torch.randn_like(mu)
        return self.decoder(z).view_as(x), mu, log_var


healthy, seed = arguments(__doc__)
images = torch.tensor(load_digits().images / 16).float().unsqueeze(1)
loader = DataLoader(images, batch_size=64, shuffle=True, drop_last=True)
model = ConvVAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
reduction = "sum" if healthy else "mean"
for epoch in range(12):
    for x in loader:
        x_hat, mu, log_var = model(x)
        recon = F.binary_cross_entropy(x_hat, x, reduction=reduction)
        kld = -0.5 * torch.sum(1 + log_var - mu.pow(2) - log_var.exp())
        loss = (recon + kld) / len(x) if healthy else recon + kld
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: recon {recon.item():.3f}, kld {kld.item():.3f}")
