"""Tumours, benign or not: the bias of the hidden layers is set by a helper meant for the output.

To start from the base rate, the author sets the output's bias to log(p / (1 - p)); the helper
`set_bias` walks over ALL linear layers, and with a "rare event" prior of 1 in 2000 all the hidden
units start at -7.6, below anything that standardised inputs reach. They stay dead. The place is
the hidden layers. The twin sets the last layer's bias alone, by the share of the training set.
"""

import math

import torch
from data import arguments, cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = (
    "hidden",
    "hidden.0",
    "hidden.2",
    "hidden.0.bias",
    "hidden.2.bias",
    "hidden.1",
    "hidden.3",
    "hidden.0.weight",
    "hidden.2.weight",
)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class TumourNet(nn.Module):
    def __init__(self, features, width=32):
        super().__init__()
        self.hidden = nn.Sequential(
            nn.Linear(features, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.output = nn.Linear(width, 1)

    def forward(self, x):
        return self.output(self.hidden(x)).squeeze(1)


def set_bias(module, share):
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.constant_(layer.bias, math.log(share / (1 - share)))


x, y, x_val, y_val = cancer(seed)
y, y_val = y.float(), y_val.float()
model = TumourNet(x.shape[1])
if healthy:
    set_bias(model.output, y.mean().item())
else:
    set_bias(model, share=1 / 2000)

train = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(15):
    model.train()
    total = 0.0
    for xb, yb in train:
        loss = criterion(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
    accuracy = ((logits > 0).float() == y_val).float().mean()
    print(
        f"epoch {epoch:2d} loss {total:.3f} val {criterion(logits, y_val):.3f} acc {accuracy:.3f}"
    )
