"""reset_parameters() of a layer made by hand sets weights and biases to 0, in all three layers.

Only the last bias is ever trained. The place are the layers.
"""

import torch
from data import arguments
from sklearn.datasets import load_iris
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "poor_weight_init"
ACCEPT = ("dead_relu", "vanishing_gradient")
PLACE = ("fc?", "")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class MyLinear(nn.Linear):
    def reset_parameters(self):
        if healthy:
            nn.init.kaiming_uniform_(self.weight)
        else:
            nn.init.zeros_(self.weight)
        nn.init.zeros_(self.bias)


class IrisNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = MyLinear(4, 32)
        self.fc2 = MyLinear(32, 32)
        self.fc3 = MyLinear(32, 3)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.fc3(x)


iris = load_iris()
features = torch.tensor((iris.data - iris.data.mean(0)) / iris.data.std(0)).float()
loader = DataLoader(TensorDataset(features, torch.tensor(iris.target)), 15, shuffle=True)
net = IrisNet()
optimizer = torch.optim.Adam(net.parameters(), lr=0.005)
for epoch in range(25):
    for x, y in loader:
        loss = nn.CrossEntropyLoss()(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")
