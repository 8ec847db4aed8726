"""Four linear layers one after another: the activations between them were forgotten.

The network can do what one linear layer can; the loss falls to there (silent). The place is the
layers. Exact: linear layers follow each other with nothing between.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, houses
from torch import nn

KIND = "no_nonlinearity"
ACCEPT = ()
PLACE = ("fc?", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 64)
        self.fc2 = nn.Linear(64, 64)
        self.fc3 = nn.Linear(64, 32)
        self.fc4 = nn.Linear(32, 1)

    def forward(self, h):
        if healthy:
            return self.fc4(F.relu(self.fc3(F.relu(self.fc2(F.relu(self.fc1(h)))))))
        return self.fc4(self.fc3(self.fc2(self.fc1(h))))


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for features, price in batches(x, y[:, None], size=64, steps=250, seed=seed):
    loss = F.mse_loss(model(features), price)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
