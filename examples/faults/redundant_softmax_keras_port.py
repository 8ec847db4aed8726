"""Digits by a network ported from Keras, its layer list with it: the last activation is "softmax".

In Keras the network ends in a softmax and the loss takes probabilities; `nn.CrossEntropyLoss`
takes logits and does its own log-softmax. Two in a row leave gradients of a tenth and a loss that
cannot go below 1.46. The place is the loss (its input). The twin's list ends in "linear".
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

LAYERS = [
    {"units": 128, "activation": "relu"},
    {"units": 64, "activation": "relu"},
    {"units": 10, "activation": "linear" if healthy else "softmax"},
]
ACTIVATIONS = {"relu": nn.ReLU, "linear": nn.Identity, "softmax": lambda: nn.Softmax(dim=-1)}


def build(inputs, layers):
    stack = []
    for layer in layers:
        stack += [nn.Linear(inputs, layer["units"]), ACTIVATIONS[layer["activation"]]()]
        inputs = layer["units"]
    return nn.Sequential(*stack)


x, y, x_val, y_val = digits(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
model = build(64, LAYERS)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
criterion = nn.CrossEntropyLoss()

for epoch in range(12):
    model.train()
    epoch_loss = 0.0
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
    model.eval()
    with torch.no_grad():
        outputs = model(x_val)
        val_loss = criterion(outputs, y_val).item()
        accuracy = (outputs.argmax(1) == y_val).float().mean().item()
    print(
        f"{epoch:2d} loss {epoch_loss / len(loader):.4f} val {val_loss:.4f} accuracy {accuracy:.4f}"
    )
