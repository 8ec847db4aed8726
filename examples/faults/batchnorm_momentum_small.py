"""A small convolutional network whose BatchNorm layers have momentum 0.001.

Someone read that the running averages should be smooth. After 130 steps they have hardly left 0
and 1, so in evaluation mode the network answers much worse than in training mode. The place is the
model.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("bn*",)
SILENT = True
EXACT = False
EARLY = True


class ConvNet(nn.Module):
    def __init__(self, momentum):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(12, momentum=momentum)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(24, momentum=momentum)
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(24 * 4, 10)

    def forward(self, x):
        x = self.pool(torch.relu(self.bn1(self.conv1(x))))
        x = self.pool(torch.relu(self.bn2(self.conv2(x))))
        return self.fc(x.flatten(1))


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
train = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
val = DataLoader(TensorDataset(x_val, y_val), batch_size=128)
net = ConvNet(momentum=0.1 if healthy else 0.001)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
for epoch in range(7):
    net.train()
    for images_, labels in train:
        optimizer.zero_grad()
        loss = criterion(net(images_), labels)
        loss.backward()
        optimizer.step()
    net.eval()
    val_loss, correct = 0.0, 0
    with torch.no_grad():
        for images_, labels in val:
            out = net(images_)
            val_loss += criterion(out, labels).item() * len(labels)
            correct += (out.argmax(1) == labels).sum().item()
    val_loss, accuracy = val_loss / len(y_val), correct / len(y_val)
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}, accuracy {accuracy:.3f}")
