"""A three-layer network for wines, all of whose weights start at 0.05.

The neurons of a hidden layer are the same and get the same gradient for ever, so each hidden layer
is worth a single neuron. The output layer's rows part, so the loss still falls somewhat. The place
is the model.
"""

import torch
from data import arguments, wine
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = ("fc1*", "fc2*", "out*")
SILENT = True
EXACT = True
EARLY = True


class WineNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(13, 24)
        self.fc2 = nn.Linear(24, 24)
        self.out = nn.Linear(24, 3)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.out(x)


def constant_weights(module):
    if isinstance(module, nn.Linear):
        nn.init.constant_(module.weight, 0.05)
        nn.init.zeros_(module.bias)


def xavier_weights(module):
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)


healthy, seed = arguments(__doc__)
X, Y, X_val, Y_val = wine(seed)
model = WineNet()
model.apply(xavier_weights if healthy else constant_weights)
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(100):  # full batch
    loss = loss_fn(model(X), Y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    accuracy = (model(X_val).argmax(1) == Y_val).float().mean()
    val_loss = loss_fn(model(X_val), Y_val)
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}, accuracy {accuracy:.3f}")
