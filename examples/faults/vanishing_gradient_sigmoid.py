"""Eight layers with a sigmoid after each, as in an old textbook, trained with SGD.

A sigmoid's slope is at most 1/4: the first layer's gradient is 10^5 times smaller than the last
one's. The loss stays at guessing. The place is the first layers.
"""

import torch
from data import arguments, batches, digits
from torch import nn

KIND = "vanishing_gradient"
ACCEPT = ("saturated_activation",)
PLACE = ("0", "2", "4", "6")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
activation = nn.ReLU if healthy else nn.Sigmoid
layers = []
for i in range(8):
    layers += [nn.Linear(64 if i == 0 else 48, 48), activation()]
    if healthy:
        nn.init.kaiming_normal_(layers[-2].weight, nonlinearity="relu")
model = nn.Sequential(*layers, nn.Linear(48, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for images, labels in batches(x, y, size=64, steps=320, seed=seed):
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
