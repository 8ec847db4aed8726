"""Chemometrics: protein content from near-infrared spectra, 200 samples of 120 wavelengths, a
wide MLP.

Trained for a fixed 100 epochs: the training error goes to nothing while that of the validation
set turns after a dozen. The twin stops where it turns and keeps the best weights. The place is the
whole model. The training loss falls (silent).
"""

import copy

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "overfit"
ACCEPT = ()
PLACE = ("", "loop")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
WAVELENGTHS, N_TRAIN, N_VAL = 120, 200, 300


def spectra(n):
    """Absorption of four components, scatter, base line, and detector noise."""
    grid = torch.linspace(0, 1, WAVELENGTHS)
    bands = torch.stack(
        [
            torch.exp(-(((grid - c) / w) ** 2))
            for c, w in ((0.2, 0.08), (0.45, 0.12), (0.6, 0.05), (0.8, 0.1))
        ]
    )
    amount = torch.rand(n, 4)
    scatter = 1 + 0.25 * torch.randn(n, 1)
    x = (
        scatter * (amount @ bands)
        + 0.2 * torch.randn(n, 1) * grid
        + 0.2 * torch.randn(n, WAVELENGTHS)
    )
    protein = 10 + 5 * amount[:, 1] + 2 * amount[:, 2] + 0.9 * torch.randn(n)
    return x, protein


x, y = spectra(N_TRAIN)
x_val, y_val = spectra(N_VAL)
x_mean, x_std, y_mean, y_std = x.mean(0), x.std(0), y.mean(), y.std()
x, x_val = (x - x_mean) / x_std, (x_val - x_mean) / x_std
y, y_val = (y - y_mean) / y_std, (y_val - y_mean) / y_std

model = nn.Sequential(
    nn.Linear(WAVELENGTHS, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 1)
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
criterion = nn.MSELoss()
loader = DataLoader(TensorDataset(x, y), batch_size=10, shuffle=True)
best, best_state, waited = float("inf"), None, 0
for epoch in range(1, 101):
    model.train()
    train_loss = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * len(xb) / N_TRAIN
    model.eval()
    with torch.no_grad():
        val_loss = criterion(model(x_val).squeeze(1), y_val).item()
    if epoch in (2, 5, 10, 20) or epoch % 50 == 0:
        print(f"{epoch} RMSEC {train_loss**0.5:.3f} RMSEP {val_loss**0.5:.3f}")
    if healthy:
        if val_loss < best:
            best, best_state, waited = val_loss, copy.deepcopy(model.state_dict()), 0
        elif (waited := waited + 1) == 3:
            model.load_state_dict(best_state)
            break
model.eval()
with torch.no_grad():
    val_loss = criterion(model(x_val).squeeze(1), y_val).item()
print(
    f"after {epoch} epochs: RMSEC {train_loss**0.5:.3f}, "
    f"RMSEP of the kept model {val_loss**0.5:.3f}"
)
