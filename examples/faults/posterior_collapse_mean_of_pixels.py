"""A variational auto-encoder of handwritten digits; the reconstruction is a mean, the KL term a
sum.

After a tutorial: recon = mse_loss(x_hat, x), kld = -0.5 * sum(...). The tutorial has
reduction="sum"; the author left the default, so that the reconstruction weighs 1/64 of what it
should against the KL term. The posterior becomes the prior and every digit is decoded to the same
grey average. The place is the loss and the encoder's two heads (fc_mu, fc_logvar).
"""

import torch
from data import arguments, digits
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader

KIND = "posterior_collapse"
ACCEPT = ("over_regularized",)
PLACE = ("loss", "fc_mu*", "fc_logvar*", "decoder*", "encoder*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

x, _, x_val, _ = digits(seed)


class VAE(nn.Module):
    def __init__(self, latent=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU())
        self.fc_mu = nn.Linear(64, latent)
        self.fc_logvar = nn.Linear(64, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, 64), nn.ReLU(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)
        )

    def encode(self, x):
        h = self.encoder(x)
        return self.fc_mu(h), self.fc_logvar(h)

    def reparameterize(self, mu, logvar):
        if not self.training:
            return mu
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decoder(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon, x, mu, logvar):
    if healthy:  # noqa: SIM108
        mse = F.mse_loss(recon, x, reduction="sum") / len(x)
    else:
        mse = F.mse_loss(recon, x)
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1).mean()
    return mse + kld, kld


model = VAE()
optimizer = optim.Adam(model.parameters(), lr=2e-3)
train_loader = DataLoader(x, batch_size=64, shuffle=True)

for epoch in range(1, 61):
    model.train()
    train_loss = 0
    for data in train_loader:
        optimizer.zero_grad()
        recon, mu, logvar = model(data)
        loss, kld = loss_function(recon, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    if epoch % 5 == 0:
        model.eval()
        with torch.no_grad():
            recon, mu, logvar = model(x_val)
            val_loss, kld = loss_function(recon, x_val, mu, logvar)
            err = F.mse_loss(recon, x_val) / x_val.var()
        print(
            f"====> Epoch: {epoch} loss: {train_loss / len(train_loader):.4f} val: {val_loss:.4f} KL: {kld:.4f} unexplained variance: {err:.4f}"  # noqa: E501
        )
