"""nn.init.normal_(weight) without a std: values eight to ten times too large for these layers.

The first loss is far above ln 10, most tanh units sit at their ends, and what is learned holds for
the training data only. The place is the layers.
"""

import torch
from data import arguments, batches, digits
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ("saturated_activation",)
PLACE = ("0", "1", "2", "3", "4")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(
    nn.Linear(64, 100), nn.Tanh(), nn.Linear(100, 100), nn.Tanh(), nn.Linear(100, 10)
)
for layer in model:
    if isinstance(layer, nn.Linear):
        nn.init.normal_(layer.weight, std=layer.in_features**-0.5 if healthy else 1.0)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for images, labels in batches(x, y, size=64, steps=250, seed=seed):
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
