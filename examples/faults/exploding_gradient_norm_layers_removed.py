"""A residual net for a regression. As batches are small its normalisation layers were taken out;
the He initialisation of every branch stayed, and each of the 24 blocks doubles the variance.

Outputs are in the thousands, gradients in the millions from the first step, and in a few the loss
is not finite. The place is the blocks.
"""

import torch
from data import arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "exploding_gradient"
ACCEPT = ("poor_weight_init",)
PLACE = ("stem*", "blocks*", "head*", "")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed)
WIDTH, DEPTH = 32, 24


def linear(a, b):
    layer = nn.Linear(a, b)
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    nn.init.zeros_(layer.bias)
    return layer


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH) if healthy else nn.Identity()
        self.fc1, self.fc2 = linear(WIDTH, WIDTH), linear(WIDTH, WIDTH)

    def forward(self, h):
        return h + self.fc2(torch.relu(self.fc1(self.norm(h))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = linear(x.shape[1], WIDTH)
        self.blocks = nn.Sequential(*(Residual() for _ in range(DEPTH)))
        self.norm = nn.LayerNorm(WIDTH) if healthy else nn.Identity()
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.stem(x)))).squeeze(1)


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=2e-3, momentum=0.9)
criterion = nn.SmoothL1Loss()
loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
for epoch in range(6):
    total = 0.0
    for inputs, price in loader:
        loss = criterion(net(inputs), price)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        out = net(x_val)
    r2 = 1 - (out - y_val).pow(2).mean() / y_val.var()
    print(
        f"epoch {epoch}: train {total / len(loader):.4f}, "
        f"val {criterion(out, y_val):.4f}, R2 {r2:.3f}"
    )
