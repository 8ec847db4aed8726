"""Crop types from a season of satellite readings; the batch norms forget all but the last batch.

The network was rewritten from a Keras notebook together with `momentum=0.99`. In Keras this is the
share that is kept, in PyTorch the share of the new batch, so that the running statistics are those
of the last, small, batch of the epoch. The training is as good as ever, validation is not.
The place is the three batch norms. The twin keeps PyTorch's default of 0.1.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("features.1", "features.4", "features.7", "features")
SILENT = True
EXACT = False
EARLY = True

CROPS = ("wheat", "maize", "beet", "rape", "meadow")


def seasons(n, generator):
    t = torch.linspace(0, 1, 24)
    y = torch.randint(0, len(CROPS), (n,), generator=generator)
    peak = torch.tensor([0.42, 0.62, 0.66, 0.36, 0.5])[y] + 0.04 * torch.randn(
        n, generator=generator
    )
    width = torch.tensor([0.12, 0.12, 0.2, 0.16, 0.3])[y]
    green = torch.exp(-(((t - peak[:, None]) / width[:, None]) ** 2))
    red = 1 - 0.8 * green + 0.1 * torch.sin(2 * math.pi * t)
    x = torch.stack([green, red], 1)
    x = x + 0.18 * torch.randn(x.shape, generator=generator)
    return (x - x.mean((0, 2), keepdim=True)) / x.std((0, 2), keepdim=True), y


def build(momentum):
    layers, width = [], 2
    for channels in (16, 32, 32):
        layers += [
            nn.Conv1d(width, channels, 3, padding=1),
            nn.BatchNorm1d(channels, momentum=momentum),
            nn.ReLU(),
        ]
        width = channels
    net = nn.Sequential()
    net.add_module("features", nn.Sequential(*layers))
    net.add_module("pool", nn.Sequential(nn.AdaptiveAvgPool1d(4), nn.Flatten()))
    net.add_module("head", nn.Linear(4 * width, len(CROPS)))
    return net


def main():
    healthy, seed = arguments(__doc__)
    g = torch.Generator().manual_seed(seed)
    x, y = seasons(1510, g)
    train = TensorDataset(x[:1109], y[:1109])
    x_val, y_val = x[1109:], y[1109:]
    loader = DataLoader(train, batch_size=12, shuffle=True, generator=g)
    model = build(0.1 if healthy else 0.99)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(7):
        model.train()
        losses = []
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            out = model(x_val)
        val = nn.functional.cross_entropy(out, y_val).item()
        accuracy = (out.argmax(1) == y_val).float().mean().item()
        mean = sum(losses) / len(losses)
        print(f"{epoch + 1:2d} train {mean:.3f} val {val:.3f} accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
