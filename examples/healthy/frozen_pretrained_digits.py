"""Is a digit even or odd? An encoder trained before on all ten digits is kept frozen.

First the encoder learns the ten digits. Then only a linear head is trained on eighty pictures
with the new labels; with so few, changing the encoder would do harm.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn

ODD = "most of the weights never move in the second part: they were trained in the first"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)


def fit(modules, parameters, x, y, epochs, lr, size):
    optimizer = torch.optim.Adam(parameters, lr=lr)
    for epoch in range(epochs):
        for rows in torch.randperm(len(x)).split(size):
            loss = F.cross_entropy(modules(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


@torch.no_grad()
def accuracy(model, x, y):
    return (model(x).argmax(1) == y).float().mean().item()


encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
ten = nn.Sequential(encoder, nn.Linear(32, 10))
loss = fit(ten, ten.parameters(), x, y, epochs=12, lr=2e-3, size=50)
print(f"ten digits: loss {loss:.4f} validation accuracy {accuracy(ten, x_val, y_val):.3f}")

encoder.requires_grad_(False)
few = torch.randperm(len(x))[:80]
parity = nn.Sequential(encoder, nn.Linear(32, 2))
before = accuracy(parity, x_val, y_val % 2)
loss = fit(parity, parity[1].parameters(), x[few], y[few] % 2, epochs=40, lr=5e-3, size=20)
after = accuracy(parity, x_val, y_val % 2)
print(f"even or odd: loss {loss:.4f} validation accuracy {before:.3f} -> {after:.3f}")
