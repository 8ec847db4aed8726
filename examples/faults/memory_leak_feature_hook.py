"""An auto-encoder with a forward hook that stores every batch's hidden features "for a plot".

The list is never emptied and the features are not detached: the process grows by more than a
megabyte at every step. The place is the loop.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader

KIND = "memory_leak"
ACCEPT = ()
PLACE = ("encoder*", "loop", "")
SILENT = True
EXACT = False
EARLY = True


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 1024), nn.ReLU())
        self.code = nn.Linear(1024, 12)
        self.decoder = nn.Sequential(nn.Linear(12, 256), nn.ReLU(), nn.Linear(256, 64))

    def forward(self, x):
        return self.decoder(self.code(self.encoder(x)))


healthy, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed)
loader = DataLoader(x, batch_size=128, shuffle=True, drop_last=True)
model = AutoEncoder()
features = []


def remember(module, inputs, output):
    if healthy:
        features[:] = [output.detach()]
    else:
        features.append(output)


model.encoder.register_forward_hook(remember)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, epochs=25, steps_per_epoch=10)
for epoch in range(25):
    for rows in loader:
        loss = nn.functional.mse_loss(model(rows), rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x_val), x_val).item()
print(f"train {loss.item():.3f}, validation {val:.3f}; mean feature {features[-1].mean():.3f}")
