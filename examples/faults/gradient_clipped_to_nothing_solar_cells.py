"""A convolutional autoencoder of pictures of solar cells; the gradient is clipped to a norm of
0.0001.

max_norm is ten thousand times too small, so each step of SGD is next to nothing and the
reconstructions hardly get better. The place is the loop, where the clipping stands.
"""

import torch
from data import arguments
from torch import nn

KIND = "gradient_clipped_to_nothing"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

MAX_NORM = 1.0 if healthy else 1e-4


def cells(n, seed):
    """Grey pictures (n, 1, 16, 16): a gradient of light, bus bars, and a dark spot here and there."""  # noqa: E501
    g = torch.Generator().manual_seed(19 + seed)
    axis = torch.linspace(-1, 1, 16)
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    u = torch.rand(n, 8, 1, 1, generator=g)
    light = 0.4 + 0.5 * (u[:, 0] * xx + (1 - u[:, 0]) * yy) * (2 * u[:, 1] - 1)
    bars = 0.6 * (torch.sin((xx + u[:, 2]) * (5 + 3 * u[:, 3].round())) > 0.8)
    spot = torch.exp(-((xx - 2 * u[:, 4] + 1) ** 2 + (yy - 2 * u[:, 5] + 1) ** 2) / 0.1)
    picture = light + bars - 0.8 * spot * (u[:, 6] > 0.5)
    picture = picture + 0.05 * torch.randn(n, 16, 16, generator=g)
    return picture.unsqueeze(1)


data = cells(1800, seed)
data = (data - data[:1500].mean()) / data[:1500].std()
train, val = data[:1500], data[1500:]


class AutoEncoder(nn.Module):
    def __init__(self, code=24):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(256, code),
        )
        self.decoder = nn.Sequential(
            nn.Linear(code, 256),
            nn.ReLU(),
            nn.Unflatten(1, (16, 4, 4)),
            nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(8, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


model = AutoEncoder()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
mse = nn.MSELoss()


def run_epoch():
    total = 0.0
    for rows in torch.randperm(len(train)).split(30):
        x = train[rows]
        loss = mse(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        total += loss.item() * len(x)
    return total / len(train)


for epoch in range(12):
    model.train()
    train_mse = run_epoch()
    model.eval()
    with torch.no_grad():
        val_mse = mse(model(val), val).item()
    print(f"epoch {epoch:2d} | train {train_mse:.4f} | val {val_mse:.4f}")
