"""Hidden layers in a plain Python list: parameters() does not know them and they are never
trained.

The place is the attribute `hidden`. The first and last layer learn, so the loss falls (silent).
Exact: leaves of the graph that the model does not have.
"""

import torch
from data import arguments, batches, digits
from torch import nn

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("hidden*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)


class Net(nn.Module):
    def __init__(self, depth=3, width=48):
        super().__init__()
        self.first = nn.Linear(64, width)
        self.hidden = [nn.Linear(width, width) for _ in range(depth)]
        if healthy:
            self.hidden = nn.ModuleList(self.hidden)
        self.last = nn.Linear(width, 10)

    def forward(self, pixels):
        h = torch.relu(self.first(pixels))
        for layer in self.hidden:
            h = torch.relu(layer(h))
        return self.last(h)


model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for images, labels in batches(x, y, size=64, steps=220, seed=seed):
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
