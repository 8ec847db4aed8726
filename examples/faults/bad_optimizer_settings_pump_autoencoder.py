"""Autoencoder that learns the normal vibration of a pump to spot anomalies; the optimizer's two
memory settings stand the wrong way round.

The settings were moved from a paper's table into a config file, where the two betas of Adam were
written in the order of the table. So the mean of the gradient remembers a thousand steps and its
size only ten.
The place is the optimizer.
The twin has Adam's usual betas.
"""

import torch
from data import arguments
from torch import nn

KIND = "bad_optimizer_settings"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

config = {
    "window": 64,
    "code": 8,
    "batch": 64,
    "epochs": 16,
    "lr": 1e-3,
    "betas": (0.9, 0.999) if healthy else (0.999, 0.9),
}


def vibration(n, broken=False):
    """Windows of the casing's acceleration: shaft speed, blade pass, noise; or with impacts."""
    t = torch.arange(config["window"]) / config["window"]
    speed = 3 + 1.2 * torch.rand(n, 1)
    phase = 6.283 * torch.rand(n, 1)
    signal = torch.sin(6.283 * speed * t + phase)
    signal = signal + 0.5 * torch.sin(6.283 * 3 * speed * t + 3 * phase)
    if broken:
        place = torch.rand(n, 1)
        signal = signal + 0.9 * torch.exp(-(((t - place) * 40) ** 2)) * torch.cos(150 * (t - place))
    return signal + 0.1 * torch.randn(n, config["window"])


class Autoencoder(nn.Module):
    def __init__(self, window, code):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(window, 128), nn.GELU(), nn.Linear(128, 64), nn.GELU(), nn.Linear(64, code)
        )
        self.decoder = nn.Sequential(
            nn.Linear(code, 64), nn.GELU(), nn.Linear(64, 128), nn.GELU(), nn.Linear(128, window)
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


train, val, broken = vibration(3200), vibration(500), vibration(500, broken=True)
model = Autoencoder(config["window"], config["code"])
optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"], betas=config["betas"])


@torch.no_grad()
def scores(windows):
    return ((model(windows) - windows) ** 2).mean(1)


for epoch in range(1, config["epochs"] + 1):
    losses = []
    for rows in torch.randperm(len(train)).split(config["batch"]):
        batch = train[rows]
        loss = ((model(batch) - batch) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if epoch % 4 == 0:
        good, bad = scores(val), scores(broken)
        found = (bad > good.quantile(0.95)).float().mean()
        print(
            f"epoch {epoch}: loss {sum(losses) / len(losses):.4f} "
            f"val {good.mean():.4f} broken found {found:.1%}"
        )
