"""The power of pumps over flow and speed with four linear layers, one after the other.

The activation is in the config and in the constructor, but forward() was rewritten as a loop over
the layers and does not call it. Four linear layers are one, and a pump's curve is no plane.
The place is the layers. The twin calls the activation.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("layers*", "layers.0", "layers.1", "layers.2")
SILENT = True
EXACT = True
EARLY = True


class PumpNet(nn.Module):
    def __init__(self, sizes, activation=None):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:], strict=False))  # noqa: RUF007
        self.activation = activation

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = layer(x)
            if self.activation is not None:
                x = self.activation(x)
        return self.layers[-1](x).squeeze(1)


def bench(n, g):
    flow, speed, blade, wear = torch.rand(4, n, generator=g)
    speed = 0.5 + 0.7 * speed
    best = 0.6 * speed * (0.7 + 0.6 * blade)
    efficiency = 0.85 - 1.8 * (flow - best) ** 2 - 0.15 * wear
    head = speed**2 * (1.2 + blade) - 0.8 * flow**2
    power = head * flow / efficiency.clamp(min=0.2) + 0.02 * torch.randn(n, generator=g)
    x = torch.stack([flow * 3.4 - 1.7, speed * 5 - 4.2, blade * 3.4 - 1.7, wear * 3.4 - 1.7], 1)
    return x, (power - power.mean()) / power.std()


def main():
    healthy, seed = arguments(__doc__)
    x, y = bench(2500, torch.Generator().manual_seed(seed))
    loader = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=40, shuffle=True)
    model = PumpNet((4, 48, 48, 48, 1), nn.SiLU() if healthy else None)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.85)
    for epoch in range(12):
        total = 0.0
        for xb, yb in loader:
            loss = nn.functional.mse_loss(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        schedule.step()
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x[2000:]), y[2000:]).item()
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1}: {total / len(loader):.4f}, validation {val:.4f}")


if __name__ == "__main__":
    main()
