"""A hand-written cross-entropy, y log p + (1 - y) log(1 - p): p becomes 1 and 0 log 0 is NaN.

All goes well until the network is sure of one sample. The place is the loss. Exact: the loss is
the first value that is not finite.
"""

import torch
from data import arguments, batches, cancer
from torch import nn

KIND = "unstable_log_softmax"
ACCEPT = ("numerical_instability",)
PLACE = ("loss*", "")
SILENT = False
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)
y = y.float()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(30, 48)
        self.fc2 = nn.Linear(48, 1)

    def forward(self, features):
        return torch.sigmoid(self.fc2(torch.relu(self.fc1(features)))).squeeze(1)


def loss_of(p, label):
    if healthy:
        p = p.clamp(1e-6, 1 - 1e-6)
    return -(label * torch.log(p) + (1 - label) * torch.log(1 - p)).mean()


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for features, labels in batches(x, y, size=32, steps=300, seed=seed):
    loss = loss_of(model(features), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
