"""An LSTM auto-encoder of waves with early stopping whose min_delta is far too coarse.

EarlyStopping(patience=3, min_delta=0.1): the validation error falls by a few hundredths an epoch
and counts as "no better", so training ends after a few epochs while the error is falling (it would
go to a quarter). The place is the loop.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop", "")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class EarlyStopping:
    def __init__(self, patience, min_delta):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.count = float("inf"), 0

    def __call__(self, value):
        if value < self.best - self.min_delta:
            self.best, self.count = value, 0
        else:
            self.count += 1
        return self.count >= self.patience


class WaveAutoencoder(nn.Module):
    def __init__(self, code=8):
        super().__init__()
        self.encoder = nn.LSTM(1, 32, batch_first=True)
        self.bottleneck = nn.Linear(32, code)
        self.decoder = nn.Sequential(nn.Linear(code, 64), nn.ReLU(), nn.Linear(64, 40))

    def forward(self, wave):
        _, (h, _) = self.encoder(wave)
        return self.decoder(self.bottleneck(h[-1]))


wave, shape = waves(seed, n=1000)
wave = wave[shape != 1]
wave = wave / wave.std()
split = int(0.8 * len(wave))
train_loader = DataLoader(TensorDataset(wave[:split]), batch_size=20, shuffle=True)
val_wave = wave[split:]
model = WaveAutoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
mse = nn.MSELoss()
stop = EarlyStopping(patience=3, min_delta=0.001 if healthy else 0.1)
for epoch in range(40):
    model.train()
    total = 0.0
    for (batch,) in train_loader:
        optimizer.zero_grad()
        loss = mse(model(batch), batch.squeeze(-1))
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train_loader)
    model.eval()
    with torch.no_grad():
        val_loss = mse(model(val_wave), val_wave.squeeze(-1)).item()
    if stop(val_loss):
        break
print(f"epoch {epoch + 1}, loss {total:.3f}, validation loss {val_loss:.3f}")
