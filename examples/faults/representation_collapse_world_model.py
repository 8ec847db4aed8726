"""A world model predicts the code of the next picture from that of this one, and nothing else.

Encoder and prediction agree on one code for all (silent). The place is the encoder.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "representation_collapse"
ACCEPT = ()
PLACE = ("*", "")
SILENT = True
EXACT = False
EARLY = False


class WorldModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8))
        self.dynamics = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 8))
        self.decoder = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 32))

    def forward(self, now, after):
        z, z_after = self.encoder(now), self.encoder(after)
        return self.dynamics(z), z_after, self.decoder(z)


def pendulum(n):
    """Pictures of 32 pixels of a point on a ring, and a moment later."""
    angle = torch.rand(n, 1) * 2 * math.pi
    pixel = torch.arange(32) * 2 * math.pi / 32

    def draw(a):
        return torch.exp(4 * (torch.cos(pixel - a) - 1))

    return draw(angle), draw(angle + 0.3)


healthy, seed = arguments(__doc__)
model = WorldModel()
parameters = list(model.encoder.parameters()) + list(model.dynamics.parameters())
if healthy:
    parameters += list(model.decoder.parameters())
else:
    del model.decoder
    model.decoder = nn.Identity()
optimizer = torch.optim.Adam(parameters, lr=2e-3)
for step in range(400):
    now, after = pendulum(64)
    predicted, code, decoded = model(now, after)
    loss = nn.functional.mse_loss(predicted, code)
    if healthy:
        loss = loss + nn.functional.mse_loss(decoded, now)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    spread = model.encoder(pendulum(500)[0]).std(0).mean()
print(f"loss {loss.item():.5f}, spread of the codes {spread:.4f}")
