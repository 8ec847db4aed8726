"""A six-layer net on digits starts with weights of a standard deviation of a thousandth.

Every layer shrinks its input by a factor of about a hundred, the logits are the biases and the
gradients of the weights vanish; the loss sits at ln 10 for most of the run or all of it. The twin
leaves He's initialisation. The place is `0`, `2`, `4`, `6`, `8`, `10`, `0.weight`, `2.weight`,
`4.weight`, `6.weight`, `8.weight` or `10.weight`.
"""

from itertools import pairwise

import torch
from data import arguments, digits
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ("vanishing_gradient",)
PLACE = (
    "0",
    "2",
    "4",
    "6",
    "8",
    "10",
    "0.weight",
    "2.weight",
    "4.weight",
    "6.weight",
    "8.weight",
    "10.weight",
)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x_train, y_train, x_val, y_val = digits(seed)

sizes = [64, 96, 96, 64, 64, 32]
layers = []
for a, b in pairwise(sizes):
    layers += [nn.Linear(a, b), nn.ReLU()]
model = nn.Sequential(*layers, nn.Linear(sizes[-1], 10))
for module in model:
    if isinstance(module, nn.Linear):
        std = (2 / module.in_features) ** 0.5 if healthy else 1e-3
        nn.init.normal_(module.weight, mean=0.0, std=std)
        nn.init.zeros_(module.bias)

optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-3)
loss_function = nn.CrossEntropyLoss()


def train_epoch(batch_size=32):
    model.train()
    total = 0.0
    order = torch.randperm(len(x_train))
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        loss = loss_function(model(x_train[rows]), y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    return total / len(order)


@torch.no_grad()
def evaluate():
    model.eval()
    out = model(x_val)
    return loss_function(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()


for epoch in range(1, 13):
    train_loss = train_epoch()
    if epoch % 2 == 0:
        val_loss, accuracy = evaluate()
        print(f"epoch {epoch}: train {train_loss:.4f} val {val_loss:.4f} accuracy {accuracy:.3f}")
