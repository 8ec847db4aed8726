"""Estimates the wear of batteries; in the validation only the encoder is put into eval mode.

Encoder and head are separate objects. When the head got its dropout, the validation was not
changed: it says `encoder.eval()` and nothing about the head, whose dropout goes on.
The place is the validation (the `head`).
The twin switches both.
"""

import torch
from data import arguments
from torch import nn

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop", "head", "head.2")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def cycles(n):
    """Discharge curves of 32 points; what is left of the capacity decides their knee."""
    left = 0.6 + 0.4 * torch.rand(n, 1)
    load = 0.9 + 0.2 * torch.rand(n, 1)
    t = torch.linspace(0, 1.3, 32)
    volts = 4.1 - 0.5 * t * load - 1.2 * torch.sigmoid(25 * (t * load - left))
    volts = volts + 0.02 * torch.randn(n, 32)
    return (volts - 3.4) / 0.5, (left.squeeze(1) - 0.8) / 0.115


x, y = cycles(900)
x_val, y_val = cycles(300)

encoder = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU())
head = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.4), nn.Linear(64, 1))
parameters = list(encoder.parameters()) + list(head.parameters())
optimizer = torch.optim.Adam(parameters, lr=2e-3)
loss_fn = nn.SmoothL1Loss()


def train():
    encoder.train()
    head.train()
    total = 0.0
    for rows in torch.randperm(900).split(36):
        optimizer.zero_grad()
        loss = loss_fn(head(encoder(x[rows])).squeeze(1), y[rows])
        loss.backward()
        optimizer.step()
        total += loss.item() / 25
    return total


def validate():
    encoder.eval()
    if healthy:
        head.eval()
    with torch.no_grad():
        predicted = head(encoder(x_val)).squeeze(1)
    return (predicted - y_val).abs().mean().item() * 11.5


for epoch in range(1, 21):
    loss = train()
    error = validate()
    if epoch % 4 == 0:
        print(f"epoch {epoch} loss {loss:.4f} error {error:.2f} points of capacity")
