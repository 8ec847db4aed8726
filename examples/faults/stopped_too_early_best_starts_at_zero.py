"""An early stopping written for a score, with `best = 0`, is given a loss.

No loss is ever below 0: after five epochs of "no improvement" it stops, while training and
validation are falling fast. The place is the loop.
"""

import torch
from data import arguments, digits
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
    def __init__(self, patience=5):
        self.patience = patience
        self.best = float("inf") if healthy else 0.0
        self.bad = 0

    def __call__(self, value):
        if value < self.best:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


class DenoisingAutoencoder(nn.Module):
    def __init__(self, code=12):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 64), nn.LeakyReLU(0.1), nn.Linear(64, code))
        self.decoder = nn.Sequential(nn.Linear(code, 64), nn.LeakyReLU(0.1), nn.Linear(64, 64))

    def forward(self, x):
        return self.decoder(self.encoder(x))


x, _, x_val, _ = digits(seed)
loader = DataLoader(TensorDataset(x), batch_size=64, shuffle=True)
autoencoder = DenoisingAutoencoder()
optimizer = torch.optim.Adamax(autoencoder.parameters(), lr=4e-3)
mse = nn.MSELoss()
stop = EarlyStopping()
noisy_val = x_val + 0.3 * torch.randn(x_val.shape)
for epoch in range(40):
    autoencoder.train()
    total = 0.0
    for (clean,) in loader:
        optimizer.zero_grad()
        loss = mse(autoencoder(clean + 0.3 * torch.randn_like(clean)), clean)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    autoencoder.eval()
    with torch.no_grad():
        val = mse(autoencoder(noisy_val), x_val).item()
    if stop(val):
        break
print(f"loss {total:.4f}, validation loss {val:.4f} after {epoch + 1} epochs")
