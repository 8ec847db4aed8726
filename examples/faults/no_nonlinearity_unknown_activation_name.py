"""The config asks for "swish", the table of activations knows "silu", and the fallback is Identity.

Four linear layers in a row are one linear layer: the network cannot tell where the hand of a
two-joint arm is from its angles, whatever its width. The place is the activations of the model.
"""

from dataclasses import dataclass
from itertools import pairwise

import torch
from data import arguments
from torch import nn

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("net*", "layers*", "")
SILENT = True
EXACT = True
EARLY = True

ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "gelu": nn.GELU, "silu": nn.SiLU}


@dataclass
class Config:
    widths: tuple = (64, 64, 64)
    activation: str = "swish"
    lr: float = 4e-3
    epochs: int = 25
    batch: int = 120


class MLP(nn.Module):
    def __init__(self, inputs, outputs, config):
        super().__init__()
        activation = ACTIVATIONS.get(config.activation, nn.Identity)
        sizes = (inputs, *config.widths)
        layers = []
        for a, b in pairwise(sizes):
            layers.append(nn.Linear(a, b))
            layers.append(activation())
        layers.append(nn.Linear(sizes[-1], outputs))
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)


def arm(n):
    """Angles of shoulder and elbow (scaled), and where the hand is."""
    angle = (torch.rand(n, 2) * 2 - 1) * 3.1416
    shoulder, both = angle[:, 0], angle.sum(1)
    hand = torch.stack([shoulder.cos() + 0.8 * both.cos(), shoulder.sin() + 0.8 * both.sin()], 1)
    return angle / 1.8138, hand / 0.9 + 0.02 * torch.randn(n, 2)


def fit(config):
    x, y = arm(2400)
    x_test, y_test = arm(500)
    model = MLP(2, 2, config)
    adam = torch.optim.Adam(model.parameters(), lr=config.lr)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(adam, config.epochs)
    for epoch in range(config.epochs):
        for rows in torch.randperm(len(x)).split(config.batch):
            loss = (model(x[rows]) - y[rows]).square().mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
        decay.step()
        if epoch % 5 == 4:
            with torch.no_grad():
                error = (model(x_test) - y_test).square().mean().item()
            print(f"epoch {epoch + 1}: loss {loss.item():.4f}, test error {error:.4f}")


healthy, _ = arguments(__doc__)
fit(Config(activation="silu" if healthy else "swish"))
