"""A variational autoencoder of gene expression; the reconstruction is averaged over 200 genes
while the KL is summed over the latents.

F.mse_loss with its default reduction makes the reconstruction 200 times too light against the KL
term: the posterior collapses to the prior and the decoder returns the mean profile. The place is
the loss (and the encoder's latent heads mu, logvar).
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from sklearn.neighbors import KNeighborsClassifier
from torch import nn

KIND = "posterior_collapse"
ACCEPT = ("over_regularized",)
PLACE = ("loss", "*mu*", "*logvar*", "encoder*", "decoder*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

GENES, FACTORS, TYPES, LATENT = 200, 6, 5, 10


class GeneVAE(nn.Module):
    def __init__(self, genes=GENES, hidden=128, latent=LATENT):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(genes, hidden),
            nn.LayerNorm(hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
        )
        self.mu = nn.Linear(hidden, latent)
        self.logvar = nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, genes),
        )

    def encode(self, x):
        h = self.encoder(x)
        return self.mu(h), self.logvar(h).clamp(-8, 8)

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.decoder(z), mu, logvar


def elbo(recon, x, mu, logvar, beta):
    rec = F.mse_loss(recon, x, reduction="none").sum(1).mean() if healthy else F.mse_loss(recon, x)
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    return rec + beta * kl, rec, kl


def cells(n, rng, loadings, centres):
    t = rng.integers(0, TYPES, n)
    z = centres[t] + 0.5 * rng.normal(size=(n, FACTORS))
    x = np.tanh(z @ loadings) * 1.5 + 0.6 * rng.normal(size=(n, GENES))
    return x.astype(np.float32), t


rng = np.random.default_rng(seed)
loadings, centres = (
    rng.normal(size=(FACTORS, GENES)) / np.sqrt(FACTORS),
    1.5 * rng.normal(size=(TYPES, FACTORS)),
)
x_np, t_train = cells(3000, rng, loadings, centres)
v_np, t_val = cells(600, rng, loadings, centres)
mean, std = x_np.mean(0), x_np.std(0)
x, v = torch.from_numpy((x_np - mean) / std), torch.from_numpy((v_np - mean) / std)

model = GeneVAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
epochs, warm = 30, 8
for epoch in range(epochs):
    model.train()
    beta = min(1.0, (epoch + 1) / warm)
    log = np.zeros(3)
    batches = torch.randperm(len(x)).split(100)
    for rows in batches:
        recon, mu, logvar = model(x[rows])
        loss, rec, kl = elbo(recon, x[rows], mu, logvar, beta)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 50.0)
        optimizer.step()
        log += [loss.item(), rec.item(), kl.item()]
    if (epoch + 1) % 5 == 0:
        model.eval()
        with torch.no_grad():
            mu_train, mu_val = model.encode(x)[0], model.encode(v)[0]
            explained = 1 - F.mse_loss(model.decoder(mu_val), v) / v.var()
        knn = KNeighborsClassifier(15).fit(mu_train.numpy(), t_train).score(mu_val.numpy(), t_val)
        l, r, k = log / len(batches)  # noqa: E741
        print(
            f"epoch {epoch + 1}: loss {l:.3f} rec {r:.3f} kl {k:.4f} | val explained {explained:.3f} | cell type by kNN {knn:.3f}"  # noqa: E501
        )
