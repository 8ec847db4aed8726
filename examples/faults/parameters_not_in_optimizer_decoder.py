"""An auto-encoder of two modules; the optimizer is given the encoder's parameters only.

The place is the decoder. The encoder learns to serve a random decoder, so the loss falls (silent).
Exact: parameters that have gradients belong to no optimizer.
"""

import torch
from data import arguments, batches, digits
from torch import nn

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("decoder*", "optimizer")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed)


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.Tanh(), nn.Linear(48, 12))
        self.decoder = nn.Sequential(nn.Linear(12, 48), nn.Tanh(), nn.Linear(48, 64))

    def forward(self, pixels):
        return self.decoder(self.encoder(pixels))


model = AutoEncoder()
trained = list(model.encoder.parameters())
if healthy:
    trained += list(model.decoder.parameters())
optimizer = torch.optim.Adam(trained, lr=5e-3)
criterion = nn.MSELoss()
for (pixels,) in batches(x, size=64, steps=250, seed=seed):
    model.zero_grad()
    loss = criterion(model(pixels), pixels)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
