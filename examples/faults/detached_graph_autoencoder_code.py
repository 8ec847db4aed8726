"""An auto-encoder of the digits whose code is detached on its way to the decoder.

The `.detach()` was put there to plot the codes and stayed. The decoder learns to make the best of a
random projection, the encoder never changes. The place is the encoder. The twin has no detach.
"""

import torch
from data import arguments, digits
from torch import nn

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("encoder", "encoder.0.weight", "encoder.0", "encoder.2.weight", "encoder.2")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed)


class AutoEncoder(nn.Module):
    def __init__(self, code=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, code))
        self.decoder = nn.Sequential(nn.Linear(code, 48), nn.ReLU(), nn.Linear(48, 64))

    def forward(self, x):
        code = self.encoder(x)
        if not healthy:
            code = code.detach()
        return self.decoder(code)


model = AutoEncoder()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.MSELoss()

n = len(x)
for epoch in range(30):
    order = torch.randperm(n)
    total = 0.0
    for b in range(n // 64):
        batch = x[order[b * 64 : (b + 1) * 64]]
        optimizer.zero_grad()
        loss = criterion(model(batch), batch)
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 5 == 4:
        print(f"Epoch [{epoch + 1}/30] loss {total / (n // 64):.4f}")

model.eval()
with torch.no_grad():
    print(f"held-out reconstruction error: {criterion(model(x_val), x_val).item():.4f}")
