"""A CNN training loop without zero_grad.

Every backward pass adds to all the gradients before it, so the steps grow longer and longer and
point to where the model has been. The place is the loop.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 3, padding=1)
        self.conv2 = nn.Conv2d(6, 16, 3)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(16 * 4, 60)
        self.fc2 = nn.Linear(60, 10)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = torch.relu(self.conv2(x))
        x = torch.relu(self.fc1(x.flatten(1)))
        return self.fc2(x)


net = LeNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.015, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)
for epoch in range(12):
    net.train()
    for inputs, labels in loader:
        if healthy:
            optimizer.zero_grad()
        loss = criterion(net(inputs), labels)
        loss.backward()
        optimizer.step()
    scheduler.step()
    net.eval()
    with torch.no_grad():
        acc = (net(x_val).argmax(1) == y_val).float().mean().item()
print(f"last loss {loss.item():.3f}, validation accuracy {acc:.3f}")
