"""xavier_normal_ with gain=15 in a network of three layers of tanh and sigmoid: a gain of 1.5 was
meant.

Most units sit at 0 or 1 from the start. The last layer learns from what comes through; the loss
falls part of the way (silent). The place is these layers.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "saturated_activation"
ACCEPT = ("poor_weight_init",)
PLACE = ("act*", "fc*", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)


class Net(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.fc1, self.act1 = nn.Linear(64, width), nn.Tanh()
        self.fc2, self.act2 = nn.Linear(width, width), nn.Tanh()
        self.fc3, self.act3 = nn.Linear(width, width), nn.Sigmoid()
        self.fc4 = nn.Linear(width, 10)
        for layer in (self.fc1, self.fc2, self.fc3):
            nn.init.xavier_normal_(layer.weight, gain=1.5 if healthy else 15)

    def forward(self, pixels):
        h = self.act1(self.fc1(pixels))
        h = self.act3(self.fc3(self.act2(self.fc2(h))))
        return self.fc4(h)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(15):
    for images, labels in DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
