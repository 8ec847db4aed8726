"""A linear autoencoder on spectra, compared with principal components: two linear layers and
nothing between.

Nothing is wrong; there is no place to name.
"""

import torch
from data import arguments
from torch import nn

ODD = (
    "Linear after linear without an activation, and a narrow middle: it is meant to find the "
    "principal subspace."
)

_, seed = arguments(__doc__)
RANK = 5
# Spectra are mixtures of five substances and a little noise.
wavelength = torch.linspace(0, 1, 60)
substances = torch.stack(
    [torch.exp(-(((wavelength - c) / 0.08) ** 2)) for c in (0.15, 0.32, 0.5, 0.68, 0.85)]
)
spectra = torch.randn(2000, RANK) @ substances + 0.1 * torch.randn(2000, 60)
spectra = (spectra - spectra.mean(0)) / spectra.std()
train, test = spectra[:1600], spectra[1600:]

_, _, v = torch.linalg.svd(train, full_matrices=False)
best = (test - test @ v[:RANK].T @ v[:RANK]).pow(2).mean().item()

encode, decode = nn.Linear(60, RANK, bias=False), nn.Linear(RANK, 60, bias=False)
auto = nn.Sequential(encode, decode)
optimizer = torch.optim.Adam(auto.parameters(), lr=1e-2)
for step in range(400):
    if step == 300:
        for group in optimizer.param_groups:
            group["lr"] = 1e-3
    rows = torch.randint(1600, (128,))
    optimizer.zero_grad()
    loss = (auto(train[rows]) - train[rows]).pow(2).mean()
    loss.backward()
    optimizer.step()
    if step % 80 == 79:
        with torch.no_grad():
            error = (auto(test) - test).pow(2).mean().item()
        print(f"step {step + 1}: loss {loss.item():.4f} test {error:.4f} (PCA {best:.4f})")
