"""An auto-encoder with a code of tanh units uses a steep tanh(50 x), so that the units are at -1 or
1 from the start.

The steepness was meant to make the code nearly binary, but with it hardly any gradient gets through
to the encoder, which stays as it was drawn; the decoder has to do with the signs of random
projections. The loss falls and stops far above that of the twin, which has the steepness 1. The
place is `code`, `squash` or `encoder`.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "saturated_activation"
ACCEPT = ("vanishing_gradient",)
PLACE = ("code", "squash", "encoder")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
STEEPNESS = 1.0 if healthy else 50.0


class SteepTanh(nn.Module):
    def __init__(self, steepness):
        super().__init__()
        self.steepness = steepness

    def forward(self, x):
        return torch.tanh(self.steepness * x)


class CodeNet(nn.Module):
    def __init__(self, bits=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 64), nn.GELU())
        self.code = nn.Linear(64, bits)
        self.squash = SteepTanh(STEEPNESS)
        self.decoder = nn.Sequential(nn.Linear(bits, 64), nn.GELU(), nn.Linear(64, 64))

    def encode(self, x):
        return self.squash(self.code(self.encoder(x)))

    def forward(self, x):
        return self.decoder(self.encode(x))


x_train, _, x_val, _ = digits(seed)
loader = DataLoader(TensorDataset(x_train), batch_size=64, shuffle=True)
model = CodeNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)
criterion = nn.MSELoss()
for epoch in range(1, 41):
    model.train()
    total = 0.0
    for (xb,) in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), xb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
    schedule.step()
    if epoch % 8 == 0:
        model.eval()
        with torch.no_grad():
            val = criterion(model(x_val), x_val).item()
            at_limit = (model.encode(x_val).abs() > 0.99).float().mean().item()
        print(
            f"epoch {epoch}: train {total / len(x_train):.4f} "
            f"val {val:.4f} at the limit {at_limit:.2f}"
        )
