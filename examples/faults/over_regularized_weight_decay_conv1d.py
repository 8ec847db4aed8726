"""A 1-d CNN for wave shapes by Adam with a weight decay of 1.

The penalty's gradient outweighs that of the data: all weights shrink towards zero and the output
becomes the same for every wave. The place is the optimizer.
"""

import torch
import torch.nn.functional as F
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True


class WaveCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 16, 5, padding=2)
        self.conv2 = nn.Conv1d(16, 16, 5, padding=2)
        self.fc = nn.Linear(16, 3)

    def forward(self, x):
        x = F.max_pool1d(F.relu(self.conv1(x)), 2)
        x = F.relu(self.conv2(x))
        return self.fc(x.mean(2))


healthy, seed = arguments(__doc__)
x, y = waves(seed, n=1000)
x = x.transpose(1, 2)
train_set = TensorDataset(x[:800], y[:800])
net = WaveCNN()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3, weight_decay=1e-4 if healthy else 1.0)
for epoch in range(10):
    net.train()
    for wave, shape in DataLoader(train_set, batch_size=40, shuffle=True):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(wave), shape)
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        acc = (net(x[800:]).argmax(1) == y[800:]).float().mean().item()
print(f"train loss {loss.item():.3f}, held-out accuracy {acc:.3f}")
