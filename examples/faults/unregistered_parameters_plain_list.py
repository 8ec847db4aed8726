"""House prices by an MLP that keeps its hidden layers in a plain Python list.

Modules in a list are not registered: parameters() gives those of the head only, the optimizer
trains nothing else. The loss falls a little, as a linear model on random features does. The place
is the hidden layers ("hidden"). The twin wraps the list in nn.ModuleList.
"""

import itertools

import torch
from data import arguments, houses
from torch import nn

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("hidden", "optimizer", "hidden.0.weight", "hidden.0")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x_train, y_train, x_val, y_val = houses(seed)


class Regressor(nn.Module):
    def __init__(self, sizes=(6, 24, 24, 12)):
        super().__init__()
        layers = [nn.Linear(a, b) for a, b in itertools.pairwise(sizes)]
        self.hidden = nn.ModuleList(layers) if healthy else layers
        self.head = nn.Linear(sizes[-1], 1)

    def forward(self, x):
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return self.head(x).squeeze(1)


def run_epoch(model, optimizer, size=32):
    model.train()
    losses = []
    for rows in torch.randperm(len(x_train)).split(size):
        loss = nn.functional.mse_loss(model(x_train[rows]), y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def r2(model):
    model.eval()
    with torch.no_grad():
        left = (model(x_val) - y_val).square().sum() / (y_val - y_val.mean()).square().sum()
    return 1 - left.item()


def main():
    model = Regressor()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(20):
        loss = run_epoch(model, optimizer)
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1}: train {loss:.4f}, val R2 {r2(model):.3f}")


main()
