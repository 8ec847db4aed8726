"""The encoder runs under no_grad in forward(), as where it was used to make features only.

The head learns from random features, and the loss falls (silent). The place is the encoder.
"""

import torch
from data import arguments
from torch import nn

KIND = "detached_graph"
ACCEPT = ("frozen_parameters",)
PLACE = ("encoder*",)
SILENT = True
EXACT = True
EARLY = True


def make_sequences(n, length=15):
    """Sums of signs, each weighted by what came before."""
    x = torch.randn(n, length, 2)
    y = (x[..., 0] * torch.tanh(x[..., 1].cumsum(1))).sum(1) / length**0.5
    return x, y


class Regressor(nn.Module):
    def __init__(self, extract):
        super().__init__()
        self.encoder = nn.GRU(2, 32, num_layers=2, batch_first=True)
        self.head = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
        self.extract = extract

    def forward(self, x):
        if self.extract:
            with torch.no_grad():
                _, h = self.encoder(x)
        else:
            _, h = self.encoder(x)
        return self.head(h[-1]).squeeze(1)


def train(model, x, y, epochs=8, batch_size=64):
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        order = torch.randperm(len(x))
        running = 0.0
        for i in range(0, len(x), batch_size):
            rows = order[i : i + batch_size]
            loss = nn.functional.mse_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item() * len(rows)
        print(f"epoch {epoch + 1}: {running / len(x):.3f}")


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    x, y = make_sequences(2000)
    train(Regressor(extract=not healthy), x, y)
