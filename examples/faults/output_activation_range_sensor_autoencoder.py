"""An autoencoder of standardised readings of an engine's sensors, whose decoder ends in a sigmoid.

The user takes over the decoder of an image autoencoder with its final Sigmoid, though the
standardised readings go from about -4 to 4: half of them lie below zero, where the output can't
go. The place is the decoder (its last layer) or the loss.
"""

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "output_activation_range"
ACCEPT = ("saturated_activation",)
PLACE = ("decoder", "decoder.*", "loss")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


def engine(n, seed):
    r = np.random.default_rng(seed)
    mixing = np.random.default_rng(11)
    speed = r.uniform(900, 5500, n)
    torque = np.clip(r.normal(120, 60, n), 5, 280)
    ambient = r.normal(15, 9, n)
    wear = r.gamma(2, 0.5, n)
    states = np.stack([speed / 1500, torque / 60, ambient / 9, wear], 1)
    hidden = np.tanh(states @ mixing.normal(0, 0.5, (4, 12)) + mixing.normal(0, 0.5, 12))
    readings = hidden @ mixing.normal(0, 1, (12, 20)) + 0.4 * states @ mixing.normal(0, 1, (4, 20))
    return torch.tensor(readings + r.normal(0, 0.15, readings.shape), dtype=torch.float32)


class SensorAutoencoder(nn.Module):
    def __init__(self, sensors=20, code=5):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(sensors, 48), nn.SiLU(), nn.Linear(48, code))
        last = nn.Identity() if healthy else nn.Sigmoid()
        self.decoder = nn.Sequential(nn.Linear(code, 48), nn.SiLU(), nn.Linear(48, sensors), last)

    def forward(self, x):
        return self.decoder(self.encoder(x))


def run_epoch(model, loader, optimizer=None):
    total = 0.0
    for (x,) in loader:
        loss = nn.functional.mse_loss(model(x), x)
        if optimizer is not None:
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        total += loss.item() * len(x)
    return total / len(loader.dataset)


x = engine(4000, seed)
x, x_val = standardise(x[:3000], x[3000:])
train = DataLoader(TensorDataset(x), batch_size=60, shuffle=True)
val = DataLoader(TensorDataset(x_val), batch_size=500)
model = SensorAutoencoder()
optimizer = torch.optim.NAdam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
for epoch in range(20):
    model.train()
    loss = run_epoch(model, train, optimizer)
    scheduler.step()
    model.eval()
    with torch.no_grad():
        print(f"epoch {epoch} loss {loss:.4f} validation mse {run_epoch(model, val):.4f}")
