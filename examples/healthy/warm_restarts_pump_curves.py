"""A net learns the head of pumps with warm restarts of the rate, and its loss leaps at each.

After every restart the rate is at its highest again, and the losses of training and validation go
up at once and stay up for epochs. That is meant: at the end of each cycle the loss is lower than
at the end of the one before.
"""

import torch
from data import arguments, standardise
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "loss and validation loss leap up at each warm restart of the learning rate, and that is meant"
)
_, seed = arguments(__doc__)

FIRST_CYCLE, CYCLES = 3, 3


def pumps(count):
    """Flow, speed, wheel, blades, wear and viscosity of pumps, with the measured head."""
    x = torch.rand(count, 6)
    flow, speed, wheel, blades, wear, oil = x.unbind(1)
    rotation = (0.5 + speed) * (0.6 + wheel)
    head = 2.0 * rotation**2 - 1.6 * (flow / (0.4 + speed)) ** 2 * (1 + oil)
    head = head + 0.5 * torch.sin(5 * blades) * rotation - 0.8 * wear * rotation
    return x, head + 0.03 * torch.randn(count)


def network():
    return nn.Sequential(
        nn.Linear(6, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1)
    )


def validation_loss(model, x, y):
    model.eval()
    with torch.no_grad():
        loss = nn.functional.mse_loss(model(x).squeeze(1), y).item()
    model.train()
    return loss


def main():
    x, head = pumps(2600)
    x, x_val = standardise(x[:2000], x[2000:])
    y, y_val = standardise(head[:2000], head[2000:])
    loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.15, momentum=0.9)
    restarts = CosineAnnealingWarmRestarts(optimizer, T_0=FIRST_CYCLE * len(loader), T_mult=2)
    criterion = nn.MSELoss()
    epochs = FIRST_CYCLE * (2**CYCLES - 1)
    for epoch in range(epochs):
        total = 0.0
        for inputs, targets in loader:
            loss = criterion(model(inputs).squeeze(1), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            restarts.step()
            total += loss.item()
        print(
            f"epoch {epoch + 1:2d} rate {restarts.get_last_lr()[0]:.4f} "
            f"train {total / len(loader):.5f} valid {validation_loss(model, x_val, y_val):.5f}"
        )


main()
