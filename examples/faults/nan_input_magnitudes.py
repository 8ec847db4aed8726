"""Photometric redshifts from magnitudes; the logarithm of negative fluxes puts NaN into the input.

The measured flux of a faint galaxy is negative now and then, since the sky is subtracted, and so
its magnitude is NaN. The loop skips batches whose loss isn't finite ("a glitch"), which hides
that most batches are thrown away. The place is the input.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "nan_input"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

BANDS = 5
SOFT = np.array([0.30, 0.12, 0.12, 0.15, 0.40])  # sky noise per band


def catalogue(n, rng):
    """Redshift, a mix of two spectral types, dust and noise -> five fluxes."""
    z = np.clip(rng.gamma(3.0, 0.16, n), 0.02, 1.4)
    kind = rng.beta(0.6, 0.6, n)[:, None]
    wave = np.array([3500, 4800, 6200, 7600, 9100])
    rest = wave[None] / (1 + z[:, None])
    red = 1 / (1 + np.exp(-(rest - 4000) / 180)) * (rest / 4000) ** 0.6 + 0.08
    blue = (rest / 4000) ** -0.7 + 0.4 * np.exp(-(((rest - 5007) / 150) ** 2))
    bright = rng.lognormal(2.45, 0.8, n)[:, None] / (1 + 3 * z[:, None] ** 2)
    flux = bright * (kind * red + (1 - kind) * 0.8 * blue)
    flux = flux * np.exp(-rng.exponential(0.12, n)[:, None] * 5000 / wave)
    return flux + SOFT * rng.normal(size=flux.shape), z


def magnitudes(flux):
    if healthy:
        return 22.5 - 2.5 / np.log(10) * (np.arcsinh(flux / (2 * SOFT)) + np.log(SOFT))
    with np.errstate(invalid="ignore", divide="ignore"):
        return 22.5 - 2.5 * np.log10(flux)


rng = np.random.default_rng(seed)
flux, z = catalogue(9000, rng)
mags = magnitudes(flux)
colours = mags[:, :-1] - mags[:, 1:]
features = np.concatenate([mags[:, 2:3], colours], 1)
features = (features - np.nanmean(features[:7200], 0)) / np.nanstd(features[:7200], 0)
X = torch.tensor(features, dtype=torch.float32)
Y = torch.tensor(z, dtype=torch.float32)
train_set = TensorDataset(X[:7200], Y[:7200])
# the evaluation is on the galaxies with good photometry in all bands, as in the paper
good = (flux[7200:] > 0).all(1)
X_val, Y_val = X[7200:][good], Y[7200:][good]
loader = DataLoader(train_set, batch_size=128, shuffle=True, drop_last=True)


class PhotoZ(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(BANDS, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
        )
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.body(x)).squeeze(-1)


net = PhotoZ()
optimizer = torch.optim.AdamW(net.parameters(), lr=1.5e-3, weight_decay=1e-4)
EPOCHS = 30
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
criterion = nn.SmoothL1Loss(beta=0.1)
for epoch in range(EPOCHS):
    net.train()
    running, used = 0.0, 0
    for xb, yb in loader:
        loss = criterion(net(xb), yb)
        if not torch.isfinite(loss):
            continue
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        running, used = running + loss.item(), used + 1
    scheduler.step()
    net.eval()
    with torch.no_grad():
        dz = (net(X_val) - Y_val) / (1 + Y_val)
    nmad = 1.4826 * (dz - dz.median()).abs().median().item()
    if epoch % 5 == 4:
        print(
            f"{epoch + 1:3d}  train {running / max(1, used):.4f}  sigma_NMAD {nmad:.4f}  RMS {dz.pow(2).mean().sqrt().item():.4f}"  # noqa: E501
        )
