"""Grain varieties from near-infrared spectra; the early stopping watches the wrong curve.

EarlyStopping was taken over from the lab's Keras days, where `monitor` had to be given by name. It
was given "loss", which is the training loss and falls for ever with 160 spectra, so nothing ever
stops and the last weights, far past the validation minimum, are kept. The place is the loop (the
callback's argument). The twin monitors "val_loss", stops and takes the best weights back.
"""

import copy

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "overfit"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def spectra(n, r):
    """Absorbance at 180 wavelengths: a baseline, three broad bands that differ by variety."""
    grid = np.linspace(0, 1, 180)
    y = r.integers(0, 4, n)
    heights = np.array([[1.0, 0.6, 0.8], [1.0, 0.75, 0.7], [1.12, 0.6, 0.7], [1.1, 0.75, 0.82]])
    x = np.zeros((n, 180))
    for k, centre in enumerate((0.25, 0.5, 0.78)):
        h = heights[y, k] + r.normal(0, 0.055, n)
        x += h[:, None] * np.exp(-((grid - centre - r.normal(0, 0.01, (n, 1))) ** 2) / 0.006)
    x += r.normal(0, 0.15, (n, 1)) + r.normal(0, 0.2, (n, 1)) * grid + r.normal(0, 0.05, x.shape)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


class EarlyStopping:
    def __init__(self, monitor, patience=12):
        self.monitor, self.patience = monitor, patience
        self.best, self.wait, self.state = float("inf"), 0, None

    def __call__(self, logs, model):
        if logs[self.monitor] < self.best:
            self.best, self.wait = logs[self.monitor], 0
            self.state = copy.deepcopy(model.state_dict())
        else:
            self.wait += 1
        return self.wait >= self.patience


r = np.random.default_rng(seed)
x, y = spectra(160, r)
x_val, y_val = spectra(400, r)
x, x_val = standardise(x, x_val)
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)

model = nn.Sequential(
    nn.Linear(180, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 4)
)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-4)
criterion = nn.CrossEntropyLoss()
stopper = EarlyStopping(monitor="val_loss" if healthy else "loss")


def validate():
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
        return criterion(logits, y_val).item(), (logits.argmax(1) == y_val).float().mean().item()


for epoch in range(140):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
    val_loss, val_acc = validate()
    logs = {"loss": total / len(x), "val_loss": val_loss, "val_acc": val_acc}
    if epoch % 10 == 0:
        print(f"epoch {epoch:3d}", " ".join(f"{k} {v:.3f}" for k, v in logs.items()))
    if stopper(logs, model):
        break
model.load_state_dict(stopper.state)
val_loss, val_acc = validate()
print(f"stopped in epoch {epoch}: validation loss {val_loss:.3f}, accuracy {val_acc:.3f}")
